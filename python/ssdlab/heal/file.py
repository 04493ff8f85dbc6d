"""Heals one file: measures it, chooses what to rewrite, rewrites it, and measures again."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from ssdlab.errors import DeviceFailure, Interrupted, SsdlabError, TargetError
from ssdlab.heal.methods.copy import Copy
from ssdlab.heal.methods.move_extents import MoveExtents
from ssdlab.heal.methods.rewriter import Donor, Rewriter
from ssdlab.heal.methods.share import Share
from ssdlab.heal.options import HealOptions, ProgressCallback
from ssdlab.heal.outcome import (
    MIB,
    FileOutcome,
    days_of_endurance,
    fresh_speed,
    map_rows,
    mib_per_s,
)
from ssdlab.heal.pieces import (
    Piece,
    Range,
    align,
    average_speed,
    intersection,
    is_faster,
    merge,
    overlapping_pieces,
    slow_ranges,
    split_into_chunks,
    split_into_pieces,
    subtract,
    total_bytes,
    update_pieces,
    written_ranges,
)
from ssdlab.heal.refusal import (
    CHUNK_BYTES,
    Method,
    Refusal,
    cached_below,
    changed,
    method_for,
    no_space,
    refusal,
    untimed,
)
from ssdlab.heal.speed import ReadSpeedMeter
from ssdlab.storage_stack.extents import merged
from ssdlab.storage_stack.file_info import FileInfo, read_file_info
from ssdlab.storage_stack.layers import devices_of_mount

PROBE_BYTES: Final = 16 << 20
MIN_FILE_BYTES: Final = 1 << 20
WHOLE_FILE: Final[Method] = "copy and exchange"
"""The method that rewrites a file completely or not at all."""


def heal_file(path: Path, options: HealOptions, progress: ProgressCallback) -> FileOutcome:
    """Heals one file. The outcome says whether it was refused or interrupted.

    A file that cannot be opened, or does not support direct I/O, is refused.

    Raises:
        DeviceFailure: the drive or the kernel failed; the content is unchanged.
    """
    result = FileOutcome(path=str(path))
    try:
        return _heal(read_file_info(path), options, progress, result)
    except TargetError as error:
        return _refuse(result, Refusal("cannot-open", str(error)))
    except OSError as error:
        raise DeviceFailure(
            f"{path} could not be healed ({error.strerror or error}); its content is unchanged"
        ) from error


def _heal(
    info: FileInfo, options: HealOptions, progress: ProgressCallback, result: FileOutcome
) -> FileOutcome:
    result.file_system, result.size_bytes = info.mount.fs_type, info.size_bytes
    reason = refusal(info, shared=options.shared)
    method = method_for(info)
    if reason is not None and reason.code == "no-journal" and options.dry_run:
        result.only_measured, reason = reason, None
    if reason is not None or method is None:
        return _refuse(result, reason)
    result.not_timed = cached_below(devices_of_mount(info.mount))
    if result.not_timed is not None:
        if options.measures:
            return _refuse(result, untimed(result.not_timed))
        options = replace(options, timed=False)
    result.way, result.extents_before = method, len(merged(info.extents or ()))
    heal = _FileHeal(info, method, options, progress, result)
    try:
        heal.run()
    except (Interrupted, KeyboardInterrupt):
        result.interrupted = True
    except (SsdlabError, OSError):
        if (reason := changed(heal.info)) is None:
            raise
        return _refuse(result, reason)
    if not result.interrupted and (reason := changed(heal.info)) is not None:
        return _refuse(result, reason)
    return result


def _refuse(result: FileOutcome, reason: Refusal | None) -> FileOutcome:
    assert reason is not None, "a file without a method is refused"
    result.refused = reason
    return result


class _FileHeal:
    """The steps of healing one file; they record what they find in `result`."""

    def __init__(
        self,
        info: FileInfo,
        method: Method,
        options: HealOptions,
        progress: ProgressCallback,
        result: FileOutcome,
    ) -> None:
        self.info, self.method, self.options = info, method, options
        self.progress, self.result = progress, result
        self.written = written_ranges(info.extents or (), info.size_bytes, info.block_bytes)
        self.before: list[Piece] = []
        self.after: list[Piece] = []
        self.slow: list[Range] = []
        self.rewritten: list[Range] = []
        folder = None if options.measures or options.dry_run else options.state_folder
        self.completed = CompletedRanges(folder, info.device_number, info.inode)

    def run(self) -> None:
        """Does all steps."""
        self._measure_before()
        chosen = self._choose()
        self._record_plan(chosen)
        if chosen and (why := no_space(self.info, total_bytes(chosen), self.method)) is not None:
            _refuse(self.result, why)
        elif chosen and not self.options.dry_run:
            try:
                self._rewrite(chosen)
            finally:
                self._record_map()
            self._measure_after()
        self._record_map()

    def _measure_before(self) -> None:
        if not self.options.timed:
            return
        meter = ReadSpeedMeter(self.info.path, self.progress)
        try:
            pieces = split_into_pieces(self.written, self.options.piece_bytes)
            self.before = meter.measure(pieces, "reading")
            fresh, source = fresh_speed(self.options.fresh_bytes_per_s, self._probe(), self.before)
            if fresh is not None:
                limit = fresh * self.options.slower_than
                self.before = meter.best_of(self.before, limit, "rereading slow pieces")
                self.slow = slow_ranges(self.before, fresh, self.options.slower_than)
        finally:
            meter.close()
        self.result.fresh_mib_per_s, self.result.fresh_from = mib_per_s(fresh), source
        self.result.before_mib_per_s = mib_per_s(average_speed(self.before))

    def _probe(self) -> float | None:
        """Read speed of a freshly written test file; None if it is not needed or does not fit."""
        options, space = self.options, self.info.space
        if options.dry_run or not options.measures or options.fresh_bytes_per_s is not None:
            return None
        if space.free_bytes < PROBE_BYTES + space.total_bytes // 100:
            return None
        return probe(self.info.path.parent, self.progress)

    def _choose(self) -> list[Range]:
        options = self.options
        if options.measures:
            chosen = self.slow
        elif options.everything:
            chosen = list(self.written)
        else:
            requested = align((Range(*each) for each in options.ranges), self.info.block_bytes)
            chosen = intersection(self.written, requested)
        if chosen and self.method == WHOLE_FILE:
            return [Range(0, self.info.size_bytes)]
        return subtract(chosen, self.completed.ranges())

    def _record_plan(self, chosen: Sequence[Range]) -> None:
        result = self.result
        result.plan = [(each.offset, each.length) for each in chosen]
        result.planned_bytes = total_bytes(chosen)
        result.days_of_endurance = days_of_endurance(result.planned_bytes, self.info.drives)
        self._record_map()

    def _rewrite(self, chosen: Sequence[Range]) -> None:
        whole = self.method == WHOLE_FILE
        parts = list(chosen) if whole else split_into_chunks(chosen, CHUNK_BYTES)
        rewriter, done, total = self._rewriter(), 0, total_bytes(chosen)
        try:
            for number, part in enumerate(parts):
                self.progress("rewriting", done, total)
                self._rewrite_part(rewriter, part)
                done += part.length
                if number == 0 and len(parts) > 1 and not self._first_part_is_faster():
                    self.result.no_gain = True
                    return
            self.progress("rewriting", done, total)
        finally:
            rewriter.close()
        if whole and self.rewritten:
            self.info = read_file_info(self.info.path)  # the copy has the file's name now
        self.completed.clear()

    def _rewrite_part(self, rewriter: Rewriter, part: Range) -> None:
        rewrite = rewriter.rewrite(part)
        self.result.moved_bytes += rewrite.moved_bytes
        self.result.written_bytes += rewrite.written_bytes
        self.result.left += [(each.offset, each.length) for each in rewrite.left]
        self.result.why = rewrite.reason or self.result.why
        self.rewritten += subtract([part], rewrite.left)
        self.completed.add(part)

    def _rewriter(self) -> Rewriter:
        if self.method == "move extents":
            return MoveExtents(self.info)
        if self.method == "share and compare":
            return Share(self.info)
        return Copy(self.info.path, is_xfs=self.info.mount.fs_type == "xfs")

    def _first_part_is_faster(self) -> bool:
        """Whether the part rewritten first now reads faster; True if the run measures nothing."""
        if not self.options.measures:
            return True
        old = overlapping_pieces(self.before, self.rewritten)
        return is_faster(old, self._measured(old, "reading the first rewritten part"))

    def _measure_after(self) -> None:
        if self.options.timed:
            old = overlapping_pieces(self.before, self.rewritten)
            measured = self._measured(old, "reading what was rewritten")
            self.after = update_pieces(self.before, measured)
            self.result.after_mib_per_s = mib_per_s(average_speed(self.after))
        self.result.extents_after = len(merged(read_file_info(self.info.path).extents or ()))

    def _measured(self, pieces: Sequence[Piece], label: str) -> list[Piece]:
        """Measures these pieces; rereads slow ones several times and keeps the best reading."""
        meter = ReadSpeedMeter(self.info.path, self.progress)
        try:
            readings = meter.measure([piece.range for piece in pieces], label)
            limit = (self.result.fresh_mib_per_s or 0) * MIB * self.options.slower_than
            return meter.best_of(readings, limit, label)
        finally:
            meter.close()

    def _record_map(self) -> None:
        self.result.map = map_rows(self.before, self.after, self.slow, self.rewritten)


def probe(directory: Path, progress: ProgressCallback) -> float | None:
    """Read speed, in bytes per second, of a new test file, which is removed; None on errors."""
    progress("writing a test file", 0, PROBE_BYTES)
    try:
        with Donor(directory) as donor:
            donor.allocate(0, PROBE_BYTES)
            buffer = memoryview(_random(1 << 20))
            for offset in range(0, PROBE_BYTES, len(buffer)):
                os.pwrite(donor.fd, buffer, offset)
            os.fdatasync(donor.fd)
            meter = ReadSpeedMeter(Path(f"/proc/self/fd/{donor.fd}"), progress)
            try:
                ranges = split_into_pieces([Range(0, PROBE_BYTES)], 1 << 20)
                pieces = meter.measure(ranges, "reading the test file")
            finally:
                meter.close()
    except (SsdlabError, OSError) as error:
        if isinstance(error, Interrupted):
            raise
        return None
    speeds = [piece.bytes_per_s for piece in pieces if piece.bytes_per_s is not None]
    return median(speeds) if speeds else None


def _random(length: int) -> mmap.mmap:
    buffer = mmap.mmap(-1, length)  # page-aligned, as direct I/O requires
    buffer[:] = os.urandom(length)
    return buffer


def select_files(paths: Iterable[Path]) -> tuple[list[Path], int]:
    """The files in the order given, each once, and how many were skipped because they are small.

    A directory stands for its regular files of 1 MiB or more on the same file system; symbolic
    links in it are not followed. A file that is named directly is always selected.

    Raises:
        TargetError: a path does not exist.
    """
    selected: dict[tuple[int, int], Path] = {}
    small = 0
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            raise TargetError(
                f"{path}: {error.strerror}; give files, or directories that hold them"
            ) from error
        if not stat.S_ISDIR(status.st_mode):
            selected.setdefault((status.st_dev, status.st_ino), path)
            continue
        for file, file_status in _regular_files(path, status.st_dev):
            if file_status.st_size < MIN_FILE_BYTES:
                small += 1
            else:
                selected.setdefault((file_status.st_dev, file_status.st_ino), file)
    return list(selected.values()), small


def _regular_files(directory: Path, device: int) -> list[tuple[Path, os.stat_result]]:
    files = []
    for folder, subfolders, names in os.walk(directory):
        here = Path(folder)
        subfolders[:] = sorted(name for name in subfolders if _is_on(here / name, device))
        for name in sorted(names):
            try:
                status = (here / name).lstat()
            except OSError:  # removed since it was listed
                continue
            if stat.S_ISREG(status.st_mode) and status.st_dev == device:
                files.append((here / name, status))
    return files


def _is_on(path: Path, device: int) -> bool:
    try:
        return path.lstat().st_dev == device
    except OSError:
        return False


class CompletedRanges:
    """The ranges of a file that an interrupted run rewrote, kept in `folder`; if None, not kept.

    One text file for each healed file, named by device number and inode: one line `offset length`
    for each finished range. It is removed when the heal is complete. A run that measures does not
    need it: rewritten pieces read fast and are not chosen again.
    """

    def __init__(self, folder: Path | None, device_number: int, inode: int) -> None:
        self._path = None if folder is None else folder / f"{device_number:x}-{inode:x}"

    def ranges(self) -> list[Range]:
        """The ranges on record; an incomplete last line is ignored."""
        if self._path is None or not self._path.exists():
            return []
        lines = self._path.read_text().split("\n")[:-1]
        words = [line.split() for line in lines]
        return merge(
            Range(int(pair[0]), int(pair[1]))
            for pair in words
            if len(pair) == 2 and pair[0].isdecimal() and pair[1].isdecimal()
        )

    def add(self, completed: Range) -> None:
        """Records a range; after a failed write, nothing more is recorded."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(f"{completed.offset} {completed.length}\n")
        except OSError:
            self._path = None

    def clear(self) -> None:
        """Removes the record."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

"""One file from the first look to the last measurement: look, measure, decide, rewrite, measure."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from ssdlab.errors import DeviceFailure, Interrupted, SsdlabError, TargetError
from ssdlab.heal import outcome as told
from ssdlab.heal import pieces as p
from ssdlab.heal.methods.copy import Copy
from ssdlab.heal.methods.donor import Donor
from ssdlab.heal.methods.move_extents import MoveExtents
from ssdlab.heal.methods.rewriter import Rewriter
from ssdlab.heal.methods.share import Share
from ssdlab.heal.options import Watch, Wish
from ssdlab.heal.outcome import FileOutcome, Refused
from ssdlab.heal.pieces import Piece, Range
from ssdlab.heal.progress import Remembered
from ssdlab.heal.refusal import CHUNK_BYTES, Refusal, Way, changed, no_room, refusal, way_of
from ssdlab.heal.speed import Speedometer
from ssdlab.storage_stack.extents import merged
from ssdlab.storage_stack.file_info import FileInfo, read_file_info

PROBE_BYTES: Final = 16 << 20
WHOLE: Final[Way] = "copy and exchange"
"""The way that rewrites a file as a whole or not at all."""


def heal_file(path: Path, wish: Wish, watch: Watch) -> FileOutcome:
    """Heals one file; an interruption or a refusal is told in the outcome.

    That it cannot be opened, or not past the page cache, is a refusal too.

    Raises:
        DeviceFailure: the drive or the kernel failed; the content is as it was.
    """
    result = FileOutcome(path=str(path))
    try:
        return _healed(read_file_info(path), wish, watch, result)
    except TargetError as error:
        return _refused(result, Refusal("cannot-open", str(error)))
    except OSError as error:
        raise DeviceFailure(
            f"{path} could not be healed ({error.strerror or error}); its content is as it was"
        ) from error


def _healed(seen: FileInfo, wish: Wish, watch: Watch, result: FileOutcome) -> FileOutcome:
    result.file_system, result.size_bytes = seen.mount.fs_type, seen.size_bytes
    refused = refusal(seen, shared=wish.shared)
    way = way_of(seen)
    if refused is not None or way is None:
        return _refused(result, refused)
    result.way, result.extents_before = way, len(merged(seen.extents or ()))
    course = _Course(seen, way, wish, watch, result)
    try:
        course.run()
    except (Interrupted, KeyboardInterrupt):
        result.interrupted = True
    except (SsdlabError, OSError):
        if (why := changed(course.seen)) is None:
            raise
        return _refused(result, why)
    if not result.interrupted and (why := changed(course.seen)) is not None:
        return _refused(result, why)
    return result


def _refused(result: FileOutcome, why: Refusal | None) -> FileOutcome:
    assert why is not None, "a file without a way is refused"
    result.refused = Refused(why.code, why.sentence)
    return result


class _Course:
    """The steps of one file, with what they found so far in `result`."""

    def __init__(
        self, seen: FileInfo, way: Way, wish: Wish, watch: Watch, result: FileOutcome
    ) -> None:
        self.seen, self.way, self.wish, self.watch, self.result = seen, way, wish, watch, result
        self.written = p.written_ranges(seen.extents or (), seen.size_bytes, seen.block_bytes)
        self.before: list[Piece] = []
        self.after: list[Piece] = []
        self.slow: list[Range] = []
        self.rewritten: list[Range] = []
        folder = None if wish.measures or wish.dry_run else wish.state
        self.remembered = Remembered(folder, seen.device_number, seen.inode)

    def run(self) -> None:
        """All steps."""
        self._measure_before()
        chosen = self._choose()
        self._tell_plan(chosen)
        if chosen and (why := no_room(self.seen, p.total(chosen), self.way)) is not None:
            _refused(self.result, why)
        elif chosen and not self.wish.dry_run:
            try:
                self._rewrite(chosen)
            finally:
                self._tell_map()
            self._measure_after()
        self._tell_map()

    def _measure_before(self) -> None:
        meter = Speedometer(self.seen.path, self.watch)
        try:
            self.before = meter.measure(p.cut(self.written, self.wish.piece_bytes), "reading")
            fresh, source = told.fresh_of(self.wish.fresh_bytes_per_s, self._probe(), self.before)
            if fresh is not None:
                limit = fresh * self.wish.slower_than
                self.before = meter.best_of(self.before, limit, "reading again what was slow")
                self.slow = p.slow(self.before, fresh, self.wish.slower_than)
        finally:
            meter.close()
        self.result.fresh_mib_per_s, self.result.fresh_from = told.mib(fresh), source
        self.result.before_mib_per_s = told.mib(p.overall(self.before))

    def _probe(self) -> float | None:
        """How fast data reads that was written a moment ago; None where that is not asked for."""
        if self.wish.dry_run or not self.wish.measures or self.wish.fresh_bytes_per_s is not None:
            return None
        if self.seen.space.free_bytes < PROBE_BYTES + self.seen.space.total_bytes // 100:
            return None
        return probe(self.seen.path.parent, self.watch)

    def _choose(self) -> list[Range]:
        wish = self.wish
        if wish.measures:
            chosen = self.slow
        elif wish.everything:
            chosen = list(self.written)
        else:
            asked = p.aligned((Range(*each) for each in wish.chosen), self.seen.block_bytes)
            chosen = p.within(self.written, asked)
        if chosen and self.way == WHOLE:
            return [Range(0, self.seen.size_bytes)]
        return p.without(chosen, self.remembered.ranges())

    def _tell_plan(self, chosen: Sequence[Range]) -> None:
        result = self.result
        result.plan = [(each.offset, each.length) for each in chosen]
        result.planned_bytes = p.total(chosen)
        result.days_of_endurance = told.days_of_endurance(result.planned_bytes, self.seen.drives)
        self._tell_map()

    def _rewrite(self, chosen: Sequence[Range]) -> None:
        whole = self.way == WHOLE
        parts = list(chosen) if whole else p.chunks(chosen, CHUNK_BYTES)
        rewriter, done, total = self._rewriter(), 0, p.total(chosen)
        try:
            for number, part in enumerate(parts):
                self.watch("rewriting", done, total)
                self._rewrite_part(rewriter, part)
                done += part.length
                if number == 0 and len(parts) > 1 and not self._brought_gain():
                    self.result.no_gain = True
                    return
            self.watch("rewriting", done, total)
        finally:
            rewriter.close()
        if whole and self.rewritten:
            self.seen = read_file_info(self.seen.path)  # the copy has its name now
        self.remembered.forget()

    def _rewrite_part(self, rewriter: Rewriter, part: Range) -> None:
        got = rewriter.rewrite(part)
        self.result.moved_bytes += got.moved
        self.result.written_bytes += got.written
        self.result.left += [(each.offset, each.length) for each in got.left]
        self.result.why = got.why or self.result.why
        self.rewritten += p.without([part], got.left)
        self.remembered.add(part)

    def _rewriter(self) -> Rewriter:
        if self.way == "move extents":
            return MoveExtents(self.seen)
        if self.way == "share and compare":
            return Share(self.seen)
        return Copy(self.seen.path, is_xfs=self.seen.mount.fs_type == "xfs")

    def _brought_gain(self) -> bool:
        """Whether what was rewritten first reads faster; true where nothing can be said."""
        if not self.wish.measures:
            return True
        was = p.touching(self.before, self.rewritten)
        return p.brought_gain(was, self._measured(was, "reading what was rewritten first"))

    def _measure_after(self) -> None:
        was = p.touching(self.before, self.rewritten)
        self.after = p.replaced(self.before, self._measured(was, "reading what was rewritten"))
        self.result.after_mib_per_s = told.mib(p.overall(self.after))
        self.result.extents_after = len(merged(read_file_info(self.seen.path).extents or ()))

    def _measured(self, pieces: Sequence[Piece], label: str) -> list[Piece]:
        """The same pieces as they read now: the best reading of those that still seem slow."""
        meter = Speedometer(self.seen.path, self.watch)
        try:
            found = meter.measure([piece.range for piece in pieces], label)
            limit = (self.result.fresh_mib_per_s or 0) * told.MIB * self.wish.slower_than
            return meter.best_of(found, limit, label)
        finally:
            meter.close()

    def _tell_map(self) -> None:
        self.result.map = told.map_rows(self.before, self.after, self.slow, self.rewritten)


def probe(directory: Path, watch: Watch) -> float | None:
    """Bytes a second at which data reads that is written now, in order; it is gone afterwards."""
    watch("writing a probe", 0, PROBE_BYTES)
    try:
        with Donor(directory) as donor:
            donor.reserve(0, PROBE_BYTES)
            room = memoryview(_random(1 << 20))
            for offset in range(0, PROBE_BYTES, len(room)):
                os.pwrite(donor.fd, room, offset)
            os.fdatasync(donor.fd)
            meter = Speedometer(Path(f"/proc/self/fd/{donor.fd}"), watch)
            try:
                whole = p.cut([Range(0, PROBE_BYTES)], 1 << 20)
                found = meter.measure(whole, "reading the probe")
            finally:
                meter.close()
    except (SsdlabError, OSError) as error:
        if isinstance(error, Interrupted):
            raise
        return None
    speeds = [piece.bytes_per_s for piece in found if piece.bytes_per_s is not None]
    return median(speeds) if speeds else None


def _random(length: int) -> mmap.mmap:
    room = mmap.mmap(-1, length)  # aligned to a page, as direct I/O demands
    room[:] = os.urandom(length)
    return room

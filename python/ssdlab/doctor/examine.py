"""Reads a storage stack and maps its files, and turns the snapshot into a report."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.doctor.checks import findings, judge, summary
from ssdlab.doctor.collected import is_recording, parse, snapshot_of
from ssdlab.doctor.history import Changes, remember
from ssdlab.doctor.read_map import Budget, read_map
from ssdlab.doctor.report import Report
from ssdlab.doctor.windows import is_windows, read_windows
from ssdlab.errors import DeviceFailure, TargetError, UsageError
from ssdlab.input_files import read_bytes
from ssdlab.records import utc_now
from ssdlab.snapshot import File, Snapshot, Unread, decode
from ssdlab.storage_stack.live import live_roots
from ssdlab.storage_stack.snapshot import Probes, file_record, largest, read_snapshot
from ssdlab.units import format_size
from ssdlab.warning import MeasurementWarning

LARGEST: Final = 3
SEARCH_S: Final = 5.0
READ_S: Final = 20.0
FILE_BYTES_MIN: Final = 8 << 20
"""Smaller files have too few pieces for a map."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class MapOptions:
    """Which files to map, and how many bytes to read at most."""

    target: str
    files: tuple[Path, ...]
    read_bytes: int


def read_recorded(path: Path) -> Snapshot:
    """The snapshot in a saved `--json` output, or in the output of a collector script.

    Raises:
        UsageError: the file cannot be read, or is neither.
    """
    try:
        text = read_bytes(path)
        if is_recording(text):
            return snapshot_of(parse(text.decode("utf-8", "replace")))
        printed: Any = msgspec.json.decode(text.removeprefix(BOM_UTF8))
    except (OSError, msgspec.MsgspecError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"{path} cannot be read ({reason}); give the output of --json or of a collector script"
        ) from error
    if is_windows(printed):
        return read_windows(printed)
    stack = printed.get("stack", printed) if isinstance(printed, dict) else printed
    return decode(msgspec.json.encode(stack))


def read_stack(options: MapOptions, report_progress: Progress) -> Snapshot:
    """The storage stack below the target, with maps of files.

    Raises:
        TargetError: the target or a file named for a map cannot be read.
        DeviceFailure: reading a file named for a map failed.
    """
    probes = Probes()
    stack = read_snapshot(options.target, live_roots(), probes)
    unread = list(stack.unread)
    paths = _select_files(options, stack, unread, report_progress)
    records = _file_records(options, paths, unread, report_progress)
    return msgspec.structs.replace(stack, files=tuple(records), unread=tuple(unread))


def _select_files(
    options: MapOptions, stack: Snapshot, unread: list[Unread], report_progress: Progress
) -> Sequence[Path]:
    """The files to map: those named, the target itself, or the largest below it."""
    path = Path(options.target)
    if options.files or path.is_file():
        return options.files or (path,)
    if not stack.drives or not options.read_bytes:
        return ()
    if not path.is_dir():
        path = Path(stack.mounts[0].mount_point) if stack.mounts else path
        if not stack.mounts:
            return ()
    report_progress(f"looking for the largest files in {path}")
    paths, is_complete = largest(path, LARGEST, SEARCH_S)
    if not is_complete:
        why = f"the search stopped after {SEARCH_S:.0f} s; other files may be larger"
        unread.append(Unread(f"all files in {path}", why, "ssdlab doctor --map FILE"))
    return paths


def _file_records(
    options: MapOptions, paths: Sequence[Path], unread: list[Unread], report_progress: Progress
) -> list[File]:
    records = []
    budget = Budget(READ_S, options.read_bytes)
    for left, path in zip(range(len(paths), 0, -1), paths, strict=True):
        try:
            records.append(_mapped_record(path, budget, left, report_progress))
        except (TargetError, DeviceFailure) as error:
            if path in options.files:
                raise
            unread.append(Unread(str(path), str(error)))
    return records


def _mapped_record(path: Path, budget: Budget, left: int, report_progress: Progress) -> File:
    """One file's record with its map, read with 1/`left` of the remaining budget."""
    record, extents = file_record(path)
    if record.size_bytes < FILE_BYTES_MIN:
        why = f"it is smaller than {format_size(FILE_BYTES_MIN)}"
        return msgspec.structs.replace(record, not_read=why)
    if budget.is_spent:
        why = "the time or byte limit was reached"
        return msgspec.structs.replace(record, not_read=why)
    share = budget.share(left)
    report_progress(f"reading up to {format_size(share.bytes)} of {path}")
    try:
        speeds = read_map(path, extents, share)
    except TargetError as error:
        return msgspec.structs.replace(record, not_read=str(error))
    finally:
        budget.spend(share.spent)
    if speeds.through_cache:
        why = "the file system answered direct reads through the page cache"
        return msgspec.structs.replace(record, not_read=why)
    return msgspec.structs.replace(record, pieces=tuple(speeds.pieces), unsteady=speeds.unsteady)


def make_report(stack: Snapshot, duration_s: float, *, keep: bool = False) -> Report:
    """The verdicts on a snapshot; `duration_s` is the time that reading it took.

    `keep` adds an entry to the history of each drive, and compares it with earlier ones.

    Raises:
        UsageError: a history cannot be read or written.
    """
    verdicts = judge(stack)
    changes, left_out = remember(stack, utc_now()) if keep else ([], [])
    warnings = [MeasurementWarning("unread", _sentence(unread)) for unread in stack.unread]
    measures = [row for mount in stack.mounts for row in mount.layers] or list(stack.layers)
    return Report(
        ssdlab=version("ssdlab"),
        target=stack.target,
        duration_s=duration_s,
        measures=[
            {"layer": r.layer, "device": r.device, "passes": r.passes, "why": r.why}
            for r in measures
        ],
        findings=findings(verdicts),
        verdict=" ".join([summary(verdicts), *map(_worse, changes)]).rstrip(),
        verdicts=verdicts,
        warnings=warnings + [MeasurementWarning("unread", sentence) for sentence in left_out],
        stack=stack,
        history=changes if keep else msgspec.UNSET,
    )


def _worse(changes: Changes) -> str:
    """What has become worse of a drive, in one sentence; "" if nothing has."""
    if not changes.regressions:
        return ""
    reasons = "; ".join(regression.says for regression in changes.regressions)
    return f"Worse than before: {changes.drive}: {reasons}."


def _sentence(unread: Unread) -> str:
    command = f"; {unread.command}" if unread.command else ""
    return f"{unread.what}: {unread.why}{command}"

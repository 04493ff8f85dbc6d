"""Runs `ssdlab heal` on files or a device, and prints the result."""

from __future__ import annotations

import time
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from ssdlab.cli.bar import progress_bar
from ssdlab.cli.output import write_out
from ssdlab.errors import Interrupted, TargetError
from ssdlab.heal.device import whole
from ssdlab.heal.file import heal_file, select_files
from ssdlab.heal.methods.copy import remove_leftovers
from ssdlab.heal.options import DeviceOptions, HealOptions
from ssdlab.heal.outcome import FileOutcome, HealReport, MapRow, verdict
from ssdlab.records import encode_json
from ssdlab.runner.consent import describe_device
from ssdlab.runner.progress import Listener, Report
from ssdlab.storage_stack.blockdev import device_at, is_block_device
from ssdlab.target import Consent
from ssdlab.units import format_size
from ssdlab.wording import plain


def heal_files(paths: list[Path], options: HealOptions, *, json: bool, quiet: bool) -> int:
    """Heals files; returns the exit status.

    Raises:
        TargetError: a path does not exist, or the only file was refused.
    """
    started = time.monotonic()
    files, small = select_files(paths)
    report = HealReport(version("ssdlab"), options.dry_run, 0.0, [], "", small_files=small)
    if not options.dry_run:
        report.leftovers = _remove_leftovers(files)
    console = Console(stderr=True)
    for path in files:
        with progress_bar(console, f"heal {path}", quiet=quiet) as listener:
            outcome = heal_file(path, options, ProgressReporter(listener))
        _refuse_only_file(outcome, files)
        report.files.append(outcome)
        if outcome.interrupted:
            break
    return _finish(report, started, json=json, quiet=quiet)


def heal_device(
    device: Path, options: DeviceOptions, in_place: Consent, *, json: bool, quiet: bool
) -> int:
    """Heals a device; returns the exit status.

    Raises:
        TargetError: `in_place` does not name the device, or it must not be rewritten.
    """
    if not options.heal.dry_run:
        _require_consent(device, in_place)
    started = time.monotonic()
    with progress_bar(Console(stderr=True), f"heal {device}", quiet=quiet) as listener:
        outcome = whole.heal_device(device, options, ProgressReporter(listener))
    report = HealReport(version("ssdlab"), options.heal.dry_run, 0.0, [outcome], "")
    return _finish(report, started, json=json, quiet=quiet)


def recover_device(device: Path, journal: Path, *, json: bool) -> int:
    """Restores data torn by a crash, and thaws the file system; returns the exit status."""
    recovered = whole.recover_device(device, journal)
    if json:
        counts = {"compared": recovered.compared, "restored_bytes": recovered.restored_bytes}
        write_out(encode_json({**counts, "thawed": recovered.thawed}))
        return 0
    restored = (
        f"{recovered.restored_bytes} torn bytes were restored"
        if recovered.restored_bytes
        else "no data was torn"
    )
    if recovered.thawed:
        restored = f"the file system was still frozen and is thawed now; {restored}"
    Console().print(f"{device}: {restored}; the journal is removed", markup=False, soft_wrap=True)
    return 0


def _require_consent(device: Path, in_place: Consent) -> None:
    """Refuses unless `--in-place` names the same device: everything in use will be rewritten."""
    if not is_block_device(device):
        raise TargetError(f"{device} is not a block device: give one, such as /dev/sdb1")
    named = Path(in_place.device)
    if in_place.device and is_block_device(named) and _number(named) == _number(device):
        return
    if in_place.given:
        raise TargetError(f"--in-place names {in_place}, but the device is {device}: name that one")
    raise TargetError(
        f"{describe_device(device, device_at(device))} would be rewritten in place; --dry-run "
        f"shows the plan; if you have a backup, give --in-place={device}"
    )


def _number(node: Path) -> int:
    return node.stat().st_rdev


def _remove_leftovers(files: list[Path]) -> list[str]:
    folders = dict.fromkeys(path.resolve().parent for path in files)
    return [str(removed) for folder in folders for removed in remove_leftovers(folder)]


def _refuse_only_file(outcome: FileOutcome, files: list[Path]) -> None:
    """Raises an error if the only file was refused: nothing was done."""
    if outcome.refused is not None and len(files) == 1:
        raise TargetError(f"{outcome.path} was left unchanged: {outcome.refused.sentence}")


def _finish(report: HealReport, started: float, *, json: bool, quiet: bool) -> int:
    report.interrupted = any(outcome.interrupted for outcome in report.files)
    report.verdict = verdict(report.files, dry_run=report.dry_run)
    report.duration_s = round(time.monotonic() - started, 3)
    if json:
        write_out(encode_json(report))
    else:
        render(report, Console())
    if report.interrupted and not quiet:
        hint = "interrupted: run the same command again to continue"
        Console(stderr=True).print(hint, markup=False, soft_wrap=True)
    return Interrupted.exit_status if report.interrupted else 0


STRIP_COLUMNS: Final = 64
LEVELS: Final = "▁▂▃▄▅▆▇█"


class ProgressReporter:
    """A `ProgressCallback` that reports the bytes done of a phase, with the time left."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._label, self._started, self._first_done = "", 0.0, 0

    def __call__(self, label: str, done: int, total: int) -> None:
        """Reports `done` of `total` bytes of the phase `label`."""
        now = time.monotonic()
        if label != self._label or done < self._first_done:
            self._label, self._started, self._first_done = label, now, done
        progress = done - self._first_done
        left_s = (now - self._started) * (total - done) / progress if progress else None
        share = done / total if total else 1.0
        text = f"{label}, {format_size(done)} of {format_size(total)}"
        self._listener(Report(text, share, share, left_s))


def render(report: HealReport, console: Console) -> None:
    """Prints the result."""
    for outcome in report.files:
        _print_outcome(outcome, report, console)
    if report.small_files:
        _print(console, f"{report.small_files} files of less than 1 MiB were skipped.")
    for path in report.leftovers:
        _print(console, f"{path}, left by a run that was killed, was removed.")
    console.print(plain(report.verdict), style="bold", markup=False, highlight=False)


def _print_outcome(outcome: FileOutcome, report: HealReport, console: Console) -> None:
    console.print(plain(outcome.path), style="bold", markup=False, highlight=False, soft_wrap=True)
    if outcome.refused is not None:
        _print(console, f"  left unchanged: {outcome.refused.sentence}")
        return
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 2))
    for name, value in _rows(outcome, dry_run=report.dry_run):
        table.add_row(name, plain(value))
    console.print(table)
    for reason in filter(None, (outcome.not_timed, outcome.only_measured)):
        _print(console, f"  ! {reason.sentence}")


def _rows(outcome: FileOutcome, *, dry_run: bool) -> list[tuple[str, str]]:
    what = "device" if (outcome.way or "").startswith("in place") else "file"
    size = format_size(outcome.size_bytes)
    before, after = _speed(outcome.before_mib_per_s), _speed(outcome.after_mib_per_s)
    rows = [
        (what, f"{size}, {outcome.file_system}, method: {outcome.way}"),
    ]
    if outcome.not_timed is None:
        fresh = f"{_speed(outcome.fresh_mib_per_s)} (from {outcome.fresh_from})"
        rows += [("fresh speed", fresh), ("before", f"{before}  {_strip(outcome, after=False)}")]
    if outcome.after_mib_per_s is not None:
        rows.append(("after", f"{after}  {_strip(outcome, after=True)}"))
    share = outcome.planned_bytes / outcome.size_bytes if outcome.size_bytes else 0.0
    planned = format_size(outcome.planned_bytes)
    count = f"{len(outcome.plan)} range{'' if len(outcome.plan) == 1 else 's'}"
    label = "to be rewritten" if outcome.only_measured is None else "slow or chosen"
    rows.append((label, f"{planned} in {count}, {share:.1%} of the {what}"))
    if outcome.days_of_endurance is not None:
        days = f"{outcome.days_of_endurance:.2g} days of the drive's warranted writes"
        rows.append(("wear", days))
    if outcome.restored_bytes:
        rows.append(("restored", f"{format_size(outcome.restored_bytes)} torn by a crash"))
    if not dry_run and outcome.planned_bytes:
        rows.append(("rewritten", _rewritten(outcome)))
    if outcome.longest_freeze_ms is not None:
        rows.append(("longest freeze", f"{outcome.longest_freeze_ms:.0f} ms"))
    if outcome.why:
        left = format_size(sum(length for _, length in outcome.left))
        rows.append(("not rewritten", f"{left}: {outcome.why}"))
    return rows


def _rewritten(outcome: FileOutcome) -> str:
    text = f"{format_size(outcome.moved_bytes)} with {format_size(outcome.written_bytes)} of writes"
    if outcome.extents_after is None:
        return text
    return f"{text}, {outcome.extents_before} to {outcome.extents_after} extents"


def _strip(outcome: FileOutcome, *, after: bool) -> str:
    """The map as bars, one for each equal part of the pieces; its slowest piece sets the height."""
    fresh = outcome.fresh_mib_per_s
    if not outcome.map or not fresh:
        return ""
    columns = min(STRIP_COLUMNS, len(outcome.map))
    edges = [len(outcome.map) * number // columns for number in range(columns + 1)]
    return "".join(_column(outcome.map[a:b], fresh, after=after) for a, b in pairwise(edges))


def _column(rows: list[MapRow], fresh: float, *, after: bool) -> str:
    speeds = [row.after_mib_per_s if after else row.before_mib_per_s for row in rows]
    known = [speed for speed in speeds if speed is not None]
    if not known:
        return " "
    level = int(min(known) / fresh * (len(LEVELS) - 1) + 0.5)
    return LEVELS[max(0, min(len(LEVELS) - 1, level))]


def _speed(mib_per_s: float | None) -> str:
    return "not measured" if mib_per_s is None else f"{mib_per_s:.0f} MiB/s"


def _print(console: Console, text: str) -> None:
    console.print(plain(text), markup=False, highlight=False, soft_wrap=True)

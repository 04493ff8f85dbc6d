"""Runs `ssdlab heal` on files or a device, and prints the result."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from ssdlab.cli.bar import progress_bar
from ssdlab.cli.heal.output import ProgressReporter, render
from ssdlab.cli.output import write_out
from ssdlab.errors import Interrupted, TargetError
from ssdlab.heal.device import whole
from ssdlab.heal.file import heal_file
from ssdlab.heal.methods.copy import remove_leftovers
from ssdlab.heal.options import DeviceOptions, HealOptions
from ssdlab.heal.outcome import FileOutcome, HealReport, verdict
from ssdlab.heal.select_files import select_files
from ssdlab.records import encode_json
from ssdlab.runner.consent import describe_device
from ssdlab.storage_stack.blockdev import device_at, is_block_device
from ssdlab.target import Consent


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
    """Restores data torn by a crash, and thaws; returns the exit status."""
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
    """If the only file was refused, that is an error: nothing was done."""
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

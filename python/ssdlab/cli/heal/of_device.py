"""`ssdlab heal --device`: a whole device is rewritten in place, or mended after a crash."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ssdlab.cli.bar import shown
from ssdlab.cli.heal.output import Telling
from ssdlab.cli.heal.words import render
from ssdlab.cli.output import write_out
from ssdlab.errors import Interrupted, TargetError, UsageError
from ssdlab.heal.device.whole import DeviceWish, heal_device, recover_device
from ssdlab.heal.outcome import Healed, verdict
from ssdlab.records import encode_json
from ssdlab.runner.consent import describe_device
from ssdlab.storage_stack.blockdev import device_at, is_block_device

Device = Annotated[
    Path | None,
    typer.Option(
        metavar="DEVICE",
        help="Instead of files: all that the file system of this device has in use, in place.",
    ),
]
Journal = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Of a device: what is in hand, on another drive."),
]
InPlace = Annotated[
    str, typer.Option(metavar="DEVICE", help="The device once more: it may be rewritten.")
]
Recover = Annotated[
    bool, typer.Option("--recover", help="Of a device: put back what a crash tore, thaw, no more.")
]
Freeze = Annotated[
    int,
    typer.Option(
        metavar="MS", min=20, max=5000, help="Of a mounted device: freeze it at most so long."
    ),
]


def heal_whole(device: Path, asked: DeviceWish, in_place: str, *, json: bool, quiet: bool) -> int:
    """Heals a device; the exit status.

    Raises:
        UsageError: it was not named twice, or its journal is missing.
    """
    if not asked.wish.dry_run:
        _require_consent(device, in_place)
    started = time.monotonic()
    console = Console(stderr=True)
    with shown(console, f"heal {device}", quiet=quiet) as listener:
        found = heal_device(device, asked, Telling(listener).tell)
    healed = Healed(version("ssdlab"), asked.wish.dry_run, 0.0, [found], "")
    healed.interrupted = found.interrupted
    healed.verdict = verdict(healed.files, dry_run=healed.dry_run)
    healed.duration_s = round(time.monotonic() - started, 3)
    if json:
        write_out(encode_json(healed))
    else:
        render(healed, Console())
    if found.interrupted and not quiet:
        words = "interrupted: the same command goes on where this one ended"
        console.print(words, markup=False, soft_wrap=True)
    return Interrupted.exit_status if found.interrupted else 0


def mend(device: Path, journal: Path | None, *, json: bool) -> int:
    """Puts back what a crash tore, and thaws what was left frozen; the exit status.

    Raises:
        UsageError: no journal was given.
    """
    if journal is None:
        raise UsageError("--recover takes the --journal FILE of the run that was interrupted")
    found = recover_device(device, journal)
    if json:
        told = {"compared": found.compared, "restored_bytes": found.restored_bytes}
        write_out(encode_json({**told, "thawed": found.thawed}))
        return 0
    words = (
        f"{found.restored_bytes} bytes were torn and are put back"
        if found.restored_bytes
        else "nothing was torn"
    )
    if found.thawed:
        words = f"it was left frozen, and is thawed; {words}"
    Console().print(f"{device}: {words}; the journal is removed", markup=False, soft_wrap=True)
    return 0


def _require_consent(device: Path, named: str) -> None:
    """Rewriting loses nothing by itself, but touches all that is in use: it is asked for twice."""
    if not is_block_device(device):
        raise TargetError(f"{device} is not a block device: give one, such as /dev/sdb1")
    if named and is_block_device(Path(named)) and _number(Path(named)) == _number(device):
        return
    if named:
        raise TargetError(f"--in-place names {named}, but the device is {device}: name that one")
    raise TargetError(
        f"{describe_device(device, device_at(device))} would be rewritten in place; --dry-run "
        f"shows what; if you have a backup, give --in-place={device}"
    )


def _number(node: Path) -> int:
    return node.stat().st_rdev

"""`ssdlab heal`: files that read slowly since they were written at random get their order back."""

from __future__ import annotations

import re
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from ssdlab.cli import options
from ssdlab.cli.bar import progress_bar
from ssdlab.cli.heal import of_device
from ssdlab.cli.heal.output import Telling
from ssdlab.cli.heal.words import render
from ssdlab.cli.output import write_out
from ssdlab.errors import Interrupted, TargetError, UsageError
from ssdlab.heal.device.frozen import FREEZE_MS
from ssdlab.heal.device.whole import DeviceWish
from ssdlab.heal.file import heal_file
from ssdlab.heal.methods.copy import remove_leftovers
from ssdlab.heal.options import PIECE_BYTES, SLOWER_THAN, Wish
from ssdlab.heal.outcome import FileOutcome, Healed, verdict
from ssdlab.heal.progress import state_folder
from ssdlab.heal.select_files import files_meant
from ssdlab.records import encode_json
from ssdlab.units import format_size, parse_size

PIECE_LEAST: Final = 64 << 10
PIECE_MOST: Final = 1 << 30

app = typer.Typer(add_completion=False)


@app.command(
    name="heal",
    epilog="Example: ssdlab heal /var/lib/db/orders.ibd --dry-run",
)
def heal(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...", help="Files, or directories that hold them.", show_default=False
        ),
    ] = None,
    *,
    device: of_device.Device = None,
    journal: of_device.Journal = None,
    in_place: of_device.InPlace = "",
    freeze: of_device.Freeze = FREEZE_MS,
    recovers: of_device.Recover = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Measure and show the plan; write nothing.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Rewrite all of it, however fast it reads.")
    ] = False,
    ranges: Annotated[
        str, typer.Option(metavar="FROM-TO,...", help="Rewrite these: 0-64MiB,1GiB-1.5GiB.")
    ] = "",
    slower_than: Annotated[
        float, typer.Option(help="A piece below this share of the fresh speed is slow.")
    ] = SLOWER_THAN,
    fresh: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The fresh speed, a second: 500MiB.")
    ] = None,
    piece: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Measure by pieces of it: 1MiB, of a device 4MiB."),
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Also files whose blocks copies or snapshots share.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Makes files that were written at random read fast again, while they are in use.

    Measures how fast each piece reads, rewrites in order only what is slow, measures again. The
    content stays the same, whoever writes to it meanwhile; nothing else is touched. With --device,
    all that a file system has in use is written over itself: unmounted, or ext4 mounted and frozen
    for parts of a second, as by ssdlab heal --device /dev/sdb1 --journal FILE --in-place /dev/sdb1.
    """
    if recovers and device is not None:
        return of_device.mend(device, journal, json=json)
    _require_one(paths, device, for_device=bool(journal or in_place or recovers))
    if everything and ranges:
        raise UsageError("--all and --ranges are given; give one of them, or none to measure")
    wish = Wish(
        dry_run=dry_run,
        everything=everything,
        chosen=_ranges(ranges),
        piece_bytes=_piece(piece or ("1MiB" if device is None else "4MiB")),
        slower_than=_share(slower_than),
        fresh_bytes_per_s=None if fresh is None else float(_positive("--fresh", fresh)),
        shared=shared,
        state=state_folder(),
    )
    if device is not None:
        return of_device.heal_whole(
            device, DeviceWish(wish, journal, freeze), in_place, json=json, quiet=quiet
        )
    return _heal_files(paths or [], wish, json=json, quiet=quiet)


def _require_one(paths: list[Path] | None, device: Path | None, *, for_device: bool) -> None:
    if paths and device is not None:
        raise UsageError("files and --device are given; give one of them")
    if not paths and device is None:
        raise UsageError("nothing is given to heal; give files, directories, or --device DEVICE")
    if device is None and for_device:
        raise UsageError("--journal, --in-place and --recover belong to --device DEVICE")


def _heal_files(paths: list[Path], wish: Wish, *, json: bool, quiet: bool) -> int:
    dry_run = wish.dry_run
    started = time.monotonic()
    meant, small = files_meant(paths)
    healed = Healed(version("ssdlab"), dry_run, 0.0, [], "", small_files=small)
    if not dry_run:
        healed.leftovers = _clear(meant)
    console = Console(stderr=True)
    for path in meant:
        with progress_bar(console, f"heal {path}", quiet=quiet) as listener:
            found = heal_file(path, wish, Telling(listener).tell)
        _refuse_alone(found, meant)
        healed.files.append(found)
        if found.interrupted:
            healed.interrupted = True
            break
    healed.verdict = verdict(healed.files, dry_run=dry_run)
    healed.duration_s = round(time.monotonic() - started, 3)
    if json:
        write_out(encode_json(healed))
    else:
        render(healed, Console())
    return _status(healed, console, quiet=quiet)


def _refuse_alone(found: FileOutcome, meant: list[Path]) -> None:
    """A refusal of the only file is an error: nothing was done."""
    if found.refused is not None and len(meant) == 1:
        raise TargetError(f"{found.path} stays as it is: {found.refused.sentence}")


def _status(healed: Healed, console: Console, *, quiet: bool) -> int:
    if not healed.interrupted:
        return 0
    if not quiet:
        words = "interrupted: the same command goes on where this one ended"
        console.print(words, markup=False, soft_wrap=True)
    return Interrupted.exit_status


def _clear(meant: list[Path]) -> list[str]:
    folders = dict.fromkeys(path.resolve().parent for path in meant)
    return [str(gone) for folder in folders for gone in remove_leftovers(folder)]


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        first, dash, last = part.partition("-")
        try:
            start, end = (parse_size(each) for each in (first, last))
        except UsageError as error:
            raise UsageError(f"--ranges: {error}") from error
        if not dash or start >= end:
            raise UsageError(f"--ranges has {part!r}; it may be FROM-TO, FROM below TO: 0-64MiB")
        found.append((start, end - start))
    return tuple(found)


def _piece(text: str) -> int:
    size = parse_size(text)
    if not PIECE_LEAST <= size <= PIECE_MOST or size & (size - 1):
        raise UsageError(
            f"--piece is {text}; it may be a power of two from 64KiB to 1GiB, such as "
            f"{format_size(PIECE_BYTES).replace(' ', '')}"
        )
    return size


def _share(share: float) -> float:
    if not 0 < share <= 1:
        raise UsageError(f"--slower-than is {share:g}; it may be a share from 0.01 to 1")
    return share


def _positive(name: str, text: str) -> int:
    size = parse_size(re.sub(r"/s$", "", text))
    if not size:
        raise UsageError(f"{name} is {text}; it may be a speed such as 500MiB")
    return size

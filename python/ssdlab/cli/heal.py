"""`ssdlab heal`: the options. Heavy imports are inside the function: help needs none of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from ssdlab.cli import options
from ssdlab.errors import UsageError
from ssdlab.heal.options import (
    FREEZE_MS,
    PIECE_BYTES,
    SLOWER_THAN,
    DeviceOptions,
    HealOptions,
    default_state_folder,
)
from ssdlab.target import NO_CONSENT, Consent, parse_consent
from ssdlab.units import format_size, parse_size

MIN_PIECE_BYTES: Final = 64 << 10
MAX_PIECE_BYTES: Final = 1 << 30

Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", help="Files, or directories that hold them.", show_default=False
    ),
]
Device = Annotated[
    Path | None,
    typer.Option(
        metavar="DEVICE",
        help="Instead of files: rewrite in place all space in use on this device.",
    ),
]
Journal = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="With --device: the journal file; it must be on another drive."
    ),
]
InPlace = Annotated[
    Consent,
    typer.Option(
        parser=parse_consent,
        metavar="DEVICE",
        show_default=False,
        help="With --device: name the device again to confirm that it may be rewritten.",
    ),
]
Freeze = Annotated[
    int,
    typer.Option(
        metavar="MS",
        min=20,
        max=5000,
        help="With --device, if mounted: longest freeze in milliseconds.",
    ),
]
Recover = Annotated[
    bool,
    typer.Option("--recover", help="With --device: only restore data torn by a crash, and thaw."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Measure and show the plan; write nothing.")
]
Everything = Annotated[
    bool, typer.Option("--all", help="Rewrite everything, whether it reads slowly or not.")
]
Ranges = Annotated[
    str, typer.Option(metavar="FROM-TO,...", help="Rewrite these bytes: 0-64MiB,1GiB-1.5GiB.")
]
SlowerThan = Annotated[
    float, typer.Option(help="A piece below this fraction of the fresh speed is slow.")
]
Fresh = Annotated[
    str | None, typer.Option(metavar="SIZE", help="The fresh speed per second: 500MiB.")
]
PieceSize = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Size of a measured piece: 1MiB, with --device 4MiB."),
]
Shared = Annotated[
    bool, typer.Option("--shared", help="Also files that share blocks with copies or snapshots.")
]

app = typer.Typer(add_completion=False)


@app.command(name="heal", epilog="Example: ssdlab heal /var/lib/db/orders.ibd --dry-run")
def heal(
    paths: Paths = None,
    *,
    device: Device = None,
    journal: Journal = None,
    in_place: InPlace = NO_CONSENT,
    freeze: Freeze = FREEZE_MS,
    recovers: Recover = False,
    dry_run: DryRun = False,
    everything: Everything = False,
    ranges: Ranges = "",
    slower_than: SlowerThan = SLOWER_THAN,
    fresh: Fresh = None,
    piece: PieceSize = None,
    shared: Shared = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Make randomly written files read fast again, even while they are in use.

    Measures how fast each piece reads, rewrites only the slow pieces, in order, and measures again.
    The content stays the same, also with concurrent writers; no other file is changed. With
    --device, everything that a file system has in use is rewritten in place: unmounted, or an ext4
    that is mounted, frozen for a fraction of a second at a time. Example: ssdlab heal --device
    /dev/sdb1 --journal FILE --in-place /dev/sdb1.
    """
    if recovers and device is not None:
        if journal is None:
            raise UsageError("--recover needs the --journal FILE of the interrupted run")
        from ssdlab.cli.heal_run import recover_device

        return recover_device(device, journal, json=json)
    _require_one(paths, device, for_device=bool(journal or in_place.given or recovers))
    if everything and ranges:
        raise UsageError("--all and --ranges are given; give one of them, or none to measure")
    request = HealOptions(
        dry_run=dry_run,
        everything=everything,
        ranges=_ranges(ranges),
        piece_bytes=_piece(piece or ("1MiB" if device is None else "4MiB")),
        slower_than=_fraction(slower_than),
        fresh_bytes_per_s=None if fresh is None else float(_speed(fresh)),
        shared=shared,
        state_folder=default_state_folder(),
    )
    from ssdlab.cli.heal_run import heal_device, heal_files

    if device is not None:
        device_request = DeviceOptions(request, journal, freeze)
        return heal_device(device, device_request, in_place, json=json, quiet=quiet)
    return heal_files(paths or [], request, json=json, quiet=quiet)


def _require_one(paths: list[Path] | None, device: Path | None, *, for_device: bool) -> None:
    if paths and device is not None:
        raise UsageError("files and --device are given; give one of them")
    if not paths and device is None:
        raise UsageError("nothing to heal is given; give files, directories, or --device DEVICE")
    if device is None and for_device:
        raise UsageError("--journal, --in-place and --recover need --device DEVICE")


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    ranges = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        try:
            start, end = (parse_size(size) for size in (first, last))
        except UsageError as error:
            raise UsageError(f"--ranges: {error}") from error
        if not dash or start >= end:
            raise UsageError(f"--ranges has {part!r}; give FROM-TO with FROM below TO: 0-64MiB")
        ranges.append((start, end - start))
    return tuple(ranges)


def _piece(text: str) -> int:
    size = parse_size(text)
    if not MIN_PIECE_BYTES <= size <= MAX_PIECE_BYTES or size & (size - 1):
        raise UsageError(
            f"--piece is {text}; it must be a power of two from 64KiB to 1GiB, such as "
            f"{format_size(PIECE_BYTES).replace(' ', '')}"
        )
    return size


def _fraction(value: float) -> float:
    if not 0 < value <= 1:
        raise UsageError(f"--slower-than is {value:g}; it must be above 0 and at most 1: 0.8")
    return value


def _speed(text: str) -> int:
    size = parse_size(re.sub(r"/s$", "", text))
    if not size:
        raise UsageError(f"--fresh is {text}; it must be a speed per second, such as 500MiB")
    return size

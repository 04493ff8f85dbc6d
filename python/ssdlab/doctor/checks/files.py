"""Files: fragmentation, and regions that read slower than others.

The reference speed is the 90th percentile over all pieces: what this drive delivers when nothing
slows it down. A slow region is a run of adjacent pieces that read at less than half of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ssdlab.doctor.checks.verdict import (
    Severity,
    Verdict,
    experiment_target,
    is_buffered_loop,
    is_hardware,
)
from ssdlab.snapshot import File, Piece, Snapshot
from ssdlab.units import format_size

MIB: Final = 1 << 20
SMALL, TINY = 1 << 20, 256 << 10
"""Mean fragment sizes. Below SMALL, reads are split into more requests; above it, only the
placement on the drive matters."""
SLOW: Final = 0.5
PIECES_MIN: Final = 8
UNSTEADY: Final = 0.5
BAD, WARN = 2.0, 1.25
"""Slowdown: read time divided by the time at the reference speed."""


@dataclass(frozen=True)
class Region:
    """Adjacent slow pieces of a file: byte range, and mean MiB/s."""

    start: int
    end: int
    mib_per_s: float


def judge(snapshot: Snapshot) -> Iterator[Verdict]:
    """Codes: fragmented, aged-regions, map-unsteady, reads-even."""
    for file in snapshot.files:
        yield from _fragmented(snapshot, file)
    yield from _map(snapshot)


def _fragmented(snapshot: Snapshot, file: File) -> Iterator[Verdict]:
    if not file.extents or not file.allocated_bytes or file.extents < 16:
        return
    mean = file.allocated_bytes / file.extents
    if mean >= SMALL or "compressed" in file.flags:
        return
    degree = file.extents / (file.ideal_extents or 1)
    yield Verdict(
        code="fragmented",
        severity="warn" if mean < TINY else "note",
        where=file.path,
        says=f"The file has {file.extents} fragments, {format_size(mean)} on average.",
        evidence=f"FIEMAP: {file.extents} extents, ideally {file.ideal_extents}: degree of "
        f"fragmentation {degree:.3g}",
        costs="reads are split into more requests; and if the fragments were written in this "
        "order, some of them conflict on the same dies",
        remedy=_defragment(snapshot, file),
        proof=f"ssdlab run fragments {experiment_target(snapshot)}",
        value=round(degree, 3),
    )


def _defragment(snapshot: Snapshot, file: File) -> str:
    kind = snapshot.mounts[0].fs_type if snapshot.mounts else ""
    path = shlex.quote(file.path)
    return {
        "ext4": f"sudo e4defrag -v {path}",
        "xfs": f"sudo xfs_fsr -v {path}",
        "btrfs": f"sudo btrfs filesystem defragment {path}",
    }.get(kind, _copy(file))


def _copy(file: File) -> str:
    return (
        f"f={shlex.quote(file.path)}\n"
        'cp --reflink=never --preserve=all "$f" "$f.new" && sync "$f.new" && mv "$f.new" "$f"'
    )


def reference_mib_per_s(files: Sequence[File]) -> float | None:
    """The 90th percentile of all pieces' speeds; None if there are too few pieces."""
    speeds = sorted(speed(piece) for file in files for piece in file.pieces)
    if len(speeds) < PIECES_MIN:
        return None
    return speeds[int(0.9 * (len(speeds) - 1))]


def speed(piece: Piece) -> float:
    """MiB/s of one piece."""
    return piece.length / MIB / max(piece.seconds, 1e-9)


def slowdown(file: File, reference: float) -> float:
    """Read time of the file's pieces divided by the time at the reference speed (MiB/s)."""
    took = sum(piece.seconds for piece in file.pieces)
    return took * reference / (sum(piece.length for piece in file.pieces) / MIB)


def regions(file: File, reference: float) -> list[Region]:
    """The slow regions, in the order of the file."""
    slow_regions = []
    for slow, group in groupby(file.pieces, lambda piece: speed(piece) < SLOW * reference):
        if not slow:
            continue
        members = list(group)
        amount = sum(piece.length for piece in members)
        took = sum(piece.seconds for piece in members)
        last = members[-1]
        slow_regions.append(
            Region(members[0].offset, last.offset + last.length, amount / MIB / max(took, 1e-9))
        )
    return slow_regions


def _map(snapshot: Snapshot) -> Iterator[Verdict]:
    reference = reference_mib_per_s(snapshot.files)
    if reference is None or any(map(is_buffered_loop, snapshot.devices)):
        return  # too little was read, or the page cache of a backing file answered
    disturbed = any(map(is_unsteady, snapshot.files))  # the cause may have affected all files
    slow = [] if disturbed else [file for file in snapshot.files if _is_slow(file, reference)]
    for file in slow:
        yield _aged(snapshot, file, reference)
    yield from _unsteady(snapshot)
    mapped = [file for file in snapshot.files if len(file.pieces) >= PIECES_MIN]
    if mapped and not slow and not disturbed:
        read = sum(piece.length for file in mapped for piece in file.pieces)
        yield Verdict(
            code="reads-even",
            severity="good",
            where=", ".join(file.path for file in mapped),
            says="The files read at a uniform speed: no region has aged.",
            evidence=f"{format_size(read)} read past the page cache; 90th percentile "
            f"{reference:.0f} MiB/s",
            value=round(reference, 1),
            unit="MiB/s",
        )


def _is_slow(file: File, reference: float) -> bool:
    enough = len(file.pieces) >= PIECES_MIN
    return enough and slowdown(file, reference) >= WARN and bool(regions(file, reference))


def is_unsteady(file: File) -> bool:
    """Whether repeated reads of most slow pieces took different times."""
    return (file.unsteady or 0.0) > UNSTEADY


def _unsteady(snapshot: Snapshot) -> Iterator[Verdict]:
    disturbed = [file for file in snapshot.files if is_unsteady(file)]
    if disturbed:
        yield Verdict(
            code="map-unsteady",
            severity="note",
            where=", ".join(file.path for file in disturbed),
            says="The map of read speeds is unreliable: repeated reads of the same place differ.",
            evidence="of the slow pieces, "
            + ", ".join(f"{file.unsteady or 0:.0%}" for file in disturbed)
            + " took at least 1.5 times as long in another reading",
            costs="other work on this machine or its host disturbed the measurement",
            remedy=f"ssdlab doctor {shlex.quote(snapshot.target)}   # when the machine is idle",
            value=max(file.unsteady or 0.0 for file in disturbed),
        )


def _count(found: Sequence[Region]) -> str:
    return "one slow region," if len(found) == 1 else f"{len(found)} slow regions, the slowest"


def _days(days: float) -> str:
    return "1 day" if round(days) == 1 else f"{days:.0f} days"


def _aged(snapshot: Snapshot, file: File, reference: float) -> Verdict:
    times = slowdown(file, reference)
    slow = regions(file, reference)
    worst = min(slow, key=lambda region: region.mib_per_s)
    severity: Severity = "bad" if times >= BAD else "warn"
    if not any(is_hardware(drive) for drive in snapshot.drives):
        severity = "note"  # a virtual disk's host can cause the same
    age = "" if file.written_days is None else f"; last written {_days(file.written_days)} ago"
    return Verdict(
        code="aged-regions",
        severity=severity,
        where=file.path,
        says=f"Reading it takes {times:.1f} times as long as at the speed of its fast parts.",
        evidence=f"{_count(slow)} from {format_size(worst.start)} to {format_size(worst.end)} "
        f"at {worst.mib_per_s:.0f} MiB/s; reference {reference:.0f} MiB/s{age}",
        costs=f"a read of the whole file takes {times:.1f} times as long",
        remedy=f"ssdlab heal --dry-run {shlex.quote(file.path)}\n"
        f"ssdlab heal {shlex.quote(file.path)}",
        risk="the slow pieces are rewritten once; heal refuses files that it must not touch "
        "(docs/heal.md)",
        proof=f"ssdlab run aging {experiment_target(snapshot)}",
        value=round(times, 3),
        unit="x",
    )

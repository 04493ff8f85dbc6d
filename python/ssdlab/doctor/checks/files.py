"""Files: how fragmented they are, and which of their regions read slower than the rest.

The reference of a map is the speed that a tenth of all pieces exceed: what this drive gives where
nothing is in its way. A region is what lies together and reads at less than half of that.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ssdlab.doctor.checks.verdict import Severity, Verdict, is_hardware, place
from ssdlab.snapshot import File, Piece, Snapshot
from ssdlab.units import format_size

MIB: Final = 1 << 20
SMALL, TINY = 1 << 20, 256 << 10
"""Mean fragments below which reads are split; above, the order on the drive decides."""
SLOW: Final = 0.5
LEAST_PIECES: Final = 8
UNSTEADY: Final = 0.5
BAD, WARN = 2.0, 1.25
"""Times as long as at the reference's speed."""


@dataclass(frozen=True)
class Region:
    """Pieces of a file that lie together and are slow: bytes, and MiB/s in the mean."""

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
        says=f"The file is in {file.extents} fragments of {format_size(mean)} in the mean.",
        evidence=f"FIEMAP: {file.extents} extents where {file.ideal_extents} would do, a degree of "
        f"fragmentation of {degree:.3g}",
        costs="reads are split into more requests; and if it was written in this order, its parts "
        "meet on the same dies",
        remedy=_defragment(snapshot, file),
        proof=f"ssdlab run fragments {place(snapshot)}",
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
    """The speed that a tenth of all pieces of all files exceed; None of too few pieces."""
    speeds = sorted(speed(piece) for file in files for piece in file.pieces)
    if len(speeds) < LEAST_PIECES:
        return None
    return speeds[int(0.9 * (len(speeds) - 1))]


def speed(piece: Piece) -> float:
    """MiB/s of one piece."""
    return piece.length / MIB / max(piece.seconds, 1e-9)


def slowdown(file: File, reference: float) -> float:
    """How many times as long the file's pieces took as at the reference's speed."""
    took = sum(piece.seconds for piece in file.pieces)
    return took * reference / (sum(piece.length for piece in file.pieces) / MIB)


def regions(file: File, reference: float) -> list[Region]:
    """What lies together and is slow, in the order of the file."""
    found = []
    for slow, group in groupby(file.pieces, lambda piece: speed(piece) < SLOW * reference):
        if not slow:
            continue
        members = list(group)
        amount = sum(piece.length for piece in members)
        took = sum(piece.seconds for piece in members)
        last = members[-1]
        found.append(
            Region(members[0].offset, last.offset + last.length, amount / MIB / max(took, 1e-9))
        )
    return found


def _map(snapshot: Snapshot) -> Iterator[Verdict]:
    reference = reference_mib_per_s(snapshot.files)
    if reference is None:
        return
    shaken = any(map(is_unsteady, snapshot.files))  # what shook one may have shaken all
    slow = [] if shaken else [file for file in snapshot.files if _is_slow(file, reference)]
    for file in slow:
        yield _aged(snapshot, file, reference)
    yield from _unsteady(snapshot)
    told = [file for file in snapshot.files if len(file.pieces) >= LEAST_PIECES]
    if told and not slow and not shaken:
        read = sum(piece.length for file in told for piece in file.pieces)
        yield Verdict(
            code="reads-even",
            severity="good",
            where=", ".join(file.path for file in told),
            says="The files that were read are read at one speed: no region has aged.",
            evidence=f"{format_size(read)} in pieces past the page cache; a tenth of them faster "
            f"than {reference:.0f} MiB/s",
            value=round(reference, 1),
            unit="MiB/s",
        )


def _is_slow(file: File, reference: float) -> bool:
    enough = len(file.pieces) >= LEAST_PIECES
    return enough and slowdown(file, reference) >= WARN and bool(regions(file, reference))


def is_unsteady(file: File) -> bool:
    """Whether most of what stayed slow was not slow alike."""
    return (file.unsteady or 0.0) > UNSTEADY


def _unsteady(snapshot: Snapshot) -> Iterator[Verdict]:
    shaken = [file for file in snapshot.files if is_unsteady(file)]
    if shaken:
        yield Verdict(
            code="map-unsteady",
            severity="note",
            where=", ".join(file.path for file in shaken),
            says="The map of read speeds cannot be trusted: the same places read at other speeds.",
            evidence="of the pieces that stayed slow, "
            + ", ".join(f"{file.unsteady or 0:.0%}" for file in shaken)
            + " read at other speeds each time (by half and more)",
            costs="this machine or its host was busy with something else",
            remedy=f"ssdlab doctor {shlex.quote(snapshot.target)}   # when it is quiet",
            value=max(file.unsteady or 0.0 for file in shaken),
        )


def _counted(found: Sequence[Region]) -> str:
    return "one slow region," if len(found) == 1 else f"{len(found)} slow regions, the slowest"


def _days(days: float) -> str:
    return "1 day" if round(days) == 1 else f"{days:.0f} days"


def _aged(snapshot: Snapshot, file: File, reference: float) -> Verdict:
    times = slowdown(file, reference)
    found = regions(file, reference)
    worst = min(found, key=lambda region: region.mib_per_s)
    severity: Severity = "bad" if times >= BAD else "warn"
    if not any(is_hardware(drive) for drive in snapshot.drives):
        severity = "note"  # a host's cache and neighbours do the same
    age = "" if file.written_days is None else f"; last written {_days(file.written_days)} ago"
    return Verdict(
        code="aged-regions",
        severity=severity,
        where=file.path,
        says=f"Reading it takes {times:.1f} times as long as at the speed of its fast parts.",
        evidence=f"{_counted(found)} from {format_size(worst.start)} to {format_size(worst.end)} "
        f"at {worst.mib_per_s:.0f} MiB/s where {reference:.0f} are usual{age}",
        costs=f"a read of the whole file takes {times:.1f} times as long",
        remedy=f"ssdlab heal --dry-run {shlex.quote(file.path)}\n"
        f"ssdlab heal {shlex.quote(file.path)}",
        risk="the slow pieces are written once more; what it must not touch it refuses "
        "(docs/heal.md)",
        proof=f"ssdlab run aging {place(snapshot)}",
        value=round(times, 3),
        unit="x",
    )

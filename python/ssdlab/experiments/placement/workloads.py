"""Workloads of placement: a file written piece by piece, with other files written in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ssdlab.device import WriteHint

KIB: Final = 1 << 10
MIB: Final = 1 << 20
FILE: Final = 8 * MIB
"""Bytes of the file that is read."""
PIECE: Final = 32 * KIB
WORST_GAP: Final = 224 * KIB
"""Bytes of other files between two pieces; a piece and a gap fill a stripe of 256 KiB."""
COMMAND_MAX: Final = 256 * KIB

CONTIGUOUS: Final = "contiguous"
IN_PLACE: Final = "append worst, in its place"
FRESH_WORKLOADS: Final = (
    CONTIGUOUS,
    "append worst",
    "append random",
    "overwrite worst",
    "overwrite random",
    IN_PLACE,
    *(f"append random, {size} KiB" for size in (4, 8, 16, 64, 128)),
    "4 writers, 16 KiB",
    "4 writers, 32 KiB",
)
STEADY_WORKLOADS: Final = (
    CONTIGUOUS,
    "append worst",
    IN_PLACE,
    "append random",
    "overwrite worst",
    "overwrite random",
    "append random, 4 KiB",
)

Pieces = list[tuple[int, int]]
"""(offset, length) in bytes, in the order of the file."""
Writes = list[tuple[int, int, WriteHint]]
"""(offset, length, hint) in the order of writing."""


@dataclass(frozen=True)
class Space:
    """The addresses that a workload may use: files begin at `start`.

    On a full drive, `full_range` (first, end) holds old data, and the files written between the
    pieces overwrite random parts of it. The pieces then have adjacent addresses if the file is
    preallocated ("in its place"), and scattered ones otherwise.
    """

    start: int = 0
    full_range: tuple[int, int] | None = None


@dataclass
class Workload:
    """The pieces of the file to read, and the writes that make it.

    With `filled_first`, the file is written sequentially before that.
    """

    pieces: Pieces = field(default_factory=list)
    writes: Writes = field(default_factory=list)
    filled_first: bool = False


def make_workload(name: str, space: Space, seed: int) -> Workload:
    """The workload of this name; its writes have hints, which `steps.write` may remove."""
    if name == CONTIGUOUS:
        pieces = [(space.start + at, MIB) for at in range(0, FILE, MIB)]
        return Workload(pieces, [], filled_first=True)
    parts = name.split(", ")
    piece = int(parts[-1].removesuffix(" KiB")) * KIB if parts[-1].endswith("KiB") else PIECE
    if parts[0].endswith("writers"):
        return _interleaved(space, int(parts[0].split()[0]), piece)
    gaps = _gaps("random" in parts[0], f"{name} {seed}")
    return _overwritten(space, gaps) if "overwrite" in name else _appended(space, name, piece, gaps)


def _gaps(at_random: bool, seed: str) -> Iterator[int]:
    stream = random.Random(seed)
    while True:
        yield stream.randint(1, 32) * PIECE if at_random else WORST_GAP


class _OtherFiles:
    """Addresses of the files written between the pieces: after `start`, or in the full range."""

    def __init__(self, space: Space, start: int) -> None:
        self.next = start
        self._full_range = space.full_range
        self._stream = random.Random(start)

    def write(self, length: int) -> Writes:
        """Writes of a new file; the first write to a file has no hint."""
        at = self.next
        if self._full_range is not None:
            first, end = self._full_range
            at = first + self._stream.randrange((end - first - length) // PIECE) * PIECE
        else:
            self.next += length
        return [
            (at + part, min(COMMAND_MAX, length - part), "nothing")
            for part in range(0, length, COMMAND_MAX)
        ]


def _append_hint(pieces: Pieces) -> WriteHint:
    return {"after": sum(pieces[-1]) - 1} if pieces else "nothing"


def _appended(space: Space, name: str, piece: int, gaps: Iterator[int]) -> Workload:
    """Pieces in a separate range ("in its place" or on a full drive), or between other files."""
    workload = Workload()
    own_range = name == IN_PLACE or space.full_range is not None
    others = _OtherFiles(space, space.start + (FILE if own_range else 0))
    # Scattered, so that addresses do not show which pieces belong together.
    scattered = space.full_range is not None and name != IN_PLACE
    count = FILE // piece
    for number in range(count):
        # 37 and the count are coprime: all slots are used, never two neighbours in a row.
        slot = number * 37 % count if scattered else number
        at = space.start + slot * piece if own_range else others.next
        others.next += 0 if own_range else piece
        workload.writes.append((at, piece, _append_hint(workload.pieces)))
        workload.pieces.append((at, piece))
        workload.writes += others.write(next(gaps))
    return workload


def _overwritten(space: Space, gaps: Iterator[int]) -> Workload:
    workload = Workload([(space.start, FILE)], [], filled_first=True)
    others = _OtherFiles(space, space.start + FILE)
    for at in range(space.start, space.start + FILE, PIECE):
        workload.writes.append((at, PIECE, "overwrite"))
        workload.writes += others.write(next(gaps))
    return workload


def _interleaved(space: Space, writers: int, piece: int) -> Workload:
    """Files that grow in turn in one range of addresses; the second file is read."""
    writes: Writes = []
    files = [Pieces() for _ in range(writers)]
    for number in range(FILE // piece):
        for writer, pieces in enumerate(files):
            at = space.start + (number * writers + writer) * piece
            writes.append((at, piece, _append_hint(pieces)))
            pieces.append((at, piece))
    return Workload(files[1], writes)

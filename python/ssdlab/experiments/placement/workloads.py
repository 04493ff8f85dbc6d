"""The workloads: which bytes are written in which order, and where the file is after that."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ssdlab.device import WriteHint

KIB: Final = 1 << 10
MIB: Final = 1 << 20
FILE: Final = 8 * MIB
"""The file that is read."""
PIECE: Final = 32 * KIB
WORST_GAP: Final = 224 * KIB
"""What is written between two pieces at worst: with a piece it makes a stripe of 256 KiB."""
LONGEST: Final = 256 * KIB

CONTIGUOUS: Final = "contiguous"
IN_PLACE: Final = "append worst, in its place"
FRESH_WORK: Final = (
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
STEADY_WORK: Final = (
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
Listing = list[tuple[int, int, WriteHint]]
"""(offset, length, what the write says) in the order of writing."""


@dataclass(frozen=True)
class Ground:
    """Where a workload may write: files from `start` on, what lies between them too if it has room.

    A drive that is full gets what is written between a file's pieces anywhere in the `rest`, over
    what is there; then the pieces lie side by side by address, where their file has its place, or
    far apart where it has not.
    """

    start: int = 0
    rest: tuple[int, int] | None = None


@dataclass
class Work:
    """What is done: the file in order first where it is overwritten, then the writes."""

    pieces: Pieces = field(default_factory=list)
    writes: Listing = field(default_factory=list)
    filled_first: bool = False


def made(name: str, ground: Ground, seed: int) -> Work:
    """The workload of this name; hints are in it, for drives that are told."""
    if name == CONTIGUOUS:
        return Work([(ground.start + at, MIB) for at in range(0, FILE, MIB)], [], filled_first=True)
    words = name.split(", ")
    piece = int(words[-1].removesuffix(" KiB")) * KIB if words[-1].endswith("KiB") else PIECE
    if words[0].endswith("writers"):
        return _together(ground, int(words[0].split()[0]), piece)
    gaps = _gaps("random" in words[0], f"{name} {seed}")
    return (
        _overwritten(ground, gaps) if "overwrite" in name else _appended(ground, name, piece, gaps)
    )


def _gaps(drawn: bool, seed: str) -> Iterator[int]:
    stream = random.Random(seed)
    while True:
        yield stream.randint(1, 32) * PIECE if drawn else WORST_GAP


class _Between:
    """Where the files between go: behind everything, or over what fills the drive."""

    def __init__(self, ground: Ground, start: int) -> None:
        self.next = start
        self._rest = ground.rest
        self._stream = random.Random(start)

    def write(self, length: int) -> Listing:
        """A file of its own; nothing is said of the first write to one."""
        at = self.next
        if self._rest is not None:
            first, end = self._rest
            at = first + self._stream.randrange((end - first - length) // PIECE) * PIECE
        else:
            self.next += length
        parts = range(0, length, LONGEST)
        return [(at + part, min(LONGEST, length - part), "nothing") for part in parts]


def _after(pieces: Pieces) -> WriteHint:
    return {"after": sum(pieces[-1]) - 1} if pieces else "nothing"


def _appended(ground: Ground, name: str, piece: int, gaps: Iterator[int]) -> Work:
    """Pieces side by side where the file has its place, else with the files between among them."""
    work = Work()
    apart = name == IN_PLACE or ground.rest is not None
    between = _Between(ground, ground.start + (FILE if apart else 0))
    # The drive cannot know by address which pieces belong together.
    scattered = ground.rest is not None and name != IN_PLACE
    for number in range(FILE // piece):
        place = _scattered(number, FILE // piece) if scattered else number
        at = ground.start + place * piece if apart else between.next
        between.next += 0 if apart else piece
        work.writes.append((at, piece, _after(work.pieces)))
        work.pieces.append((at, piece))
        work.writes += between.write(next(gaps))
    return work


def _scattered(number: int, count: int) -> int:
    """Another order of so many places, in which no two neighbours follow each other."""
    return number * 37 % count


def _overwritten(ground: Ground, gaps: Iterator[int]) -> Work:
    work = Work([(ground.start, FILE)], [], filled_first=True)
    between = _Between(ground, ground.start + FILE)
    for at in range(ground.start, ground.start + FILE, PIECE):
        work.writes.append((at, PIECE, "overwrite"))
        work.writes += between.write(next(gaps))
    return work


def _together(ground: Ground, writers: int, piece: int) -> Work:
    """Files that grow by turns, in one stretch of addresses; the second one is read."""
    work, files = Work(), [Pieces() for _ in range(writers)]
    for number in range(FILE // piece):
        for writer, pieces in enumerate(files):
            at = ground.start + (number * writers + writer) * piece
            work.writes.append((at, piece, _after(pieces)))
            pieces.append((at, piece))
    work.pieces = files[1]
    return work

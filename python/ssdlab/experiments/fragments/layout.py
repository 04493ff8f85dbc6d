"""Where the pieces of a fragmented file lie: how many, how far apart, evenly or at random."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.experiments.fragments.parameters import Gap
from ssdlab.storage_stack.extents import Extent

KIB: Final = 1 << 10
MIB: Final = 1 << 20
WINDOW: Final = 8 * MIB
"""The file that is read."""
COMMAND: Final = 256 * KIB
"""The largest command by which it is read: what the study's drives took, by its times."""
GRAIN: Final = 4 * KIB
"""Pieces begin at a multiple of it: a block of the file system."""

Pieces = tuple[tuple[int, int], ...]
"""(offset, length) in bytes, in the order of the file."""


@dataclass(frozen=True)
class Layout:
    """A file of `WINDOW` bytes in `degree` pieces, each in its own stretch of `distance` bytes.

    "worst": each at the same place of its stretch, so that the layout repeats after `distance`; if
    that is a multiple of the drive's stripe, all pieces begin on one die. "random": each at a
    random place of its stretch.
    """

    gap: Gap
    degree: int
    distance: int

    @property
    def piece(self) -> int:
        """Bytes of a piece."""
        return WINDOW // self.degree

    @property
    def command(self) -> int:
        """Bytes of a command: a piece, or what of it fits."""
        return min(self.piece, COMMAND)

    @property
    def span(self) -> int:
        """Bytes from the start of the first stretch to the end of the last."""
        return self.degree * self.distance

    @property
    def places(self) -> int:
        """How many places in a stretch a piece has without overlap."""
        return self.distance // self.piece

    def pieces(self, seed: int, draw: int) -> Pieces:
        """The pieces from offset 0 on; another `draw` shifts them all, or draws them anew."""
        if self.gap == "worst":
            shift = draw % self.places * self.piece
            starts = [number * self.distance + shift for number in range(self.degree)]
        else:
            stream = random.Random(f"fragments {seed} {self.degree} {draw}")
            # Never at the very end: the next one may be at the start of its stretch.
            grains = (self.distance - self.piece) // GRAIN
            starts = [
                number * self.distance + stream.randrange(grains) * GRAIN
                for number in range(self.degree)
            ]
        return tuple((start, self.piece) for start in starts)


def moved(pieces: Pieces, by: int) -> Pieces:
    """The pieces `by` bytes further on."""
    return tuple((offset + by, length) for offset, length in pieces)


def in_order(degree: int, offset: int = 0) -> Pieces:
    """The window at `offset` in as many pieces, that follow each other; the last comes first.

    Backwards, so that a drive which reads ahead does not hide what small commands cost: it cannot
    read ahead in a fragmented file either.
    """
    piece = WINDOW // degree
    return tuple((offset + number * piece, piece) for number in reversed(range(degree)))


def gaps_between(pieces: Pieces, size: int) -> Pieces:
    """What lies between the pieces and around them in `size` bytes; the last comes first.

    From the end on, so that cutting one out leaves the others where they are.
    """
    ends = [0, *(offset + length for offset, length in pieces)]
    starts = [*(offset for offset, _ in pieces), size]
    found = [(end, start - end) for end, start in zip(ends, starts, strict=True) if start > end]
    return tuple(reversed(found))


def stays_whole(pieces: Pieces, extents: Sequence[Extent]) -> bool:
    """Whether the file's extents (by `logical`) divide no piece and join no two.

    They must cover the pieces.
    """
    places: list[tuple[int, int]] = []
    at = 0
    for offset, length in pieces:
        while at < len(extents) and extents[at].end <= offset:
            at += 1
        if at == len(extents) or extents[at].logical > offset or extents[at].end < offset + length:
            return False
        begin = extents[at].physical + offset - extents[at].logical
        places.append((begin, begin + length))
    return all(left[1] != right[0] for left, right in itertools.pairwise(places))


@dataclass(frozen=True)
class Seen:
    """What a file's merged extents show: pieces, pieces behind the one after, gaps as asked."""

    pieces: int
    lengths: tuple[int, ...]
    jumps_back: int
    distances_met: int


def seen(extents: Iterable[Extent], wanted: Pieces) -> Seen:
    """Holds merged extents against the pieces that they were to become.

    `distances_met` counts the neighbours that lie as far apart as they were meant to.
    """
    found = tuple(extents)
    steps = [b.physical - a.physical for a, b in itertools.pairwise(found)]
    asked = [b[0] - a[0] for a, b in itertools.pairwise(wanted)]
    return Seen(
        pieces=len(found),
        lengths=tuple(extent.length for extent in found),
        jumps_back=sum(step < 0 for step in steps),
        distances_met=sum(a == b for a, b in zip(steps, asked, strict=False)),
    )

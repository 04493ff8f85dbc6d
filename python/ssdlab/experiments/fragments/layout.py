"""Layout of a fragmented file: number, distance and gaps of its pieces."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.experiments.fragments.parameters import Gap
from ssdlab.storage_stack.extents import Extent

KIB: Final = 1 << 10
MIB: Final = 1 << 20
WINDOW: Final = 8 * MIB
"""Bytes of the file that is read."""
COMMAND: Final = 256 * KIB
"""The largest read command of the study's drives, inferred from its read times."""
ALIGNMENT: Final = 4 * KIB
"""Offsets of pieces are multiples of a file system block."""
JITTER: Final = 0.06
"""Less than the gaps between ten draws."""

Pieces = tuple[tuple[int, int], ...]
"""(offset, length) in bytes, in the order of the file."""


@dataclass(frozen=True)
class Layout:
    """A file of `WINDOW` bytes in `degree` pieces, one in each slot of `distance` bytes.

    "worst": all pieces are at the same offset in their slots. If `distance` is a multiple of the
    drive's stripe, they all begin on one die. "random": each piece is at a random offset.
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
        """Bytes of a read command."""
        return min(self.piece, COMMAND)

    @property
    def span(self) -> int:
        """Bytes from the start of the first slot to the end of the last."""
        return self.degree * self.distance

    def pieces(self, seed: int, draw: int) -> Pieces:
        """The pieces, with the first slot at offset 0. Another `draw` gives other offsets."""
        if self.gap == "worst":
            shift = spread(draw, self.distance // self.piece) * self.piece
            starts = [number * self.distance + shift for number in range(self.degree)]
        else:
            stream = random.Random(f"fragments {seed} {self.degree} {draw}")
            # Never at the end of a slot, where it could touch the piece of the next slot.
            offsets = (self.distance - self.piece) // ALIGNMENT
            starts = [
                number * self.distance + stream.randrange(offsets) * ALIGNMENT
                for number in range(self.degree)
            ]
        return tuple((start, self.piece) for start in starts)


def spread(draw: int, count: int) -> int:
    """The place of a draw among `count` places: few draws already cover all of them evenly.

    Multiples of the golden ratio, modulo 1, leave gaps of nearly equal length. A random part of up
    to `JITTER` keeps them from being all in every second row of dies, or on pages of one type.
    """
    jitter = JITTER * random.Random(f"draw {draw}").random() if draw else 0.0
    return int((draw * (math.sqrt(5) - 1) / 2 + jitter) % 1 * count)


def shifted(pieces: Pieces, by: int) -> Pieces:
    """The pieces with `by` added to their offsets."""
    return tuple((offset + by, length) for offset, length in pieces)


def contiguous(degree: int, offset: int = 0) -> Pieces:
    """The window at `offset` as `degree` adjacent pieces, listed from last to first.

    The order is reversed because read-ahead would hide the cost of small commands, and a drive
    cannot read ahead in a fragmented file either.
    """
    piece = WINDOW // degree
    return tuple((offset + number * piece, piece) for number in reversed(range(degree)))


def gaps_between(pieces: Pieces, size: int) -> Pieces:
    """The gaps before, between and after the pieces in a file of `size` bytes, last to first.

    In this order, collapsing one gap does not move those that follow in the list.
    """
    ends = [0, *(offset + length for offset, length in pieces)]
    starts = [*(offset for offset, _ in pieces), size]
    gaps = [(end, start - end) for end, start in zip(ends, starts, strict=True) if start > end]
    return tuple(reversed(gaps))


def fits_extents(pieces: Pieces, extents: Sequence[Extent]) -> bool:
    """Whether each piece is inside one extent, and no two pieces are adjacent on the drive.

    `extents` are the file's, sorted by logical offset.
    """
    physical: list[tuple[int, int]] = []
    at = 0
    for offset, length in pieces:
        while at < len(extents) and extents[at].end <= offset:
            at += 1
        if at == len(extents) or extents[at].logical > offset or extents[at].end < offset + length:
            return False
        start = extents[at].physical + offset - extents[at].logical
        physical.append((start, start + length))
    return all(left[1] != right[0] for left, right in itertools.pairwise(physical))


@dataclass(frozen=True)
class ActualLayout:
    """The layout that a file has on the drive.

    `jumps_back` counts extents that start before the previous one, `distances_met` counts pairs of
    neighbours at the planned distance.
    """

    pieces: int
    lengths: tuple[int, ...]
    jumps_back: int
    distances_met: int


def actual_layout(extents: Iterable[Extent], planned: Pieces) -> ActualLayout:
    """Compares a file's merged extents with the planned pieces."""
    extents = tuple(extents)
    distances = [b.physical - a.physical for a, b in itertools.pairwise(extents)]
    planned_distances = [b[0] - a[0] for a, b in itertools.pairwise(planned)]
    return ActualLayout(
        pieces=len(extents),
        lengths=tuple(extent.length for extent in extents),
        jumps_back=sum(distance < 0 for distance in distances),
        distances_met=sum(a == b for a, b in zip(distances, planned_distances, strict=False)),
    )

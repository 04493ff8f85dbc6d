"""Units that have several chunks in a stripe.

If planes read independently, a unit is a plane. It has several chunks in a stripe where a chunk of
the drive has several pages in each plane, or where a page has several chunks. In both cases its
chunks are equally far apart, one after the other, and all units have as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ssdlab.experiments.stripe.probes import Procedure

Conflict = Callable[[int, int], Procedure[bool]]
"""Whether two addresses are on one unit."""
UNITS: Final = 32
"""The most chunks that are compared with the first one, besides its neighbours."""
NEIGHBOURS: Final = 8
"""The next chunks, which are compared with the first one: planes may take turns within a chunk."""
COUNTED: Final = 4
"""The most chunks, besides the first one, for which those of their unit are counted."""


@dataclass(frozen=True)
class Repeats:
    """Each unit has `count` chunks in a stripe, `distance` bytes from one to the next."""

    count: int
    distance: int | None


ONCE: Final = Repeats(1, None)
"""Each unit has one chunk in a stripe."""


@dataclass(frozen=True)
class Chunks:
    """The chunks of a stripe, in bytes: all of length `chunk`, one of them at `first`."""

    stripe: int
    first: int
    chunk: int

    def spaced(self, most: int) -> list[int]:
        """Starts of about `most` evenly spaced chunks, and of the last, without the first."""
        others = self.stripe // self.chunk - 1
        chosen = {1 + number * others // min(most, others) for number in range(min(most, others))}
        return [self.first + number * self.chunk for number in sorted(chosen | {others})]

    def compared(self) -> list[int]:
        """Starts of the chunks that are compared with the first one."""
        nearest = min(NEIGHBOURS + 1, self.stripe // self.chunk)
        near = [self.first + number * self.chunk for number in range(1, nearest)]
        return sorted({*near, *self.spaced(UNITS)})

    def divisors(self) -> list[int]:
        """Distances in the stripe that divide it and are whole chunks, the smallest first."""
        count = self.stripe // self.chunk
        return [number * self.chunk for number in range(1, count) if count % number == 0]


def find_repeats(chunks: Chunks, conflict: Conflict) -> Procedure[Repeats | None]:
    """How often each unit occurs in a stripe; None if some occur more often than others."""
    distance = yield from _distance(chunks, conflict)
    if distance is None:
        return ONCE
    own = yield from _of_unit(chunks, chunks.first, distance, conflict)
    count = len(own)
    if chunks.stripe % (count * distance):
        return None
    for begin in chunks.compared():
        is_own = begin % chunks.stripe in own
        if not is_own and (yield from conflict(chunks.first, begin)):
            return None
    for begin in chunks.spaced(COUNTED):
        others = yield from _of_unit(chunks, begin, distance, conflict)
        if len(others) != count:
            return None
    return Repeats(count, distance)


def _distance(chunks: Chunks, conflict: Conflict) -> Procedure[int | None]:
    """The least distance at which a chunk is on the same unit as the first; None without one.

    The first chunk may be the last of its unit, so that the others are before it.
    """
    after = {begin - chunks.first for begin in chunks.compared()}
    divisors = chunks.divisors()
    for distance in sorted(after.union(divisors)):
        if (yield from conflict(chunks.first, chunks.first + distance)):
            return distance
        if distance in divisors and (yield from conflict(chunks.first, chunks.first - distance)):
            return distance
    return None


def _of_unit(chunks: Chunks, begin: int, distance: int, conflict: Conflict) -> Procedure[set[int]]:
    """Starts in the stripe of the chunks on the same unit as that at `begin`."""
    found = {begin % chunks.stripe}
    for step in (distance, -distance):
        at = begin + step
        while at % chunks.stripe not in found and (yield from conflict(begin, at)):
            found.add(at % chunks.stripe)
            at += step
    return found

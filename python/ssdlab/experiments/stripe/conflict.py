"""Questions put to a drive by random reads of chosen places, and what an answer says of them.

Reads of one *unit* of conflict wait for each other: at queue depth 32 each waits for 31 others, and
all take as long. Reads of two units meet queues of different and changing lengths: their latencies
lie far apart, and together they are faster. So the spread of latencies and the rate tell whether
places share a unit: two witnesses, of which the first needs no comparison and no quiet clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ssdlab.stats.quantile import quantile

KIB: Final = 1 << 10
GRAIN: Final = 4 * KIB
"""Bytes of a read, and what every offset is a multiple of: no edge is seen finer."""
NARROW: Final = 0.55
"""Up to this spread reads went through one queue. A die whose pages take 8, 18 and 48 us: 0.36."""
WIDE: Final = 0.8
"""From this spread on they met several queues. Two equal dies: 1.2 and more."""
SAME: Final = 1.12
"""Two places together are at most so much faster than one, if they share a unit (with noise)."""
OTHER: Final = 1.35
"""And at least so much, if they do not. On one channel, two dies may gain little."""
READINGS_MAX: Final = 8
"""Of one question, where its answers are not clear: 5 % of noise become 2 %."""


@dataclass(frozen=True)
class Ask:
    """Random reads of `block_bytes` at `offsets` + any multiple of `period` (all in bytes)."""

    period: int
    offsets: tuple[int, ...] = (0,)
    block_bytes: int = GRAIN

    @property
    def name(self) -> str:
        """Its words: what identifies it among a run's steps."""
        places = "" if self.offsets == (0,) else " + " + " or ".join(map(_kib, self.offsets))
        by = "" if self.block_bytes == GRAIN else f", by {_kib(self.block_bytes)}"
        return f"every {_kib(self.period)}{places}{by}"


@dataclass(frozen=True)
class Reading:
    """An answer: the rate, and by how much latencies differ ((p90 - p10) / p50)."""

    mib_per_s: float
    spread: float


Answer = TypeVar("Answer")
Inquiry: TypeAlias = Generator[Ask, Reading, Answer]
"""Asks, is sent a reading for each ask, and returns what it found out.

The same readings lead to the same questions: so an experiment asks a drive, and later the analysis
goes the same way through what was recorded.
"""


@dataclass
class Book:
    """All readings so far, by question."""

    _readings: dict[str, list[Reading]] = field(default_factory=dict)

    def count(self, ask: Ask) -> int:
        """How often it was asked."""
        return len(self._readings.get(ask.name, ()))

    def rate(self, ask: Ask) -> float:
        """The median of the rates, in MiB/s; it was asked at least once."""
        return statistics.median(reading.mib_per_s for reading in self._readings[ask.name])

    def spread(self, ask: Ask) -> float:
        """The median of the spreads."""
        return statistics.median(reading.spread for reading in self._readings[ask.name])

    def note(self, ask: Ask, reading: Reading) -> None:
        """Adds an answer."""
        self._readings.setdefault(ask.name, []).append(reading)


def ask_until(book: Book, ask: Ask, times: int) -> Inquiry[None]:
    """Asks until there are so many readings."""
    while book.count(ask) < times:
        reading = yield ask
        book.note(ask, reading)


def one_queue(book: Book, ask: Ask) -> Inquiry[bool | None]:
    """Whether all these reads went through one queue; None where that stays unclear."""
    yield from ask_until(book, ask, 2)
    while NARROW < book.spread(ask) < WIDE and book.count(ask) < READINGS_MAX:
        yield from ask_until(book, ask, book.count(ask) + 1)
    if NARROW < book.spread(ask) < WIDE:
        return None
    return book.spread(ask) <= NARROW


def share_a_unit(book: Book, ask: Ask) -> Inquiry[bool | None]:
    """Whether the two offsets of a question, each on one unit, are on the same; None: unclear.

    Several queues: they are not. One queue: they are, or two dies wait for one channel; then both
    together are faster than the faster of them.
    """
    alone = [Ask(ask.period, (offset,)) for offset in ask.offsets]
    single = yield from one_queue(book, ask)
    if not single:
        return single
    yield from ask_until(book, alone[0], 2)
    for times in range(2, READINGS_MAX + 1):
        yield from ask_until(book, ask, times)
        if book.rate(ask) <= SAME * _best(book, alone):
            return True
        for each in alone:
            yield from ask_until(book, each, times)
        if book.rate(ask) >= OTHER * _best(book, alone):
            return False
    return None


def _best(book: Book, asks: Sequence[Ask]) -> float:
    return max(book.rate(ask) for ask in asks if book.count(ask))


def answered(inquiry: Inquiry[Answer], answer: Callable[[Ask], Reading | None]) -> Answer | None:
    """Goes through an inquiry; None where an answer is missing before its end."""
    try:
        ask = next(inquiry)
        while (reading := answer(ask)) is not None:
            ask = inquiry.send(reading)
    except StopIteration as end:
        found: Answer = end.value
        return found
    return None


def reading_of(
    seconds: float, size_bytes: int, latency_ns: NDArray[np.uint64], counts: NDArray[np.uint64]
) -> Reading:
    """A reading from what a step recorded: its time, its bytes, the histogram of its latencies."""
    values, weights = latency_ns.astype(np.float64), counts.astype(np.int64)
    low, middle, high = (quantile(values, weights, share) for share in (0.1, 0.5, 0.9))
    return Reading(size_bytes / seconds / (1 << 20), (high - low) / middle)


def _kib(size: int) -> str:
    return f"{size // KIB} KiB"

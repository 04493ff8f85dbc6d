"""How consecutive addresses lie over a drive's units: the questions to ask, one after the other.

A *period* is a distance at which addresses lie on the same unit; the least is the stripe. Reads at
multiples of an alignment touch stripe / gcd(stripe, alignment) chunks, so an alignment that is a
multiple of the stripe touches one unit. From there places are compared in pairs: the chunk is where
the next unit begins. At last the layout that was found is put to the test at places chosen at
random. Whatever does not fit leaves no guess behind: there is no regular stripe then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ssdlab.experiments.stripe.conflict import (
    GRAIN,
    KIB,
    Ask,
    Book,
    Inquiry,
    ask_until,
    one_queue,
    share_a_unit,
)

MIB: Final = 1 << 20
CURVE_MAX: Final = 4 * MIB
"""The curve goes so far, and further by halves while it still falls."""
PLACES_MIN: Final = 16
"""An alignment leaves at least so many places in the region."""
FALLS: Final = 1.4
"""One unit is slower than all together by this at least: two dies are 1.9 times as fast as one."""
LOWER: Final = 0.85
"""A multiple of a period that is slower by more than noise may be the true one."""
ODD: Final = (3, 5, 7, 9, 11, 13, 15, 21, 25, 27, 33, 35, 39, 45, 49, 55, 63, 65, 75, 77, 91, 105)
"""Odd parts of channels x dies, for up to 16 channels of up to 8 dies."""
GROWTH: Final = (2, 3, 4, 5, 6, 7, 8)
EDGES: Final = 8
"""Chunks whose ends are tested, where there are more."""
UNITS: Final = 32
"""Chunks that are held against the first one, where there are more."""
TRANSFER_BOUND: Final = 0.65
"""A unit that does so few reads of twice the size may be moving data all the time."""
CHANNEL_LEAST: Final = 158.0
"""MiB/s of a channel (ONFI 2.1). A slower unit senses: where a page is 4 KiB, each of two pages."""


@dataclass(frozen=True)
class Limits:
    """Where questions may go: bytes of the region that was written, repeats of the curve."""

    region_bytes: int
    repeats: int

    def fits(self, period: int) -> bool:
        """Whether an alignment leaves places enough."""
        return self.region_bytes // period >= PLACES_MIN


@dataclass(frozen=True)
class Rates:
    """What reads did in MiB/s: on one unit, on two neighbours, where conflicts are fewest."""

    alone: float
    both: float
    best: float


@dataclass(frozen=True)
class Layout:
    """What was found, in bytes; None where it is not regular, and `why` says so in a sentence."""

    chunk: int | None
    stripe: int | None
    why: str
    rates: Rates | None = None

    @property
    def units(self) -> int | None:
        """Units that a stripe goes over."""
        return self.stripe // self.chunk if self.stripe and self.chunk else None


@dataclass
class _Search:
    limits: Limits
    book: Book = field(default_factory=Book)

    @property
    def powers(self) -> list[int]:
        """The alignments of the curve that were asked for, ascending."""
        sizes = [GRAIN << shift for shift in range(32)]
        return [size for size in sizes if self.book.count(Ask(size))]

    @property
    def best(self) -> float:
        """The rate where conflicts are fewest, in MiB/s."""
        return max(self.book.rate(Ask(size)) for size in self.powers)

    def rate(self, period: int) -> float:
        """The rate at an alignment that was asked for."""
        return self.book.rate(Ask(period))


def search(limits: Limits) -> Inquiry[Layout]:
    """Finds the layout by asking; ends with what is known."""
    state = _Search(limits)
    yield from _curve(state)
    start = yield from _some_period(state)
    if start is None:
        return Layout(None, None, _no_period(state))
    stripe = yield from _least_period(state, start)
    chunk = yield from _chunk(state, stripe)
    if chunk is None:
        return Layout(None, None, f"what lies {_kib(stripe)} apart conflicts, but no chunk is seen")
    why = yield from _contradiction(state, stripe, *chunk)
    if why:
        return Layout(None, None, why)
    first, size = chunk
    pair = Ask(stripe, tuple(sorted((0, first % stripe))))
    rates = Rates(state.rate(stripe), state.book.rate(pair), state.best)
    return Layout(size, stripe, _tested(stripe, size), rates)


def _curve(state: _Search) -> Inquiry[None]:
    """Powers of two, taking turns; further ones while the last doubling still slows reads."""
    sizes = [GRAIN << shift for shift in range((CURVE_MAX // GRAIN).bit_length())]
    sizes = [size for size in sizes if state.limits.fits(size)]
    for repeat in range(state.limits.repeats):
        for size in sizes:
            yield from ask_until(state.book, Ask(size), repeat + 1)
    last = sizes[-1]
    while state.limits.fits(2 * last) and state.rate(last) < LOWER * state.rate(last // 2):
        last *= 2
        yield from ask_until(state.book, Ask(last), state.limits.repeats)


def _some_period(state: _Search) -> Inquiry[int | None]:
    """An alignment that touches one unit alone: a power of two, or one times an odd number."""
    for size in state.powers:
        if (yield from _is_one_unit(state, size)):
            return (yield from _grown(state, size))
    for base in _bases(state):
        for odd in ODD:
            if state.limits.fits(base * odd) and (yield from _is_one_unit(state, base * odd)):
                return (yield from _grown(state, base * odd))
    return None


def _bases(state: _Search) -> list[int]:
    """Powers of two that may hold all twos of the stripe, the likeliest first."""
    floor = min(state.rate(size) for size in state.powers)
    level = min(size for size in state.powers if state.rate(size) <= floor / LOWER)
    likely = 2 * level if level > GRAIN else 256 * KIB
    return list(dict.fromkeys((likely, 256 * KIB, CURVE_MAX)))


def _is_one_unit(state: _Search, period: int) -> Inquiry[bool]:
    """Whether an alignment has one queue, which is not that of something all share."""
    ask = Ask(period)
    yield from ask_until(state.book, ask, 1)
    if state.book.rate(ask) * FALLS > state.best:
        return False
    single = yield from one_queue(state.book, ask)
    return single is True


def _grown(state: _Search, period: int) -> Inquiry[int]:
    """A multiple of it, where the queue was not a unit's but that of a channel with several."""
    longer = [size for size in state.powers if size > period]
    candidates = [period * factor for factor in GROWTH] + longer
    for size in sorted(set(candidates)):
        if not state.limits.fits(size):
            continue
        yield from ask_until(state.book, Ask(size), 2)
        if state.rate(size) >= LOWER * state.rate(period):
            continue
        pair = Ask(size, (0, period))
        if (yield from share_a_unit(state.book, pair)) is False:
            return (yield from _grown(state, size))
    return period


def _least_period(state: _Search, period: int) -> Inquiry[int]:
    """The least period that divides a period."""
    for prime in (2, 3, 5, 7, 11, 13):
        while period % (prime * GRAIN) == 0 and period // prime > GRAIN:
            shorter = period // prime
            if not (yield from _is_one_unit(state, shorter)):
                break
            pair = Ask(period, (0, shorter))
            if not (yield from share_a_unit(state.book, pair)):
                break
            period = shorter
    return period


def _chunk(state: _Search, stripe: int) -> Inquiry[tuple[int, int] | None]:
    """Where the second chunk begins, and how long it is; None where no edge is found."""
    first = yield from _edge(state, stripe, 0)
    if first is None:
        return None
    second = yield from _edge(state, stripe, first)
    return None if second is None else (first, second)


def _edge(state: _Search, stripe: int, start: int) -> Inquiry[int | None]:
    """How far from `start` its unit reaches, in bytes."""
    inside, outside = 0, 0
    for shift in range((stripe // GRAIN).bit_length()):
        apart = GRAIN << shift
        if apart >= stripe:
            break
        same = yield from _same(state, stripe, start, start + apart)
        if same is False:
            outside = apart
            break
        inside = apart
    if not outside:
        return None
    while outside - inside > GRAIN:
        middle = (inside + outside) // 2 // GRAIN * GRAIN
        same = yield from _same(state, stripe, start, start + middle)
        inside, outside = (inside, middle) if same is False else (middle, outside)
    return outside


def _same(state: _Search, stripe: int, one: int, other: int) -> Inquiry[bool | None]:
    places = tuple(sorted((one % stripe, other % stripe)))
    return (yield from share_a_unit(state.book, Ask(stripe, places)))


def _contradiction(state: _Search, stripe: int, first: int, chunk: int) -> Inquiry[str]:
    """What does not fit the layout, in a sentence; "" where all does."""
    if stripe % chunk or stripe // chunk < 2:
        return f"chunks of {_kib(chunk)} do not fill the {_kib(stripe)} after which it repeats"
    for begin in _begins(stripe, first, chunk, EDGES):
        if chunk > GRAIN:
            same = yield from _same(state, stripe, begin, begin + chunk - GRAIN)
            if same is not True:
                return f"not every chunk is {_kib(chunk)} long"
        if (yield from _same(state, stripe, begin - GRAIN, begin)) is not False:
            return f"no new unit begins {_kib(begin % stripe)} into the stripe"
    for begin in _begins(stripe, first, chunk, UNITS):
        if (yield from _same(state, stripe, first, begin)) is not False:
            return f"a unit comes twice in {_kib(stripe)}"
    return (yield from _hidden_dies(state, stripe, first, chunk))


def _begins(stripe: int, first: int, chunk: int, most: int) -> list[int]:
    """Where chunks begin: all but the one at `first`, or `most` of them, evenly chosen."""
    others = stripe // chunk - 1
    chosen = {1 + number * others // min(most, others) for number in range(min(most, others))}
    return [first + number * chunk for number in sorted(chosen | {others})]


def _hidden_dies(state: _Search, stripe: int, first: int, chunk: int) -> Inquiry[str]:
    """Several dies behind one channel pass for one unit, where the channel is slower than they."""
    alone = Ask(stripe, (first % stripe,))
    yield from ask_until(state.book, alone, 3)
    fast = state.book.rate(alone)
    if fast <= CHANNEL_LEAST:
        return ""
    if chunk < 2 * GRAIN:
        return "units are fast enough to be channels, and chunks too small to tell"
    twice = Ask(stripe, (first % stripe,), 2 * GRAIN)
    yield from ask_until(state.book, twice, 3)
    if state.book.rate(twice) / 2 < TRANSFER_BOUND * fast:
        return "a unit is busy moving data, so several dies may hide behind each"
    return ""


def _no_period(state: _Search) -> str:
    floor = min(state.rate(size) for size in state.powers)
    if floor * FALLS > state.best:
        return "reads are as fast at every alignment"
    return "alignments differ, but at none do all reads wait in one queue"


def _tested(stripe: int, chunk: int) -> str:
    ends, units = (len(_begins(stripe, 0, chunk, most)) for most in (EDGES, UNITS))
    return f"the ends of {ends} chunks were tested, and {units + 1} for units of their own: all fit"


def _kib(size: int) -> str:
    return f"{size // KIB} KiB"

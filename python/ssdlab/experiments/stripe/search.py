"""Finds how a drive distributes consecutive addresses over its units, by a sequence of probes.

A *period* is a distance at which addresses are on the same unit; the smallest is the stripe. Reads
at multiples of an alignment touch stripe / gcd(stripe, alignment) chunks, so an alignment that is a
multiple of the stripe touches one unit only. Then pairs of addresses are compared: a chunk ends
where the next unit begins. Finally the layout is tested at other addresses. If any test
contradicts it, the search is repeated in two parts of the region: data in an SLC cache, or folded
from it, is laid out apart from the rest. If no part has a layout, no regular stripe was found.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from ssdlab.experiments.stripe.channels import CHANNELS_MAX, Channel, dies_of_channel, is_one_die
from ssdlab.experiments.stripe.probes import (
    DEPTH,
    GRAIN,
    KIB,
    MIB,
    NARROW,
    RESULTS_MAX,
    Probe,
    ProbeLog,
    Procedure,
    is_one_queue,
    repeat_probe,
    share_a_unit,
)
from ssdlab.experiments.stripe.reasons import (
    CONFLICT,
    DOUBTFUL,
    EDGES,
    ELSEWHERE,
    SMALL_CHUNKS,
    TRANSFER,
    kib,
    tests_of,
)
from ssdlab.experiments.stripe.repeats import ONCE, Chunks, Repeats, find_repeats

CURVE_MAX: Final = 4 * MIB
"""The largest alignment of the curve; it is doubled further while the rate still falls."""
ADDRESSES_MIN: Final = 16
"""The region must contain at least this many multiples of an alignment."""
FALLS: Final = 1.4
"""Reads over all units are at least this factor faster than on one unit; two dies reach 1.9."""
LOWER: Final = 0.85
"""A multiple of a period that lowers the rate to below this factor may be the true period."""
ODD: Final = (
    *(3, 5, 7, 9, 11, 13, 15, 21, 25, 27, 33, 35, 39, 45, 49, 55, 63, 65, 75, 77, 91, 105),
    *(81, 135, 225),
)
"""Odd factors of channels x dies, for up to 16 channels of up to 8 dies, and of 36 KiB chunks on
9, 15 or 25 dies."""
GROWTH: Final = (2, 3, 4, 5, 6, 7, 8)
PARTS: Final = ((3, 4), (0, 4))
"""Parts of the region that are searched on their own: the last quarter, then the first."""
EQUAL: Final = 1.15
"""Times of reads that differ by a smaller factor count as equal."""
TWICE: Final = 1.75
"""A transfer of twice the size takes longer by at least this factor."""
MAPPING_UNITS: Final = (4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB)
"""Mapping units that drives have. Flash transfers a whole one, however few bytes are read."""
LARGE: Final = 512 * KIB
"""Reads of this size show at least which rate the link has."""
LARGE_DEPTH: Final = 8
FASTER: Final = 1.15
"""Large reads that are faster than all units by this factor show that transfer limits no unit."""
NOISE: Final = 0.03
"""Relative error of a difference of two times."""


@dataclass(frozen=True)
class Rates:
    """Read rates in MiB/s: on one unit, on two adjacent units, and with the fewest conflicts."""

    alone: float
    both: float
    best: float


@dataclass(frozen=True)
class Layout:
    """The layout in bytes. Chunk and stripe are None if none was found; `why` says why.

    `is_final`: another part of the region would have the same result. `period`: the distance after
    which the same channel follows again, if the stripe is a multiple of it that is not known.
    `repeats`: how many chunks of a unit a stripe has.
    """

    chunk: int | None
    stripe: int | None
    why: str
    rates: Rates | None = None
    is_final: bool = False
    period: int | None = None
    repeats: Repeats = ONCE

    @property
    def units(self) -> int | None:
        """The number of units in a stripe."""
        if not self.stripe or not self.chunk:
            return None
        return self.stripe // self.chunk // self.repeats.count


@dataclass
class _Search:
    region_bytes: int
    repeats: int
    area: tuple[int, int] | None = None
    log: ProbeLog = field(default_factory=ProbeLog)
    is_doubtful: bool = False
    """Whether a multiple of the period may be the true one: reads there are a little slower."""

    def probe(
        self,
        period: int,
        offsets: tuple[int, ...] = (0,),
        block_bytes: int = GRAIN,
        depth: int = DEPTH,
    ) -> Probe:
        """A probe in the part of the region that is searched."""
        return Probe(period, offsets, block_bytes, depth, self.area)

    def fits(self, period: int) -> bool:
        """Whether the region contains enough multiples of an alignment."""
        return self.region_bytes // period >= ADDRESSES_MIN

    @property
    def part(self) -> tuple[int, int]:
        """Start and length of the part of the region that is searched."""
        return self.area or (0, self.region_bytes)

    @property
    def powers(self) -> list[int]:
        """The alignments of the curve that were probed, ascending."""
        sizes = [GRAIN << shift for shift in range(32)]
        return [size for size in sizes if self.log.count(self.probe(size))]

    @property
    def best(self) -> float:
        """The highest rate of the curve in MiB/s: the one with the fewest conflicts."""
        return max(self.log.rate(self.probe(size)) for size in self.powers)

    def rate(self, period: int) -> float:
        """The rate at an alignment that was probed, in MiB/s."""
        return self.log.rate(self.probe(period))


def search(region_bytes: int, repeats: int) -> Procedure[Layout]:
    """Finds the layout of a written region; `repeats` is the number of probes per alignment."""
    layout = yield from _search_area(_Search(region_bytes, repeats))
    if layout.chunk is not None or layout.is_final:
        return layout
    for number, count in PARTS:
        size = region_bytes // count // MIB * MIB
        area = (number * size, size)
        part = yield from _search_area(_Search(size, repeats, area))
        if part.chunk is not None:
            where = f"in the {size // MIB} MiB from {number * size // MIB} MiB on"
            why = f"{part.why}, {where}; the whole region has more than one layout ({layout.why})"
            return replace(part, why=why)
    return layout


def _search_area(state: _Search) -> Procedure[Layout]:
    """Finds the layout of the region, or of the part that the state names."""
    yield from _curve(state)
    start = yield from _some_period(state)
    if start is None:
        return Layout(None, None, _no_period(state))
    stripe = yield from _least_period(state, start)
    chunk = yield from _chunk(state, stripe)
    if chunk is None:
        why = f"addresses {kib(stripe)} apart conflict, but no chunk has an end. {ELSEWHERE}"
        return Layout(None, None, why)
    chunks = Chunks(stripe, *chunk)
    why = yield from _contradiction(state, chunks)
    if why:
        return Layout(None, None, why)
    repeats = yield from find_repeats(chunks, partial(_conflict, state, stripe))
    if repeats is None:
        return Layout(None, None, f"in the {kib(stripe)} {CONFLICT} {ELSEWHERE}")
    return (yield from _with_dies(state, chunks, repeats))


def _with_dies(state: _Search, chunks: Chunks, repeats: Repeats) -> Procedure[Layout]:
    """The layout of these chunks, with the dies of each channel if the units are channels."""
    stripe, size = chunks.stripe, chunks.chunk
    offset = chunks.first % stripe
    pair = state.log.rate(state.probe(stripe, tuple(sorted((0, offset)))))
    rates = Rates(state.rate(stripe), pair, state.best)
    tested = tests_of(chunks, repeats)
    # If planes have several chunks, they share a channel and do not wait for it.
    hidden = "" if repeats.count > 1 else (yield from _hidden_dies(state, stripe, offset, size))
    if not hidden:
        return Layout(size, stripe, tested, rates, repeats=repeats)
    seconds = GRAIN / MIB / state.rate(stripe)
    unit_bytes = min(size, MAPPING_UNITS[-1])
    channel = Channel(stripe, stripe // size, 1e9 * seconds, unit_bytes, state.part)
    ways = yield from dies_of_channel(state.log, channel)
    how = "all its reads wait for each program"
    is_open = ways is None and not state.is_doubtful
    if is_open and (yield from is_one_die(state.log, channel)):
        ways = 1
        how = "a single read takes too little time to wait for a transfer as long as that of many"
    if ways is None:
        return Layout(size, None, hidden, rates, is_final=True, period=stripe)
    if ways == 1:
        return Layout(size, stripe, f"{tested}; a unit is one die: {how}", rates)
    why = f"{tested}; reads wait for programs like those of {ways} dies on a unit"
    return Layout(size, ways * stripe, why, rates, period=stripe)


def _curve(state: _Search) -> Procedure[None]:
    """Probes powers of two in turn, and larger ones as long as each doubling slows reads."""
    sizes = [GRAIN << shift for shift in range((CURVE_MAX // GRAIN).bit_length())]
    sizes = [size for size in sizes if state.fits(size)]
    for repeat in range(state.repeats):
        for size in sizes:
            yield from repeat_probe(state.log, state.probe(size), repeat + 1)
    last = sizes[-1]
    while state.fits(2 * last) and state.rate(last) < LOWER * state.rate(last // 2):
        last *= 2
        yield from repeat_probe(state.log, state.probe(last), state.repeats)


def _some_period(state: _Search) -> Procedure[int | None]:
    """An alignment that touches one unit only: a power of two, or one times an odd number."""
    for size in state.powers:
        if (yield from _is_one_unit(state, size)):
            return (yield from _longer_period(state, size))
    for base in _bases(state):
        for odd in ODD:
            if state.fits(base * odd) and (yield from _is_one_unit(state, base * odd)):
                return (yield from _longer_period(state, base * odd))
    return None


def _bases(state: _Search) -> list[int]:
    """Powers of two that may contain every factor of 2 in the stripe, the most likely first."""
    floor = min(state.rate(size) for size in state.powers)
    level = min(size for size in state.powers if state.rate(size) <= floor / LOWER)
    likely = 2 * level if level > GRAIN else 256 * KIB
    return list(dict.fromkeys((likely, 256 * KIB, CURVE_MAX)))


def _is_one_unit(state: _Search, period: int) -> Procedure[bool]:
    """Whether reads at an alignment share one queue that other reads do not share."""
    probe = state.probe(period)
    yield from repeat_probe(state.log, probe, 1)
    if state.log.rate(probe) * FALLS > state.best:
        return False
    one_queue = yield from is_one_queue(state.log, probe)
    return one_queue is True


def _longer_period(state: _Search, period: int) -> Procedure[int]:
    """A multiple of the period, if the period's queue was that of a channel with several dies."""
    longer = [size for size in state.powers if size > period]
    candidates = [period * factor for factor in GROWTH] + longer
    for size in sorted(set(candidates)):
        if not state.fits(size):
            continue
        yield from repeat_probe(state.log, state.probe(size), 2)
        if state.rate(size) >= LOWER * state.rate(period):
            continue
        same = yield from share_a_unit(state.log, state.probe(size, (0, period)))
        if same is False:
            return (yield from _longer_period(state, size))
        state.is_doubtful |= same is None
    return period


def _least_period(state: _Search, period: int) -> Procedure[int]:
    """The smallest period that divides a period."""
    for prime in (2, 3, 5, 7, 11, 13):
        while period % (prime * GRAIN) == 0 and period // prime > GRAIN:
            shorter = period // prime
            if not (yield from _is_one_unit(state, shorter)):
                break
            pair = state.probe(period, (0, shorter))
            if not (yield from share_a_unit(state.log, pair)):
                break
            period = shorter
    return period


def _chunk(state: _Search, stripe: int) -> Procedure[tuple[int, int] | None]:
    """Start and length of the second chunk; None if no edge is found."""
    first = yield from _edge(state, stripe, 0)
    if first is None:
        return None
    second = yield from _edge(state, stripe, first)
    return None if second is None else (first, second)


def _edge(state: _Search, stripe: int, start: int) -> Procedure[int | None]:
    """Bytes from `start` to the end of its chunk; None if no end is found."""
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


def _same(state: _Search, stripe: int, one: int, other: int) -> Procedure[bool | None]:
    offsets = tuple(sorted((one % stripe, other % stripe)))
    return (yield from share_a_unit(state.log, state.probe(stripe, offsets)))


def _contradiction(state: _Search, chunks: Chunks) -> Procedure[str]:
    """Tests the layout; returns the first contradiction, or ""."""
    stripe, chunk = chunks.stripe, chunks.chunk
    if stripe % chunk or stripe // chunk < 2:
        return f"chunks of {kib(chunk)} do not fill the {kib(stripe)} after which it repeats"
    for begin in chunks.spaced(EDGES):
        alone = state.probe(stripe, (begin % stripe,))
        if (yield from is_one_queue(state.log, alone)) is not True:
            return f"addresses {kib(stripe)} apart do not all conflict. {ELSEWHERE}"
        if chunk > GRAIN:
            same = yield from _same(state, stripe, begin, begin + chunk - GRAIN)
            if same is not True:
                return f"reads do not confirm that every chunk is {kib(chunk)} long. {ELSEWHERE}"
        if (yield from _same(state, stripe, begin - GRAIN, begin)) is not False:
            return f"no new unit begins {kib(begin % stripe)} into the stripe. {ELSEWHERE}"
    return ""


def _conflict(state: _Search, stripe: int, one: int, other: int) -> Procedure[bool]:
    """Whether two addresses are on one unit, or that stays unclear.

    Two dies of a slow channel share its queue, but read a little faster than one.
    """
    same = yield from _same(state, stripe, one, other)
    if same is not None:
        return same
    offsets = tuple(sorted((one % stripe, other % stripe)))
    return state.log.spread(state.probe(stripe, offsets)) > NARROW


def _hidden_dies(state: _Search, stripe: int, start: int, chunk: int) -> Procedure[str]:
    """Checks that a unit is one die: behind a slow channel, several dies look like one.

    A channel transfers whole mapping units. If it were the limit, reads would take it equally long
    up to the mapping unit, and from there on twice as long for twice the size. Large reads transfer
    the same units, so they would not be faster than random reads of all units together.
    """
    units = stripe // chunk
    if state.is_doubtful or units > CHANNELS_MAX:
        return DOUBTFUL if state.is_doubtful else ""
    offset = (start,)
    seconds: dict[int, float] = {}
    for size in (GRAIN, *(2 * unit for unit in MAPPING_UNITS)):
        if size <= chunk:
            probe = state.probe(stripe, offset, size)
            yield from repeat_probe(state.log, probe, 3)
            seconds[size] = size / MIB / state.log.rate(probe)
    large = state.probe(LARGE, block_bytes=LARGE, depth=LARGE_DEPTH)
    for unit in MAPPING_UNITS:
        if unit not in seconds:
            continue
        yield from repeat_probe(state.log, large, 3)
        # The link may take longer for a mapping unit than its channel.
        by_link = unit / MIB / state.log.rate(large)
        if seconds[unit] > EQUAL * max(seconds[GRAIN], by_link):
            continue
        twice = seconds.get(2 * unit)
        if twice is not None and twice <= TWICE * seconds[unit]:
            continue
        if state.log.rate(large) > FASTER * units * unit / MIB / seconds[GRAIN]:
            continue
        if (yield from _may_be_mapping_unit(state, stripe, offset, unit)):
            return SMALL_CHUNKS if twice is None else TRANSFER
    return ""


def _may_be_mapping_unit(
    state: _Search, stripe: int, offset: tuple[int, ...], unit: int
) -> Procedure[bool]:
    """Whether the drive may map units of this size.

    Within a mapping unit, a longer read takes more time on the link only: at most what large reads
    take for the additional bytes.
    """
    if unit == GRAIN:
        return True
    probes = [state.probe(stripe, offset, size, depth=1) for size in (GRAIN, unit)]
    large = state.probe(LARGE, block_bytes=LARGE, depth=LARGE_DEPTH)
    for probe in (*probes, large):
        yield from repeat_probe(state.log, probe, RESULTS_MAX)
    short, long = (probe.block_bytes / MIB / state.log.rate(probe) for probe in probes)
    return long - short <= (unit - GRAIN) / MIB / state.log.rate(large) + NOISE * long


def _no_period(state: _Search) -> str:
    floor = min(state.rate(size) for size in state.powers)
    if floor * FALLS > state.best:
        return (
            "reads are equally fast at every alignment: the drive has one unit, or the link or the "
            "controller is slower than a unit, or memory served the reads. A larger --size "
            "excludes the last"
        )
    return (
        f"rates differ between alignments, but at none do all reads wait in one queue. {ELSEWHERE}"
    )

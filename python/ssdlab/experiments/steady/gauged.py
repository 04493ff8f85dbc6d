"""What the gauges of steady show: the buffer, the cache, the mapping unit, the cost of a program.

All sizes are in bytes, all rates in bytes per second.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from ssdlab.analysis.evidence import Evidence, seconds_of
from ssdlab.analysis.write_rounds import intervals, progress
from ssdlab.experiments.steady.garbage import Garbage, known_garbage
from ssdlab.experiments.steady.rates import FACTORS, SAME, fastest_of, rate_between, same, settled
from ssdlab.stats.rate_drops import RateDrop, first_drop, last_drop, rate_drops
from ssdlab.stats.steady import Progress

MIB: Final = 1 << 20
UNITS: Final = (1, 2, 4, 8, 16)
"""Mapping unit / block size, if the unit is larger."""
LIMITED: Final = 0.85
"""A rate above this share of the fastest one may be that of the link, the host or the controller,
and does not show what the flash does."""
_PLAIN: Final = 1.4
"""Writes at random / large ones in cost, if the unit is not larger: a map costs something, and a
small superblock of large blocks is emptier when it is collected."""
_FILLED: Final = 0.2  # of larger writes: from there on their rate counts
_TWICE: Final = 1.7
_ONCE: Final = 1.3
"""Gains of a block of twice the size: at least within a mapping unit, at most beyond it."""
_BUFFER_UNSEEN: Final = 64 * MIB
"""What a buffer may hold of the writes of a link that never fills it."""
_MAP_READS: Final = 0.1  # of the cost of a steady write, at least
_BEFORE: Final = (0.5, 0.9)  # of the rounds before they collect
_LATE: Final = (0.75, 1.0)  # of the large writes: where their rate is compared with the rounds
_WITHIN: Final = (0.6, 0.9)  # of the cache: after the buffer is full, before the cache is
_RATES: Final = 1.3  # of the cache for different requests
_DIRECT: Final = 0.75  # of the direct rate: collection lowers it further
_CACHED: Final = 2.3
"""Random writes of a rested drive that are faster than the direct rate by this factor go to a
cache."""
_CACHE_LEAST: Final = 1.5  # times the buffer: what takes more than that is a cache


def unit_by_size(steady: float, curves: Sequence[Progress]) -> int | None:
    """Mapping unit / block size, by the rates of random writes in steady state; None if unclear.

    `steady` is the rate in blocks, `curves` are those of 2, 4 and 8 times the size. A block smaller
    than the mapping unit takes up a whole one. So in bytes, a block of twice the size is twice as
    fast up to the mapping unit, and about as fast from there on. What costs as much for each
    request, as a map does, makes all larger blocks faster.
    """
    if not steady or not all(curve.written for curve in curves):
        return None
    rates = [steady, *(rate_between(c, _FILLED * c.written, c.written) for c in curves)]
    gains = [larger / smaller for smaller, larger in pairwise(rates)]
    for doubled in range(len(gains)):
        within, beyond = gains[:doubled], gains[doubled:]
        if all(gain > _TWICE for gain in within) and all(gain < _ONCE for gain in beyond):
            return UNITS[doubled]
    return None


@dataclass(frozen=True)
class Gauged:
    """The curves of the fill, of the rounds and of the gauges, and the rate of the last window."""

    evidence: Evidence
    region: float
    rounds: Progress
    steady: float

    @cached_property
    def is_complete(self) -> bool:
        """Whether all gauges were measured."""
        return all(self.curve(case).written for case in ("burst", "ordered", "fill", "large"))

    def curve(self, case: str) -> Progress:
        """The curve of a gauge."""
        steps = [step for step in self.evidence.steps("gauge") if step["case"] == case]
        return progress(self.evidence, steps)

    @cached_property
    def fresh(self) -> Progress:
        """The curve of the fill before the rounds."""
        steps = [step for step in self.evidence.steps("fill") if step["stage"] == 0]
        return progress(self.evidence, steps)

    @cached_property
    def read(self) -> float:
        """Seconds per byte of random reads."""
        reads = [step for step in self.evidence.steps("gauge") if step["case"] == "read"]
        return seconds_of(reads[0]) / max(1, reads[0]["bytes"]) if reads else 0.0

    @cached_property
    def buffer(self) -> float:
        """Bytes of whole mapping units that the write buffer takes."""
        burst = self.curve("burst")
        drop = first_drop(burst, burst.written)
        return 0.0 if drop is None else drop.buffered

    @property
    def unseen_buffer(self) -> float:
        """Bytes that the buffer may take in addition, as a slow link never fills it."""
        return _BUFFER_UNSEEN if self.is_direct_limited and not self.buffer else 0.0

    @cached_property
    def held(self) -> float:
        """Bytes that the buffer and an SLC cache took of the fill of the new drive."""
        return max((drop.buffered for drop in rate_drops(self.fresh)), default=0.0)

    @cached_property
    def direct(self) -> float:
        """The rate of large writes in order that no cache takes and that relocate nothing."""
        return settled(self.curve("fill"))

    @cached_property
    def is_direct_limited(self) -> bool:
        """Whether something other than the flash may limit `direct`."""
        fastest = max(fastest_of(self.fresh), fastest_of(self.curve("fill")), self._burst)
        return self.direct > LIMITED * fastest

    @cached_property
    def _burst(self) -> float:
        """The rate at which the empty buffer takes large writes, at least.

        A small one is full within the first interval; a request may have begun before it.
        """
        (step,) = (step for step in self.evidence.steps("gauge") if step["case"] == "burst")
        seconds, amounts = intervals(self.evidence, step)
        width = 1e-6 * json.loads(step["job"])["interval_us"]
        return float((amounts[0] - step["block_bytes"]) / min(width, seconds[0]))

    @cached_property
    def fastest(self) -> float:
        """The fastest rate of writes of the rounds' size."""
        return max(fastest_of(curve) for curve in (self.rounds, self.curve("ordered")))

    @cached_property
    def is_steady_limited(self) -> bool:
        """Whether something other than the flash may limit the steady rate."""
        return self.steady > LIMITED * self.fastest

    @cached_property
    def fall(self) -> RateDrop | None:
        """The last fall of the rate of the rounds."""
        return last_drop(self.rounds, 2 * self.region)

    @cached_property
    def large_fall(self) -> RateDrop | None:
        """The last fall of the rate of large writes at random."""
        return last_drop(self.curve("large"))

    @cached_property
    def unit(self) -> int | None:
        """Mapping unit / block size; 1 if the unit is not larger, None if unclear."""
        one, other = self._unit_by_size, self._unit_by_order
        return None if one and other and one != other else one or other

    @cached_property
    def _unit_by_size(self) -> int | None:
        curves = [self.curve(f"size {factor}") for factor in FACTORS]
        return None if self.is_steady_limited else unit_by_size(self.steady, curves)

    @property
    def _unit_by_order(self) -> int | None:
        """`unit`, by what writes in order cost, as multiples of what large ones cost per byte.

        At random they may also have to read the unit first, or the map; the falls show which.
        """
        ordered = settled(self.curve("ordered"))
        found = [unit for unit in UNITS if same(self.direct, unit * ordered)]
        if self.is_steady_limited or len(found) != 1:
            return None
        unit, cost = found[0], self.cost_at_random(found[0])
        falls = self.fall, self.large_fall
        if falls[0] and falls[1] and same(falls[1].at, unit * falls[0].at):
            return unit
        if unit == 1:
            return 1 if same(cost, 1, _PLAIN) else None
        is_free = ordered < LIMITED * self.fastest  # neither host nor link limits it
        return unit if is_free and unit / SAME < cost < 2 * unit else None

    def cost_at_random(self, unit: int) -> float:
        """Seconds per byte of the rounds / of large writes at random, as far after the fill."""
        large = self.curve("large")
        start, stop = (share * large.written for share in _LATE)
        rounds = rate_between(self.rounds, start / unit, stop / unit)
        return rate_between(large, start, stop) / rounds

    @property
    def extra(self) -> float:
        """Seconds per byte that rounds cost more than whole units in order, before collection.

        Reads of the rest of a unit, and of a map that does not fit into its cache.
        """
        if self.fall is None or not isinstance(self.garbage, Garbage):
            return 0.0
        start, stop = (share * self.fall.at for share in _BEFORE)
        return 1 / rate_between(self.rounds, start, stop) - (self.unit or 1) / self.garbage.alone

    @property
    def reads_first(self) -> bool:
        """Whether a write may first read the rest of its mapping unit, or of the map."""
        return self.unit != 1 or self.cost_at_random(1) > SAME

    @property
    def may_write_map(self) -> bool:
        """Whether each write may also cost a program of a map that does not fit into memory.

        Such a map costs reads before collection, too; known garbage shows these.
        """
        is_read = not isinstance(self.garbage, Garbage) or self.extra * self.steady > _MAP_READS
        return self.unit == 1 and self.reads_first and is_read

    @property
    def is_rested(self) -> bool:
        """Whether the drive rested before the large writes at random, as before the rounds."""
        return any(s["rest_s"] for s in self.evidence.steps("gauge") if s["case"] == "read")

    @cached_property
    def garbage(self) -> Garbage | str:
        """What the collection of known garbage costs; or why it is not known."""
        return known_garbage(self.evidence, self.buffer)

    @cached_property
    def cache(self) -> float:
        """Bytes that an SLC cache took of the fill; 0 if none is seen."""
        level = _DIRECT * settled(self.fresh)
        drops = [drop for drop in rate_drops(self.fresh) if drop.after > level]
        found = [drop for drop in drops if drop.buffered > self._cache_least]
        return max(found, key=lambda drop: drop.buffered).at if found else 0.0

    @cached_property
    def has_own_flash(self) -> bool | None:
        """Whether the cache has superblocks of its own; None if unclear.

        Such a cache takes as much of the large writes as of the fill. One that borrows free
        superblocks finds few after the rounds.
        """
        if not self.cache:
            return False
        if not self.is_rested:
            return None
        start, stop = (share * self.cache for share in _WITHIN)
        filled, large = (rate_between(c, start, stop) for c in (self.fresh, self.curve("large")))
        if same(large, filled, _RATES):
            return True
        return False if large < SAME * self.direct else None

    @property
    def borrows(self) -> bool:
        """Whether an SLC cache is seen that may borrow flash of the spare."""
        return self.cache > 0 and not self.has_own_flash

    @property
    def may_borrow(self) -> bool:
        """Whether there may be an SLC cache that borrows flash of the spare.

        If `cache` does not show it, a loss of speed in the fill that no buffer explains may, or
        random writes after a rest that are far faster than large ones in order.
        """
        is_faster = self.fall is not None and self.fall.before > _CACHED * self.direct
        return self.borrows or (not self.cache and (self.held > self._cache_least or is_faster))

    @cached_property
    def folds_while_writing(self) -> bool:
        """Whether the drive seems to fold a cache that borrows flash while it takes large writes.

        Then even writes on trimmed flash go through the cache, and are slower than on a new drive
        by more than erases explain.
        """
        return self.borrows and settled(self.fresh) > SAME * self.direct

    @cached_property
    def may_hide_cache(self) -> bool:
        """Whether a cache may take large writes, although none is seen in the fill.

        The link may be slower than cache and flash. If it limits both, only large writes without a
        rest show a cache: it is still full, so that they use up the hidden flash earlier.
        """
        fall, rounds = self.large_fall, self.fall
        if self.cache:
            return False
        if self.is_direct_limited or not self.is_rested:
            is_same = fall and rounds and same(fall.at, (self.unit or 1) * rounds.at)
            return self.is_rested or not is_same
        if fall is None or fall.at - self.direct * fall.seconds < self._cache_least:
            return False
        start, stop = (share * fall.at for share in _WITHIN)
        return rate_between(self.curve("large"), start, stop) > _RATES * self.direct

    @property
    def spares_new_data(self) -> bool:
        """Whether large writes are collected no earlier than the rounds.

        Victims chosen at random would soon be blocks that were just filled.
        """
        falls = self.fall, self.large_fall
        if falls[0] is None or falls[1] is None:
            return False
        return falls[1].at * SAME > (self.unit or 1) * falls[0].at

    @property
    def _cache_least(self) -> float:
        return _CACHE_LEAST * self.buffer + MIB

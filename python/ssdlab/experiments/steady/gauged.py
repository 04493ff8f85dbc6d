"""What the gauges of steady show: the buffer, the cache, the mapping unit, the cost of a program.

All sizes are in bytes, all rates in bytes per second.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from ssdlab.analysis.evidence import Evidence
from ssdlab.analysis.write_amplification import Bracket
from ssdlab.analysis.write_rounds import intervals, progress
from ssdlab.experiments.steady.garbage import Garbage, known_garbage
from ssdlab.experiments.steady.mapping_unit import UNITS, likeliest_unit
from ssdlab.experiments.steady.rates import FACTORS, SAME, fastest_of, rate_between, same, settled
from ssdlab.experiments.steady.single_reads import (
    MISSES,
    SingleReads,
    StridedReads,
    is_in_cache,
    of_unkept_pages,
    shows_misses,
    single_reads,
)
from ssdlab.stats.rate_drops import RateDrop, first_drop, last_drop, rate_drops
from ssdlab.stats.steady import Progress

KIB: Final = 1 << 10
MIB: Final = 1 << 20
LIMITED: Final = 0.85
"""A rate above this share of the fastest one may be that of the link, the host or the controller,
and does not show what the flash does."""
BUFFER_LEAST: Final = 128 * KIB
"""Bytes that a write buffer behind a slow link must take to be seen: less may be just the first two
large writes."""
_BUFFER_UNSEEN: Final = 64 * MIB
"""What a buffer may hold of the writes of a link that never fills it."""
_SOME: Final = 0.05  # of the reads
_CERTAIN: Final = 2.0  # standard deviations
_FAST: Final = 0.1
_SLOW: Final = 0.9
_BEFORE: Final = (0.5, 0.75, 0.9)  # of the rounds before they collect: begin at least, most; end
_FULL: Final = 1.2  # written when the buffer is full / its size, at most
_LATE: Final = (0.75, 1.0)  # of the large writes: where their rate is compared with the rounds
_WITHIN: Final = (0.6, 0.9)  # of the cache: after the buffer is full, before the cache is
_RATES: Final = 1.3  # of the cache for different requests
_DIRECT: Final = 0.75  # of the direct rate: collection lowers it further
_CACHED: Final = 2.3
"""Random writes of a rested drive that are faster than the direct rate by this factor go to a
cache."""
_FOLDING: Final = 2.2
"""Random writes before collection that are slower by this factor than large ones on erased flash
also fold a cache, if units are not larger than blocks: without one, they are up to 2 times slower.
"""
_EARLIER: Final = 0.8  # position of an earlier drop / of that of the cache, at most
_CACHE_LEAST: Final = 1.5  # times the buffer: what takes more than that is a cache


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

    @property
    def block(self) -> float:
        """Bytes of a write of the rounds."""
        return float(self.evidence.parameters["write_block_kib"] * KIB)

    def curve(self, case: str) -> Progress:
        """The curve of a gauge."""
        return progress(self.evidence, self._steps(case))

    def _steps(self, case: str) -> list[dict[str, Any]]:
        """The steps of a gauge; none if an earlier version measured the drive."""
        return [step for step in self.evidence.steps("gauge") if step["case"] == case]

    @cached_property
    def fresh(self) -> Progress:
        """The curve of the fill before the rounds."""
        steps = [step for step in self.evidence.steps("fill") if step["stage"] == 0]
        return progress(self.evidence, steps)

    @cached_property
    def buffer(self) -> float:
        """Bytes of whole mapping units that the write buffer takes."""
        burst = self.curve("burst")
        drop = first_drop(burst, burst.written, in_bursts=True)
        return 0.0 if drop is None else drop.buffered

    @property
    def unseen_buffer(self) -> float:
        """Bytes that the buffer may take in addition, as a slow link never fills it."""
        is_unseen = self.is_direct_limited and self.buffer < BUFFER_LEAST
        return _BUFFER_UNSEEN if is_unseen else 0.0

    @cached_property
    def held(self) -> float:
        """Bytes that the buffer and an SLC cache took of the fill of the new drive."""
        return max((drop.buffered for drop in self._fresh_drops), default=0.0)

    @cached_property
    def _fresh_drops(self) -> Sequence[RateDrop]:
        return rate_drops(self.fresh)

    @cached_property
    def direct(self) -> float:
        """The rate of large writes in order that no cache takes and that relocate nothing."""
        return settled(self.curve("fill"))

    @cached_property
    def erased(self) -> float:
        """The rate of the first fill, of a new drive on flash that is erased already."""
        return settled(self.fresh)

    @cached_property
    def large_read_s(self) -> float:
        """Seconds per byte of large reads in order; of random ones if an earlier version measured.

        Collection reads each page of a victim once, so that its reads take no longer.
        """
        curve = self.curve("large read")
        return 1 / settled(curve if curve.written else self.curve("read"))

    @cached_property
    def is_direct_limited(self) -> bool:
        """Whether something other than the flash may limit `direct`."""
        fastest = max(fastest_of(self.fresh), fastest_of(self.curve("fill")), self._burst)
        return self.direct > LIMITED * fastest

    @cached_property
    def _burst(self) -> float:
        """The rate at which the empty buffer takes large writes, at least.

        It is the highest mean rate up to the end of an interval, without a request that may have
        begun before the first one.
        """
        (step,) = self._steps("burst")
        seconds, amounts = intervals(self.evidence, step)
        width = 1e-6 * json.loads(step["job"])["interval_us"]
        taken = np.cumsum(amounts) - step["block_bytes"]
        return float(np.max(taken / (np.cumsum(seconds) - max(0.0, seconds[0] - width))))

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
        return last_drop(self.rounds, 2 * self.region, in_bursts=True)

    @cached_property
    def large_fall(self) -> RateDrop | None:
        """The last fall of the rate of large writes at random."""
        return last_drop(self.curve("large"))

    @cached_property
    def unit(self) -> int | None:
        """Mapping unit / block size; 1 if the unit is not larger, None if unclear."""
        if FACTORS[-1] * self.block > MIB:
            return 1
        curves = [self.curve(f"size {factor}") for factor in FACTORS]
        large = self.curve("large")
        if self.is_steady_limited or not self.has_single_reads:
            return None
        if not all(each.written for each in (*curves, large)):
            return None
        blocks = int(self._steps("large")[0]["block_bytes"] / self.block)
        costs = [self.cost_at_random(unit) for unit in UNITS]
        rate = settled(self.curve("ordered"))
        ordered = self.direct / rate if rate < LIMITED * self.fastest else None
        return likeliest_unit(
            self.steady, curves, costs, ordered, blocks, misses_map=self.misses_map
        )

    @property
    def units(self) -> Sequence[int]:
        """Mapping units / block size that are possible."""
        return (self.unit,) if self.unit else UNITS[:3]

    def cost_at_random(self, unit: int) -> float:
        """Seconds per byte of the rounds / of large writes at random, as far after the fill."""
        large = self.curve("large")
        start, stop = (share * large.written for share in _LATE)
        rounds = rate_between(self.rounds, start / unit, stop / unit)
        return rate_between(large, start, stop) / rounds

    @cached_property
    def cost_before_collection(self) -> float:
        """Seconds per byte of the rounds before their rate fell."""
        assert self.fall is not None
        least, most, stop = _BEFORE
        full = _FULL * self.buffer / (self.unit or 1) / self.fall.at
        start = min(most, max(least, full))
        return 1 / rate_between(self.rounds, start * self.fall.at, stop * self.fall.at)

    @cached_property
    def has_single_reads(self) -> bool:
        """Whether reads were measured one at a time, as earlier versions did not."""
        return bool(self._steps("recent read"))

    def _single_reads(self, case: str) -> SingleReads:
        return single_reads(self.evidence, self._steps(f"{case} read")[0]["step"])

    @cached_property
    def misses_map(self) -> bool:
        """Whether the map does not fit into the drive's memory, so that it may be written, too.

        Then reads all over the region are slower, or at least some of them are.
        """
        anywhere, near = map(self._single_reads, ("anywhere", "near"))
        if anywhere.share_slower(near) > _SOME:
            return True
        anywhere, near = of_unkept_pages(anywhere, near)
        return anywhere.mean > MISSES * near.mean

    @property
    def strided_reads(self) -> StridedReads | None:
        """The reads of one block in each MiB; None if an earlier version measured the drive."""
        found = self._steps("strided read")
        if not found:
            return None
        strided, near = map(self._single_reads, ("strided", "near"))
        number, size = strided.counts.sum(), json.loads(found[0]["job"])["length_bytes"]
        return StridedReads(int(number), size, strided.share_slower(near), near.share_slower(near))

    @property
    def map_misses(self) -> Bracket | None:
        """The share of reads all over the region that first read a part of the map from flash.

        None if it is not known, because other reads differ by as much as that takes.
        """
        if not self.misses_map:
            return Bracket(0.0, 0.0, _SOME)
        anywhere, near = map(self._single_reads, ("anywhere", "near"))
        share = anywhere.share_slower(near)
        error = _CERTAIN * math.sqrt(share * (1 - share) / anywhere.counts.sum())
        if share <= error or not shows_misses(*of_unkept_pages(anywhere, near), share):
            return None
        return Bracket(share, share - error, share + error)

    @cached_property
    def writes_cache(self) -> bool | None:
        """Whether steady writes also go to an SLC cache; None if reads do not show it."""
        return self._is_in_cache("recent")

    @cached_property
    def rested_writes_cache(self) -> bool | None:
        """Whether an SLC cache took the writes of a rested drive; None if reads do not show it.

        If more than a tenth of the reads first load a part of the map, those may all be of data in
        a cache, so that a lack of fast reads shows nothing.
        """
        found = self._steps("rested read")
        if not found or found[0]["bytes"] < json.loads(found[0]["job"])["amount_bytes"]:
            return None  # an earlier version, or interrupted
        in_cache, misses = self._is_in_cache("rested"), self.map_misses
        return in_cache if in_cache or (misses and misses.high < _FAST) else None

    def _is_in_cache(self, case: str) -> bool | None:
        """Whether data is in an SLC cache that was just written; None if unclear."""
        unmapped, recent, near = map(self._single_reads, ("unmapped", case, "near"))
        without_flash = unmapped.quantile(_FAST if self.misses_map else _SLOW)
        old = self._single_reads("old") if self._steps("old read") else None
        return is_in_cache(recent, near, old, without_flash)

    @property
    def may_write_cache(self) -> bool:
        """Whether they may, as far as the other gauges show."""
        return self.writes_cache or (self.writes_cache is None and self.may_borrow)

    @property
    def is_rested(self) -> bool:
        """Whether the drive rested before the large writes at random, as before the rounds."""
        return any(step["rest_s"] for step in self._steps("read"))

    @cached_property
    def garbage(self) -> Garbage | str:
        """What the collection of known garbage costs; or why it is not known."""
        return known_garbage(self.evidence, self.buffer)

    @property
    def trimmed_parts(self) -> Sequence[tuple[float, Progress]]:
        """Shares of the region that were trimmed, and the curve of the random writes after that."""
        steps = self._steps("part trimmed")
        return [(step["value"], progress(self.evidence, [step])) for step in steps]

    @property
    def cache(self) -> float:
        """Bytes that an SLC cache took of the fill; 0 if none is seen."""
        return self._cache_drop.at if self._cache_drop else 0.0

    @cached_property
    def _cache_drop(self) -> RateDrop | None:
        level = _DIRECT * self.erased
        drops = [drop for drop in self._fresh_drops if drop.after > level]
        found = [drop for drop in drops if drop.buffered > self._cache_least]
        return max(found, key=lambda drop: drop.buffered, default=None)

    @property
    def cached(self) -> Bracket:
        """Bytes in the cache and in the buffer when the rate of the fill falls.

        That is all that was written if the buffer was full before, as an earlier drop shows.
        Otherwise the rate falls only when the buffer is full, too; until then other flash is
        programmed.
        """
        drop = self._cache_drop
        assert drop is not None
        is_full = any(each.at < _EARLIER * drop.at for each in self._fresh_drops)
        late = 0.0 if is_full else self.buffer * drop.after / (drop.before - drop.after)
        value, slack = drop.at - late, self.buffer / 2
        return Bracket(value, value - slack, min(drop.at, value + slack))

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
        random writes after a rest that are far faster than large ones, also than on erased flash;
        or far slower before collection than erased flash allows, as they fold the cache.
        """
        is_seen = self.held > self._cache_least
        if self.fall is not None:
            is_plain = self.unit == 1 and not self.misses_map
            is_seen |= self.fall.before > _CACHED * max(self.direct, self.erased)
            is_seen |= is_plain and _FOLDING * self.fall.before < self.erased
        return self.borrows or (not self.cache and is_seen)

    @property
    def may_hide_borrowed(self) -> bool:
        """Whether an SLC cache that the fill does not show may borrow flash of the spare."""
        return not self.cache and self.may_borrow

    @cached_property
    def may_hide_cache(self) -> bool:
        """Whether a cache may take large writes, although none is seen in the fill.

        The link may be slower than cache and flash. If it limits both, only large writes without a
        rest show a cache: it is still full, so that they use up the hidden flash earlier.
        """
        fall, rounds, is_seen = self.large_fall, self.fall, self.rested_writes_cache
        if self.cache or is_seen is False:
            return False
        if is_seen:
            return True
        if self.is_direct_limited or not self.is_rested:
            is_same = fall and rounds and same(fall.at, (self.unit or 1) * rounds.at)
            return self.is_rested or not is_same
        if fall is None or fall.at - self.direct * fall.seconds < self._cache_least:
            return False
        start, stop = (share * fall.at for share in _WITHIN)
        return rate_between(self.curve("large"), start, stop) > _RATES * self.direct

    @property
    def _cache_least(self) -> float:
        return _CACHE_LEAST * self.buffer + MIB

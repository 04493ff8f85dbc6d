"""The first cycle of collection, in which the WAF of random writes is known.

The region was written in order, then at random. After the random writes to a share x of its mapping
units, each superblock of the fill has the share exp(-x) of its units valid. Until all of them have
been collected, victims are such superblocks, whatever the policy, and WAF is 1 / (1 - exp(-x)). A
drive that chooses victims at random, or from a few, collects newer ones, too.

The cost of these writes relative to that of a steady write shows the WAF of the latter. All else
that a write costs is in both: reads of the rest of a mapping unit or of the map, for example.

Not modelled: greedy collects the superblocks with the fewest valid units first. With superblocks of
some thousand units WAF is lower than that at first, by up to 15 %, and higher later; the mean over
the cycle is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

from ssdlab.experiments.steady.garbage import Garbage
from ssdlab.experiments.steady.gauged import Gauged

SURE: Final = 1.05
"""Factor of the bounds of WAF if the cost declines as in a first cycle."""
_LEAST: Final = 0.04
"""Of the region: if collection begins earlier, WAF depends on a few superblocks."""
_SKIPPED: Final = 0.05  # of the cycle: the fall of the rate
_DECLINE: Final = 0.03  # of a decline: how far another one may be from it
_FASTER: Final = 1.08
"""A cost may decline by this factor more than WAF: a few superblocks are collected at a time."""
_LEAST_DECLINE: Final = 1.08
_SLOWER: Final = 0.75
"""The decline of the cost relative to that of WAF, at least. It is that low if victims are chosen
from a few, or are superblocks of few units."""
_ANY: Final = 100.0  # programs
_SLACK: Final = 0.05
_FLAT: Final = (0.6, 1.25)
"""Decline of the cost if victims are chosen at random: WAF is that of the steady state from the
start, and differs with the few superblocks that are collected."""


class WafBounds(NamedTuple):
    """Bounds of a WAF.

    From `low` on it agrees with the cost before collection, from `least` on with the decline of the
    cost, too.
    """

    least: float
    low: float
    high: float


@dataclass(frozen=True)
class Cycle:
    """The halves of a cycle: the WAF of each, and its seconds per byte.

    `unit` is the mapping unit / block size, and `alone` the cost of a write before collection, at
    most. `constant` is the part of a write's cost that does not depend on WAF, in programs.
    """

    unit: int
    wafs: tuple[float, float]
    costs: tuple[float, float]
    alone: float

    @property
    def decline(self) -> float:
        """The cost of the first half / that of the second."""
        return self.costs[0] / self.costs[1]

    @property
    def is_flat(self) -> bool:
        """Whether the cost does not change, as if victims are chosen at random."""
        return _FLAT[0] < self.decline < _FLAT[1]

    @property
    def most_constant(self) -> float:
        """The constant part, at most: before collection, a write costs it and one program."""
        waf, cost = (sum(pair) / 2 for pair in (self.wafs, self.costs))
        constant = max(0.0, (self.alone - cost / waf) / (1 - 1 / waf))
        return constant * waf / (cost - constant)

    @property
    def constants(self) -> tuple[float, float]:
        """The interval of the constant part by the decline of the cost."""
        low, high = (self._constant_at(self.decline * (1 + way * _DECLINE)) for way in (1, -1))
        return low, high

    def _constant_at(self, decline: float) -> float:
        first, second = self.wafs
        if decline <= 1:
            return _ANY
        return max(0.0, (first - decline * second) / (decline - 1))

    @property
    def relative_decline(self) -> float:
        """The decline of the cost / that of WAF: less than 1 if a part of the cost is constant."""
        return self.decline * self.wafs[1] / self.wafs[0]

    @property
    def is_collection(self) -> bool:
        """Whether the cost declines as it does in the first cycle."""
        is_enough = self.constants[0] < self.most_constant + _SLACK
        return is_enough and self.may_be_collection

    @property
    def may_be_collection(self) -> bool:
        """Whether it may, if also newer superblocks are victims, or those of few units."""
        most = self.most_constant
        slowest = (most + self.wafs[0]) / (most + self.wafs[1])
        is_within = self.relative_decline < _FASTER and self.decline > _SLOWER * slowest
        return is_within and self.decline > _LEAST_DECLINE

    def waf_of(self, cost: float) -> WafBounds:
        """The WAF of a write that costs this many seconds per byte."""
        least, most = self.constants
        within = [min(each, self.most_constant) for each in (least, most)]
        low, high = sorted(self.unit * self._waf_of(cost, each) for each in within)
        beyond = least if self.is_collection else most
        lowest = min(low, self.unit * self._waf_of(cost, beyond))
        return WafBounds(lowest, low, high)

    def _waf_of(self, cost: float, constant: float) -> float:
        waf, mean = (sum(pair) / 2 for pair in (self.wafs, self.costs))
        return cost / mean * (constant + waf) - constant


def cycles(gauged: Gauged, *, by_fall: bool = False) -> list[Cycle]:
    """The cycle for each position at which collection may begin, and for each mapping unit.

    With `by_fall` only for the fall of the rate of the rounds. Empty if the unit is not known and
    one of those that are possible has no cycle, or if an unseen buffer may leave none.
    """
    if gauged.fall is None:
        return []
    buffers = sorted({gauged.buffer, gauged.buffer + gauged.unseen_buffer})
    found = []
    for unit in gauged.units:
        of_unit = []
        for buffer in buffers:
            begins = [unit * gauged.fall.at - buffer]
            if isinstance(gauged.garbage, Garbage) and not (by_fall or gauged.may_write_cache):
                begins.append(gauged.garbage.hidden.value)
            each = [_cycle(gauged, unit, begin / gauged.region, buffer) for begin in begins]
            if buffer > gauged.buffer and None in each:
                return []  # the unseen buffer may hold most of these writes
            of_unit += [cycle for cycle in each if cycle is not None]
        if not of_unit:
            return []
        found += of_unit
    return found


def _cycle(gauged: Gauged, unit: int, begin: float, buffer: float) -> Cycle | None:
    """The cycle that begins after this share of the region, in mapping units; None if too early.

    What the buffer holds is not in flash yet, so that the rate follows WAF later by its size.
    """
    if begin <= 0:
        return None
    end = math.log1p(math.e * math.expm1(begin))  # the region has been programmed since `begin`
    start = begin + _SKIPPED * (end - begin)
    if start < _LEAST:
        return None
    shares = (start, (start + end) / 2, end)
    positions = [(share * gauged.region + buffer) / unit for share in shares]
    if positions[-1] > gauged.rounds.written:
        return None
    seconds = gauged.rounds.between(positions[0], positions[-1], 2)
    half = positions[1] - positions[0]
    if float(sum(seconds)) < 2 * half * gauged.cost_before_collection:
        return None
    return Cycle(
        unit,
        (_mean_waf(*shares[:2]), _mean_waf(*shares[1:])),
        (float(seconds[0]) / half, float(seconds[1]) / half),
        gauged.cost_before_collection,
    )


def _mean_waf(start: float, end: float) -> float:
    """The mean of 1 / (1 - exp(-x))."""
    return math.log(math.expm1(end) / math.expm1(start)) / (end - start)

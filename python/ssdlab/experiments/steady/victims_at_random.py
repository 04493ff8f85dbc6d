"""Hidden flash and WAF of a drive that chooses its victims at random.

As many units of a victim are valid as of all flash, so that WAF is all flash / hidden flash, from
the start of collection on. The few superblocks that are collected differ, and the cost of writes
with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady.estimate import Estimate
from ssdlab.experiments.steady.first_cycle import Cycle
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.experiments.steady.rates import same
from ssdlab.experiments.steady.write_costs import waf_by_costs

RESERVE: Final = 1.15
"""Hidden flash / the part that is seen to take data, at most. Collection keeps some superblocks
free."""
_BY_LINK: Final = "victims are chosen at random, and the link may hide an SLC cache"
_OTHER_COST: Final = (
    "victims are chosen at random, but a steady write costs more or less than with the WAF by "
    "the hidden flash"
)
_SURE: Final = 1.03  # factor of the bounds of WAF
_READS_MOST: Final = 2.2
"""Cost of a steady write in programs / WAF, at most: relocated units are read first, and a read
takes no longer than a program; a tenth for noise."""
_COST: Final = (0.9, 1.1)
"""Bounds of the cost of a steady write / that of WAF programs, and of WAF programs and reads, if
the mapping unit is not larger than a block, and neither link nor SLC cache takes part."""


def waf_at_random(region: float, hidden: Bracket) -> Bracket:
    """WAF of a region with this much hidden flash, both in bytes.

    The blocks that collection keeps free for an SLC cache to borrow take no data.
    """
    most, likely, least = (
        1 + region / size
        for size in (hidden.low, hidden.value, min(hidden.high, RESERVE * hidden.value))
    )
    return Bracket(math.sqrt(least * likely), least / _SURE, most * _SURE)


def waf_by_hidden_at_random(gauged: Gauged, hidden: Bracket, found: Sequence[Cycle]) -> Estimate:
    """WAF by this hidden flash, if the cost of writes is that of victims chosen at random.

    `found` are the cycles after the fall of the rate, of which one must have a constant cost. There
    are none if collection begins so early that WAF then depends on a few superblocks.
    """
    if gauged.is_direct_limited and gauged.writes_cache is None:
        return Estimate(None, _BY_LINK)
    if not any(each.is_flat for each in found) and (found or not _shows_cost(gauged)):
        return Estimate(None, "victims are chosen at random, but the rate changed after the fall")
    value, least, most = ((gauged.unit or 1) * waf for waf in waf_at_random(gauged.region, hidden))
    if _has_other_cost(gauged, value):
        return Estimate(None, _OTHER_COST)
    why = "victims are chosen at random: as many of their units are valid as of all flash"
    return Estimate(Bracket(value, least, most), why)


def is_too_slow(gauged: Gauged, hidden: Bracket) -> bool:
    """Whether a steady write costs more than reads and programs of all units with that WAF."""
    most = _READS_MOST * (gauged.unit or 1) * (1 + gauged.region / hidden.low)
    return gauged.direct / gauged.steady > most


def _shows_cost(gauged: Gauged) -> bool:
    """Whether the rate of large writes shows what the programs of a steady write cost."""
    is_cached = gauged.cache or gauged.may_borrow
    return gauged.unit == 1 and not (gauged.is_direct_limited or is_cached)


def _has_other_cost(gauged: Gauged, waf: float) -> bool:
    """Whether a steady write does not cost what it does with this WAF, as far as the run shows."""
    if not _shows_cost(gauged):
        return False
    cost, waf_programs = 1 / gauged.steady, waf / max(gauged.direct, gauged.erased)
    most = waf / gauged.direct + waf * gauged.large_read_s
    return not _COST[0] * waf_programs < cost < _COST[1] * most


def agrees_with_cost(gauged: Gauged, found: Sequence[Cycle], hidden: Bracket) -> bool:
    """Whether the cost after the fall of the rate is that of collection with this hidden flash."""
    if gauged.is_direct_limited or not any(each.is_flat for each in found):
        return False
    most, least = (found[0].unit * (1 + gauged.region / size) for size in hidden[1:])
    if (by_costs := waf_by_costs(gauged)) is not None:
        return by_costs.low < least and most < by_costs.high
    return same(math.sqrt(least * most), gauged.direct / gauged.steady)

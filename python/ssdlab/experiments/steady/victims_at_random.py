"""Hidden flash and WAF of a drive that chooses its victims at random.

As many units of a victim are valid as of all flash, so that WAF is all flash / hidden flash, from
the start of collection on. The few superblocks that are collected differ, and the cost of writes
with them.

If a share of the region is trimmed, that share of the units of each victim is garbage, in addition.
So WAF falls to a value that depends only on WAF before and on that share, whatever the hidden
flash. Where nothing but relocation changes with it, the costs of writes before and after several
such trims show WAF, what the relocation of a unit costs, and what else a write costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady.estimate import Estimate, between
from ssdlab.experiments.steady.first_cycle import Cycle
from ssdlab.experiments.steady.garbage import FULL
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
_STEPS: Final = 10  # parts of a gauge: their costs differ, as victims do
_NOISE: Final = 0.03  # standard deviation of a cost, at least
_CERTAIN: Final = 4.0  # chi squared: two standard deviations
_FITS: Final = 10.0  # chi squared, at most
_WAFS: Final = np.geomspace(1.1, 500.0, 240)
_LEAST_COST: Final = 0.9  # of a write and of a relocation, in programs: for noise
_LIMIT: Final = 1.15  # cost of a write / of one that the link limits, at least

FEW: Final = (
    "victims are chosen at random or from a few, and the cost of writes does not show from how many"
)
_BY_TRIMS: Final = (
    "victims are chosen at random: what writes cost before and while parts of the region are "
    "trimmed"
)


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


def waf_by_trimmed_parts(gauged: Gauged) -> Estimate | None:
    """WAF by the cost of writes while parts of the region are trimmed; None if it is not measured.

    No WAF explains the costs of a drive that chooses its victims from a few.

    A map that does not fit into memory misses less often in a smaller region, and an SLC cache that
    takes the writes is larger. Behind a slow link a unit larger than a block is not certain enough.
    """
    unit, is_limited = gauged.unit, gauged.is_direct_limited
    if gauged.misses_map or gauged.may_write_cache or not gauged.trimmed_parts:
        return None
    if unit is None or (is_limited and unit > 1):
        return None
    program = gauged.block * unit / max(gauged.direct, gauged.erased)
    shares, costs, noise = [0.0], [gauged.block / gauged.steady / program], [_NOISE]
    for share, curve in gauged.trimmed_parts:
        start = max(0.1 * curve.written, FULL * gauged.buffer)
        if 2 * start >= curve.written:
            break  # interrupted
        seconds = curve.between(start, curve.written, _STEPS)
        found = seconds * _STEPS / (curve.written - start) * gauged.block / program
        cost = float(found.mean())
        if is_limited and cost < _LIMIT:
            break
        shares.append(share)
        costs.append(cost)
        noise.append(max(_NOISE, float(found.std(ddof=1)) / cost / math.sqrt(_STEPS)))
    bounds = _likely(np.array(shares), np.array(costs), np.array(noise), is_limited)
    if bounds is None:
        return Estimate(None, FEW)
    return Estimate(between(unit * bounds[0], unit * bounds[1]), _BY_TRIMS)


def _likely(
    shares: NDArray[np.float64],
    costs: NDArray[np.float64],
    noise: NDArray[np.float64],
    is_limited: bool,
) -> tuple[float, float] | None:
    """The bounds of WAF that explain costs, in programs, with these shares trimmed.

    A write without relocation and a relocation both cost a program or more. If the link hides what
    a program costs, a relocation costs at most `_READS_MOST` times the former.
    """
    least, common = (0.0, 1 / _READS_MOST) if is_limited else (_LEAST_COST, 0.0)
    chi = []
    for waf in _WAFS:
        relocated = (1 - shares) / (1 / (waf - 1) + shares) + common
        terms = np.column_stack((np.ones_like(shares), relocated))
        weights = 1 / (noise * costs)
        fit = lsq_linear(terms * weights[:, None], costs * weights, (least, np.inf))
        chi.append(2 * float(fit.cost))
    best = min(chi)
    if best > _FITS:
        return None
    likely = _WAFS[np.array(chi) < best + _CERTAIN]
    return float(likely[0]), float(likely[-1])


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

"""WAF without the drive's counters, or why the run does not determine it.

It comes as an interval. One that is wider than `WIDEST` is not reported as a finding: it would say
little, and its middle would be taken for a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady.closed_form import (
    is_little,
    may_choose_from_few,
    narrowed_by_hidden,
    waf_by_hidden,
)
from ssdlab.experiments.steady.estimate import Estimate, between, narrow
from ssdlab.experiments.steady.first_cycle import SURE, Cycle, WafBounds, cycles
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW, Garbage
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.experiments.steady.map_pages import MAP_ENTRY_BYTES, map_writes
from ssdlab.experiments.steady.mapping_unit import UNIT
from ssdlab.experiments.steady.victims_at_random import (
    FEW,
    waf_by_hidden_at_random,
    waf_by_trimmed_parts,
)
from ssdlab.experiments.steady.write_costs import (
    CACHED,
    FIRST,
    least_program_s,
    shows_map,
    waf_by_costs,
)

_LIKELY: Final = 1.07  # the same if it may do so
_BY_COSTS: Final = "what a steady write costs, relative to programs and reads"
_KNOWN: Final = 1.03  # the same by known garbage that agrees
_FEW: Final = 1.15  # WAF of a first cycle with victims chosen from three / that with others
_FEW_CACHED: Final = (
    "an SLC cache takes the writes, so that the rate does not show whether victims are chosen at "
    "random or from a few"
)
GAUGES: Final = (
    "not all gauges were measured: they need random writes to a whole drive that can be trimmed"
)
_UNLIKE: Final = (
    "after the rate fell, the cost of writes did not change as that of collection after a fill"
)
_OTHER_TRIMS: Final = (
    "victims are chosen at random, and the hidden flash shows another WAF than the cost of writes "
    "while parts of the region are trimmed"
)
_DIFFERENT: Final = Estimate(
    None, "the first cycle of collection and the costs of programs and reads show different values"
)


def waf_without_map(gauged: Gauged, hidden: Estimate) -> Estimate:
    """WAF from the cost of a steady write, without writes of the map.

    Its cost relative to the first cycle of collection, and to that of programs and reads, each give
    an interval. Both must agree. If that does not show WAF, the hidden flash may.
    """
    if not gauged.is_complete or not gauged.has_single_reads:
        return Estimate(None, GAUGES)
    if gauged.is_steady_limited:
        return Estimate(None, "the link, the host or the controller may limit the steady rate")
    by_costs = waf_by_costs(gauged)
    measured = _by_costs(gauged, hidden, by_costs)
    if measured.bracket is not None:
        measured = narrow(measured.bracket, measured.why)
    if measured.bracket is None:
        return waf_by_hidden(gauged, hidden, by_costs) or measured
    return Estimate(narrowed_by_hidden(gauged, hidden, measured.bracket), measured.why)


def _by_costs(gauged: Gauged, hidden: Estimate, by_costs: Bracket | None) -> Estimate:
    """WAF by what a steady write costs; of victims chosen at random, by the hidden flash."""
    found = _relative(gauged, hidden)
    if by_costs is None:
        return found
    if found.bracket is None or gauged.garbage == FROM_FEW:
        return _without_relative(gauged, by_costs)
    low, high = max(found.bracket.low, by_costs.low), min(found.bracket.high, by_costs.high)
    if low > high:
        return _DIFFERENT
    is_same = found.bracket[1:] == (low, high)
    return found if is_same else Estimate(_centred(gauged, between(low, high)), found.why)


def _without_relative(gauged: Gauged, by_costs: Bracket) -> Estimate:
    """WAF by costs, unless all cycles that may be those of collection show another one.

    If victims are chosen from a few, these cycles narrow wide bounds.
    """
    is_random = gauged.garbage == AT_RANDOM
    found = [] if is_random else [each for each in cycles(gauged) if each.may_be_collection]
    bounds = [each.waf_of(1 / gauged.steady) for each in found]
    agree = [
        (max(by_costs.low, each.least / _LIKELY), min(by_costs.high, each.high * _FEW))
        for each in bounds
        if each.low / _LIKELY < by_costs.high and by_costs.low < each.high * _FEW
    ]
    if bounds and not agree:
        return _DIFFERENT
    if not agree and gauged.is_direct_limited and _may_be_few(gauged):
        return Estimate(None, _UNLIKE)
    alone = narrow(_centred(gauged, by_costs), _BY_COSTS)
    is_few = gauged.garbage == FROM_FEW and not any(each.is_flat for each in found)
    if alone.bracket or not (agree and is_few):
        return alone
    within = between(min(low for low, _ in agree), max(high for _, high in agree))
    return narrow(within, _BY_COSTS)


def _may_be_few(gauged: Gauged) -> bool:
    """Whether known garbage may be that of victims chosen from a few, which the link hides.

    Such victims include newer superblocks: few in the first part that is written again, but most of
    them in later parts.
    """
    return isinstance(gauged.garbage, Garbage) and gauged.garbage.waf < FIRST


def _relative(gauged: Gauged, hidden: Estimate) -> Estimate:
    """WAF by the cost relative to that of the first cycle, or of victims chosen at random."""
    if gauged.garbage == AT_RANDOM:
        return _waf_at_random(gauged, hidden)
    found = [cycle for cycle in cycles(gauged) if cycle.may_be_collection]
    return _by_cycles(gauged, found) if found else Estimate(None, _UNLIKE)


def _by_cycles(gauged: Gauged, found: Sequence[Cycle]) -> Estimate:
    if gauged.garbage == FROM_FEW and gauged.writes_cache:
        return Estimate(None, _FEW_CACHED)
    sure = [cycle for cycle in found if cycle.is_collection]
    if gauged.unit is None and not sure:
        return Estimate(None, UNIT)
    found = sure if gauged.unit is not None and sure else found
    bounds = [cycle.waf_of(1 / gauged.steady) for cycle in found]
    within = _sure(gauged, bounds) if sure else _agreed(gauged, bounds)
    if within is None:
        return Estimate(None, _UNLIKE)
    ratio = 2 / gauged.steady / sum(found[0].costs)
    why = (
        f"a steady write costs {ratio:.3g} times as much as the mean one of the first cycle of "
        "collection, whose WAF is known"
    )
    return _with_cache(gauged, within, why)


def _sure(gauged: Gauged, bounds: Sequence[WafBounds]) -> Bracket:
    """WAF by cycles in which the cost declines as WAF does."""
    low = max(1.0, min(each.least for each in bounds) / SURE)
    high = max(each.high for each in bounds) * SURE
    return _centred(gauged, between(low, high))


def _centred(gauged: Gauged, within: Bracket) -> Bracket:
    """With the value of known garbage, if that is within the bounds.

    It does not have the reads of a write to a part of a mapping unit, nor the writes of an SLC
    cache.
    """
    if gauged.unit != 1 or gauged.may_write_cache or not isinstance(gauged.garbage, Garbage):
        return within
    known = gauged.garbage.waf_at(gauged.steady)
    return within._replace(value=known) if within.low <= known <= within.high else within


def _agreed(gauged: Gauged, bounds: Sequence[WafBounds]) -> Bracket | None:
    """WAF by cycles that are not certain; None if known garbage disagrees."""
    low = max(1.0, min(each.low for each in bounds) / _LIKELY)
    least = max(1.0, min(each.least for each in bounds) / _LIKELY)
    high = max(each.high for each in bounds) * _LIKELY
    if isinstance(gauged.garbage, Garbage):
        known = gauged.garbage.waf_at(gauged.steady)
        if known * _LIKELY < least or known > high * _LIKELY:
            return None
        both = between(min(low, known / _KNOWN), max(high, known * _KNOWN))
        return _centred(gauged, both)
    if gauged.garbage == FROM_FEW:
        return _of_few(gauged, low, high)
    is_unclear = gauged.may_write_cache and not gauged.writes_cache
    may_hide = is_unclear or (gauged.misses_map and not shows_map(gauged))
    return None if may_hide else between(least, high)


def _of_few(gauged: Gauged, low: float, high: float) -> Bracket | None:
    """WAF if victims are chosen from a few: newer superblocks are collected in the first cycle.

    Then WAF is higher, but not above the cost relative to a large write in order. Behind a slow
    link victims may also be chosen at random.
    """
    if gauged.is_direct_limited:
        return None
    most, ratio = _FEW * high, _KNOWN * gauged.direct / gauged.steady
    return between(low, most if gauged.may_borrow or ratio < low else min(most, ratio))


def _with_cache(gauged: Gauged, found: Bracket, why: str) -> Estimate:
    """WAF with what an SLC cache may add to it."""
    _, low, high = found
    if gauged.may_write_cache:
        high += gauged.unit or 1
    if gauged.writes_cache:
        low += CACHED * (gauged.unit or 1)
    return narrow(found if found[1:] == (low, high) else between(low, high), why)


def with_map(gauged: Gauged, found: Estimate) -> Estimate:
    """WAF with writes of the map, if it has any: all that a write costs is programs, at most."""
    if found.bracket is None or not gauged.misses_map:
        return found
    program, added = _program_s(gauged), map_writes(gauged)
    if program is None and added.high == math.inf:
        return Estimate(None, "a map in flash may add programs to each write")
    _, low, high = found.bracket
    if program is not None:
        most = SURE / gauged.steady / program + gauged.may_write_cache * max(gauged.units)
        added = added._replace(high=min(added.high, max(added.low, most - high)))
    why = f"{found.why}; an entry of the map is taken to have {MAP_ENTRY_BYTES} bytes"
    return narrow(between(low + added.low, high + added.high), why)


def _program_s(gauged: Gauged) -> float | None:
    """Seconds per byte of a program, at least; None if nothing shows it."""
    if gauged.is_direct_limited or gauged.may_borrow:
        return least_program_s(gauged)
    found = [1 / gauged.direct]
    if isinstance(gauged.garbage, Garbage):
        found.append(1 / gauged.garbage.rate / gauged.garbage.waf)
    return min(found)


def _waf_at_random(gauged: Gauged, hidden: Estimate) -> Estimate:
    """WAF if victims are chosen at random, by the hidden flash and by what trims change."""
    if hidden.bracket is not None and may_choose_from_few(gauged, hidden.bracket):
        return Estimate(None, FEW)
    by_hidden = _by_hidden_at_random(gauged, hidden)
    by_trims = waf_by_trimmed_parts(gauged)
    if by_trims is None or (by_hidden.bracket is None and by_trims.bracket is None):
        return by_hidden
    if by_trims.bracket is None or by_hidden.bracket is None:
        return by_trims
    low = max(by_trims.bracket.low, by_hidden.bracket.low)
    high = min(by_trims.bracket.high, by_hidden.bracket.high)
    if low > _LIKELY * high:
        return Estimate(None, _OTHER_TRIMS)
    within = between(min(low, high / _LIKELY), max(high, low * _LIKELY))
    if low <= by_hidden.bracket.value <= high:
        within = within._replace(value=by_hidden.bracket.value)
    return Estimate(within, by_hidden.why)


def _by_hidden_at_random(gauged: Gauged, hidden: Estimate) -> Estimate:
    """WAF if as many units of a victim are valid as of all flash."""
    if hidden.bracket is None or gauged.unit is None:
        return Estimate(None, "victims are chosen at random, and the hidden flash is not known")
    if is_little(gauged, hidden.bracket):
        return Estimate(None, "victims are chosen at random, and little flash is hidden")
    found = waf_by_hidden_at_random(gauged, hidden.bracket, cycles(gauged, by_fall=True))
    return _with_cache(gauged, found.bracket, found.why) if found.bracket else found

"""Hidden flash by WAF, and WAF by hidden flash, in steady state.

With uniform random writes, the closed form relates them, whatever the policy that finds emptier
victims than others. If victims are chosen at random, WAF is all flash / hidden flash. If they are
chosen from a few, WAF depends on how many these are.
"""

from __future__ import annotations

import math
from typing import Final

from ssdlab.analysis.write_amplification import (
    BY_POLICY,
    Bracket,
    alpha_from_waf,
    waf_from_alpha,
)
from ssdlab.experiments.steady.estimate import WIDEST, Estimate, between, narrow
from ssdlab.experiments.steady.first_cycle import SURE, cycles
from ssdlab.experiments.steady.garbage import (
    AT_RANDOM,
    FROM_FEW,
    LATE,
    NOT_MEASURED,
    Garbage,
    late_rate,
)
from ssdlab.experiments.steady.gauged import BUFFER_LEAST, Gauged
from ssdlab.experiments.steady.victims_at_random import waf_at_random, waf_by_trimmed_parts
from ssdlab.experiments.steady.write_costs import CACHED, is_clear, waf_by_costs
from ssdlab.units import format_size

_FROM_ALL: Final = (0.93, 1.06)
"""WAF / the closed form with the hidden flash that takes data, on 389 random drives whose victims
are chosen neither at random nor from a few."""
_LEAST: Final = 0.03
"""Hidden / visible flash that shows WAF, at least."""
_ALONE: Final = 0.04
"""The same, if nothing else shows it."""
_AT_RANDOM_MOST: Final = 2.0
"""Choices that are counted if victims are chosen at random, at most: 1, but the rate may vary."""
_MANY: Final = 5.0  # choices from which on WAF is almost that of a choice from all
_OF_MANY: Final = 1.1  # its WAF / the closed form, at most
_OVERLAP: Final = 1 / 3  # of the narrower of two intervals that agree


def hidden_by_waf(gauged: Gauged, waf: Estimate) -> Estimate | None:
    """Hidden flash by WAF without writes of the map; None if that does not show it.

    What known garbage shows must agree, and narrows it.
    """
    if waf.bracket is None or gauged.unit is None or gauged.may_write_cache:
        return None
    if waf.bracket.low <= gauged.unit:
        return None
    value, low, high = (each / gauged.unit for each in waf.bracket)
    factors = _of_closed_form(gauged, gauged.region * (alpha_from_waf(value) - 1))
    if factors is None or low <= factors[1]:
        return None
    wafs = value, high / factors[0], low / factors[1]
    sizes = Bracket(*(gauged.region * (alpha_from_waf(each) - 1) for each in wafs))
    if isinstance(gauged.garbage, Garbage):
        _, low, high = gauged.garbage.hidden
        if not low <= sizes.value <= high:
            return None
        sizes = sizes._replace(low=max(low, sizes.low), high=min(high, sizes.high))
    if sizes.high > WIDEST * sizes.low or is_little(gauged, sizes):
        return None
    return Estimate(sizes, f"a WAF of {waf.bracket.value:.3g} shows that")


def _of_closed_form(gauged: Gauged, hidden: float) -> tuple[float, float] | None:
    """The bounds of WAF / the closed form with this much hidden flash; None if it does not hold."""
    if gauged.garbage in {AT_RANDOM, NOT_MEASURED}:
        return None
    if gauged.garbage != FROM_FEW:
        return _FROM_ALL
    return (_FROM_ALL[0], _OF_MANY) if choices_least(gauged, hidden) >= _MANY else None


def choices_least(gauged: Gauged, hidden: float) -> float:
    """From how many superblocks a victim is the emptiest, at least; 0 if that is not known.

    `hidden` is the hidden flash in bytes. While the trimmed region is written once, a victim is
    full if all choices are superblocks that were written since, and empty otherwise. A full one
    takes as many programs as it makes room for, so that the rate falls by the share of full ones,
    or by more, as they are read first.
    """
    if gauged.is_direct_limited:
        return 0.0
    full = 1 - late_rate(gauged.curve("once"))
    written = sum(LATE) / 2 * gauged.region / (gauged.region + hidden)
    return math.log(full) / math.log(written)


def may_choose_from_few(gauged: Gauged, hidden: Bracket) -> bool:
    """Whether victims that seem to be chosen at random may be the emptiest of a few.

    With little hidden flash, most of a few superblocks are full, too.
    """
    return choices_least(gauged, hidden.high) > _AT_RANDOM_MOST


def contradiction(gauged: Gauged, hidden: Estimate, waf: Estimate) -> str:
    """Why hidden flash and WAF without writes of the map cannot both be right; "" if they can."""
    if hidden.bracket is None or waf.bracket is None or gauged.unit is None:
        return ""
    if gauged.garbage == AT_RANDOM or gauged.may_write_cache:
        return ""
    _, low, high = hidden.bracket
    least, most = (gauged.unit * waf_from_alpha(1 + size / gauged.region) for size in (high, low))
    factors = _of_closed_form(gauged, hidden.bracket.value) or BY_POLICY
    if _FROM_ALL[0] * least <= waf.bracket.high and waf.bracket.low <= factors[1] * most:
        return ""
    size = format_size(hidden.bracket.value)
    return (
        f"{size} of hidden flash took data, which makes a WAF of {least:.3g} to {most:.3g}, but "
        f"the cost of writes shows {waf.bracket.low:.3g} to {waf.bracket.high:.3g}"
    )


def reconcile(gauged: Gauged, hidden: Estimate, waf: Estimate) -> tuple[Estimate, Estimate]:
    """Both estimates, without those that cannot be right if the others are.

    Hidden flash of a few superblocks need not have the WAF of the closed form. A map that does not
    fit adds to the cost of writes, but not to the bytes before known garbage is collected.
    """
    if not (why := contradiction(gauged, hidden, waf)):
        return hidden, waf
    unknown = Estimate(None, why)
    is_by_garbage = gauged.misses_map and isinstance(gauged.garbage, Garbage)
    if is_clear(gauged) or (_is_by_two(gauged) and not is_by_garbage):
        return unknown, waf
    return (hidden if is_by_garbage else unknown), unknown


def _is_by_two(gauged: Gauged) -> bool:
    """Whether programs and reads, and the first cycle of collection, show the same WAF."""
    costs = waf_by_costs(gauged)
    if costs is None:
        return False
    return any(costs.low < each.high and each.low < costs.high for each in _by_cycles(gauged))


def waf_by_hidden(gauged: Gauged, hidden: Estimate, by_costs: Bracket | None) -> Estimate | None:
    """WAF by the hidden flash, narrowed by all costs; None if one does not agree with it.

    `by_costs` are the bounds by programs and reads, without which victims may not be as random as
    they seem.
    """
    if hidden.bracket is None or (within := _bounds(gauged, hidden.bracket)) is None:
        return None
    is_seen = isinstance(gauged.garbage, Garbage) and gauged.buffer >= BUFFER_LEAST
    if gauged.is_direct_limited and not is_seen:
        return None  # what a buffer holds may be taken for hidden flash
    costs = [] if by_costs is None else [by_costs]
    if gauged.garbage != AT_RANDOM:
        costs += _by_cycles(gauged)
    elif not costs or not any(cycle.is_flat for cycle in cycles(gauged, by_fall=True)):
        return None
    elif (by_trims := waf_by_trimmed_parts(gauged)) is not None:
        if by_trims.bracket is None:
            return None
        costs.append(by_trims.bracket)
    if not costs and hidden.bracket.low < _ALONE * gauged.region:
        return None
    found = _narrowed(within, costs)
    why = f"{format_size(hidden.bracket.value)} of hidden flash took data, which makes that WAF"
    return None if found is None else narrow(found, why)


def narrowed_by_hidden(gauged: Gauged, hidden: Estimate, waf: Bracket) -> Bracket:
    """The bounds of WAF within those by the hidden flash, if these overlap."""
    if hidden.bracket is None or (within := _bounds(gauged, hidden.bracket)) is None:
        return waf
    low, high = max(waf.low, within.low), min(waf.high, within.high)
    if low > high:
        return waf
    return Bracket(waf.value, low, high) if low <= waf.value <= high else between(low, high)


def _bounds(gauged: Gauged, hidden: Bracket) -> Bracket | None:
    """WAF by the hidden flash in bytes; None if that does not show it."""
    if gauged.unit is None or is_little(gauged, hidden):
        return None
    if gauged.garbage == AT_RANDOM:
        if may_choose_from_few(gauged, hidden):
            return None
        _, low, high = waf_at_random(gauged.region, hidden)
        return _with_cache(gauged, low, high)
    factors = _of_closed_form(gauged, hidden.value)
    if factors is None:
        return None
    least, most = (waf_from_alpha(1 + size / gauged.region) for size in (hidden.high, hidden.low))
    return _with_cache(gauged, factors[0] * least, factors[1] * most)


def is_little(gauged: Gauged, hidden: Bracket) -> bool:
    """Whether that much hidden flash does not show WAF.

    It then depends on the blocks that collection keeps in reserve, and on data that the buffer
    holds while collection begins.
    """
    return hidden.low < _LEAST * gauged.region + gauged.buffer


def _by_cycles(gauged: Gauged) -> list[Bracket]:
    """Bounds by each first cycle that may be one."""
    found = [cycle for cycle in cycles(gauged) if cycle.may_be_collection]
    bounds = [cycle.waf_of(1 / gauged.steady) for cycle in found]
    unit = gauged.unit or 1
    return [
        _with_cache(gauged, each.low / unit / SURE, each.high / unit * SURE)
        for each in bounds
        if each.low > 0
    ]


def _with_cache(gauged: Gauged, low: float, high: float) -> Bracket:
    """Bounds in programs of a mapping unit, with what an SLC cache may add to them."""
    unit = gauged.unit or 1
    least, most = CACHED * bool(gauged.writes_cache), float(gauged.may_write_cache)
    return between(unit * (low + least), unit * (high + most))


def _narrowed(within: Bracket, costs: list[Bracket]) -> Bracket | None:
    """The bounds within those of the costs; None if these do not agree with them."""
    if not costs:
        return within
    if not all(_agree(each, within) for each in costs):
        return None
    low, high = min(each.low for each in costs), max(each.high for each in costs)
    return between(max(within.low, low), min(within.high, high))


def _agree(one: Bracket, other: Bracket) -> bool:
    """Whether two intervals overlap by at least a third of the narrower one."""
    overlap = min(one.high, other.high) / max(one.low, other.low)
    return overlap > math.pow(min(one.high / one.low, other.high / other.low), _OVERLAP)

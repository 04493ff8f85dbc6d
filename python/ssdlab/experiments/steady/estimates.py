"""Hidden spare and WAF without the drive's counters, or why the run does not determine them.

Both come as intervals. An interval wider than `WIDEST` is not reported as a finding: it would say
little, and its middle would be taken for a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ssdlab.analysis.write_amplification import (
    BY_POLICY,
    Bracket,
    waf_from_alpha,
)
from ssdlab.experiments.steady.closed_form import (
    is_little,
    narrowed_by_hidden,
    waf_by_hidden,
)
from ssdlab.experiments.steady.estimate import WIDEST, Estimate, between, narrow
from ssdlab.experiments.steady.first_cycle import Cycle, WafBounds, cycles
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW, Garbage
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.experiments.steady.map_pages import MAP_ENTRY_BYTES, map_writes
from ssdlab.experiments.steady.rates import SAME, same
from ssdlab.experiments.steady.victims_at_random import (
    RESERVE,
    agrees_with_cost,
    is_too_slow,
    waf_by_hidden_at_random,
)
from ssdlab.experiments.steady.write_costs import (
    CACHED,
    FIRST,
    is_clear,
    least_program_s,
    shows_map,
    waf_by_costs,
)
from ssdlab.units import format_size

MIB: Final = 1 << 20
_RESERVE_BORROWED: Final = 1.4
"""`RESERVE`, if an SLC cache borrows free superblocks, of which collection keeps more."""
_HIDDEN_MOST: Final = 1.0  # hidden / visible flash
_FOLDED: Final = 0.4
"""Folding an SLC cache of two bits per cell halves the rate of direct writes, at most."""
UNIT: Final = (
    "the rates of large writes, of writes in order and of writes at random do not show how many "
    "mapping units a write takes up"
)
_SPARE_LEAST: Final = 0.01
"""Hidden / visible flash that is reported, at least: less may be a superblock or two."""
_SURE: Final = 1.05  # factor of the bounds of WAF if the cost declines as in a first cycle
_LIKELY: Final = 1.07  # the same if it may do so
_BY_COSTS: Final = "what a steady write costs, relative to programs and reads"
_KNOWN: Final = 1.03  # the same by known garbage that agrees
_FEW: Final = 1.15  # WAF of a first cycle with victims chosen from three / that with others
_OLDEST: Final = 1.1  # WAF / the closed form, if victims are not chosen at random
_TOO_SLOW: Final = (
    "a steady write costs more than a read and a program of each unit that victims chosen at "
    "random have with that much of it"
)
_SEEN_BEHIND_LINK: Final = 3.0  # WAF of known garbage that lowers the rate at once, at least
_NO_CHOICE: Final = (
    "no choice of victims has the WAF of the first cycle of collection with that much of it"
)
_FAR: Final = 1.5  # WAF by known garbage / by the hidden flash, if both may be right
_OTHER_KNOWN: Final = (
    "no choice of victims has the WAF by known garbage with that much hidden flash"
)
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


_DIFFERENT: Final = Estimate(
    None, "the first cycle of collection and the costs of programs and reads show different values"
)


def hidden_flash(gauged: Gauged) -> Estimate:
    """Bytes that the drive programmed before collection began, up to all hidden flash."""
    found = _hidden_by_gauges(gauged)
    if found.bracket is not None and (why := _contradiction(gauged, found.bracket)):
        found = Estimate(None, why)
    return found if found.bracket else _hidden_by_cycle(gauged) or found


def _hidden_by_gauges(gauged: Gauged) -> Estimate:
    garbage = gauged.garbage
    if not isinstance(garbage, Garbage):
        return _hidden_by_fall(gauged)
    why = _fell("on trimmed flash", garbage.alone, garbage.rate)
    is_borrowed = gauged.may_write_cache and gauged.cache
    reserve = _RESERVE_BORROWED if is_borrowed else RESERVE
    found = _estimate(garbage.hidden, Bracket(0, 0, gauged.unseen_buffer), reserve, why)
    if gauged.is_direct_limited and garbage.waf < _SEEN_BEHIND_LINK:
        by_fall = _hidden_by_fall(gauged)
        return by_fall if by_fall.bracket else found
    if found.bracket is None:
        by_fall = _hidden_by_fall(gauged)
        bracket, within = by_fall.bracket, garbage.hidden
        if bracket is not None and within.low < bracket.low and bracket.value < within.high * SAME:
            return by_fall
    return found


def _contradiction(gauged: Gauged, size: Bracket) -> str:
    """Why the drive cannot have as much hidden flash; "" if it can."""
    unit = gauged.unit
    if unit is None or not gauged.has_single_reads:
        return ""
    if gauged.garbage == AT_RANDOM:
        return _TOO_SLOW if is_too_slow(gauged, size) else ""
    found = [each for each in cycles(gauged, by_fall=True) if each.may_be_collection]
    wafs = [each.waf_of(1 / gauged.steady) for each in found]
    least, most = (
        unit * factor * waf_from_alpha(1 + hidden / gauged.region)
        for factor, hidden in zip(BY_POLICY, (size.high, size.low), strict=True)
    )
    garbage = gauged.garbage
    if isinstance(garbage, Garbage) and is_clear(gauged) and not gauged.is_direct_limited:
        known = _waf_by(gauged, garbage)
        if not least / _FAR < known < most * _FAR:
            return _OTHER_KNOWN
    low, high = least / _SURE, most * _SURE
    is_other = all(each.high < low for each in wafs) or all(each.low > high for each in wafs)
    return _NO_CHOICE if wafs and is_other else ""


def _hidden_by_cycle(gauged: Gauged) -> Estimate | None:
    """Where the rate of the rounds fell, if their cost after it is that of collection.

    Both how it declines and the WAF that it shows must be possible with as much hidden flash.
    """
    fall, unit = gauged.fall, gauged.unit
    if fall is None or unit is None or not gauged.has_single_reads or gauged.is_steady_limited:
        return None
    if gauged.garbage in {AT_RANDOM, FROM_FEW} and gauged.may_hide_borrowed:
        return None
    low = unit * fall.low - gauged.buffer - gauged.unseen_buffer
    value, high = (unit * at - gauged.buffer for at in (fall.at, fall.high))
    taken = Bracket(value, low, high)
    if low <= 0 or not _agrees(gauged, cycles(gauged, by_fall=True), taken):
        return None
    why = _fell("after the fill", fall.before, fall.after)
    found = _estimate(taken, Bracket(0, 0, 0), RESERVE, why)
    return found if found.bracket else None


def _agrees(gauged: Gauged, found: Sequence[Cycle], hidden: Bracket) -> bool:
    """Whether the cost after the fall is that of collection with as much hidden flash."""
    if gauged.garbage == AT_RANDOM:
        return agrees_with_cost(gauged, found, hidden)
    steady = 1 / gauged.steady
    low, high = (1 + size / gauged.region for size in hidden[1:])
    is_few = gauged.garbage == FROM_FEW
    sure = [each for each in found if each.is_collection or (is_few and each.may_be_collection)]
    if not sure:
        return False
    bounds = [each.waf_of(steady) for each in sure]
    least, most = (sure[0].unit * waf_from_alpha(alpha) for alpha in (high, low))
    factor = BY_POLICY[1] if is_few else _OLDEST
    return (
        min(each.low for each in bounds) < factor * most * _SURE
        and max(each.high for each in bounds) > BY_POLICY[0] * least / _SURE
    )


def reportable(hidden: Estimate, region: float) -> Estimate:
    """The hidden flash, unless it is so little that the reserve of collection may be as large.

    `region` is in bytes.
    """
    if hidden.bracket is None or hidden.bracket.low >= _SPARE_LEAST * region:
        return hidden
    size = format_size(hidden.bracket.value)
    return Estimate(None, f"only {size} of hidden flash took data; the reserve may be as large")


def _hidden_by_fall(gauged: Gauged) -> Estimate:
    """`hidden_flash`, by the last fall of the rate of the rounds, or of large writes after them."""
    fall, large, unit = gauged.fall, gauged.large_fall, gauged.unit
    if fall is None or unit is None:
        return Estimate(None, UNIT if fall else "the rate did not fall within 2 times the region")
    if unit * fall.after > gauged.direct:
        return Estimate(None, "after the rate fell, it was still that of writes without relocation")
    why = _fell("after the fill", fall.before, fall.after)
    kink = Bracket(*(unit * at for at in (fall.at, fall.low, fall.high)))
    is_late = kink.value - gauged.cache > _HIDDEN_MOST * gauged.region
    if is_late or fall.at < SAME * gauged.buffer:
        reason = "too late for spare" if is_late else "the write buffer may hold as much"
        return Estimate(None, f"the rate fell after {format_size(fall.at)}: {reason}")
    if gauged.cache and gauged.has_own_flash:  # which is not spare
        return _estimate(kink, gauged.cached, RESERVE, why)
    later = None if large is None else Bracket(large.at, large.low, large.high)
    clear = _clear(gauged, kink, later)
    if clear is None:
        return Estimate(
            None,
            f"the rate fell after {format_size(kink.value)} in whole mapping units, that of large "
            f"writes after {format_size(0.0 if later is None else later.value)}: an SLC cache or "
            "the choice of victims hides where collection begins",
        )
    reserve = _RESERVE_BORROWED if gauged.cache else RESERVE
    least = 0.0 if gauged.is_direct_limited else gauged.buffer
    taken = Bracket(gauged.buffer, least, gauged.buffer + gauged.unseen_buffer)
    return _estimate(clear, taken, reserve, why)


def _fell(place: str, before: float, after: float) -> str:
    return f"{place} the rate fell from {before / MIB:.4g} to {after / MIB:.4g} MiB/s when"


def _clear(gauged: Gauged, kink: Bracket, later: Bracket | None) -> Bracket | None:
    """The fall at which collection begins: that of the rounds, or that of large writes.

    Large writes follow the rounds. If victims are chosen at random, they are collected early.
    """
    assert gauged.fall is not None
    assert gauged.unit is not None
    if not gauged.cache:
        is_other = later is not None and later.value > SAME * kink.value
        is_written = gauged.has_single_reads and gauged.writes_cache
        is_hidden = gauged.may_hide_cache or gauged.may_hide_borrowed or is_written
        return None if is_other or is_hidden else kink
    if gauged.has_own_flash is None:
        return None
    if later is not None and same(later.value, kink.value):
        return min(kink, later, key=lambda at: at.high / at.low)
    full = gauged.direct / gauged.unit
    if later is not None and later.value > kink.value:
        return later if gauged.fall.before > SAME * full else None  # the cache was full
    # A cache that is folded costs less than that.
    is_collection = gauged.fall.after < _FOLDED * full and gauged.fall.before < SAME * full
    return kink if is_collection else None


def _estimate(at: Bracket, taken: Bracket, reserve: float, why: str) -> Estimate:
    """The bytes programmed at a fall: those written, without those in buffer or cache."""
    value, low, high = (
        at.value - taken.value,
        at.low - taken.high,
        reserve * (at.high - taken.low),
    )
    if low <= 0 or high > WIDEST * low:
        bounds = f"{format_size(max(0.0, low))} to {format_size(high)}"
        return Estimate(None, f"too uncertain: {bounds} of hidden flash took data")
    return Estimate(Bracket(value, low, high), why)


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


def _waf_by(gauged: Gauged, garbage: Garbage) -> float:
    return garbage.waf * garbage.rate / gauged.steady


def _sure(gauged: Gauged, bounds: Sequence[WafBounds]) -> Bracket:
    """WAF by cycles in which the cost declines as WAF does."""
    low = max(1.0, min(each.least for each in bounds) / _SURE)
    high = max(each.high for each in bounds) * _SURE
    return _centred(gauged, between(low, high))


def _centred(gauged: Gauged, within: Bracket) -> Bracket:
    """With the value of known garbage, if that is within the bounds.

    It does not have the reads of a write to a part of a mapping unit.
    """
    if gauged.unit != 1 or not isinstance(gauged.garbage, Garbage):
        return within
    known = _waf_by(gauged, gauged.garbage)
    return within._replace(value=known) if within.low <= known <= within.high else within


def _agreed(gauged: Gauged, bounds: Sequence[WafBounds]) -> Bracket | None:
    """WAF by cycles that are not certain; None if known garbage disagrees."""
    low = max(1.0, min(each.low for each in bounds) / _LIKELY)
    least = max(1.0, min(each.least for each in bounds) / _LIKELY)
    high = max(each.high for each in bounds) * _LIKELY
    if isinstance(gauged.garbage, Garbage):
        known = _waf_by(gauged, gauged.garbage)
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
        most = _SURE / gauged.steady / program + gauged.may_write_cache * max(gauged.units)
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
    """WAF if victims are chosen at random: as many of their units are valid as of all flash."""
    if hidden.bracket is None or gauged.unit is None:
        return Estimate(None, "victims are chosen at random, and the hidden flash is not known")
    if is_little(gauged, hidden.bracket):
        return Estimate(None, "victims are chosen at random, and little flash is hidden")
    flat = [each for each in cycles(gauged, by_fall=True) if each.is_flat]
    found = waf_by_hidden_at_random(gauged, hidden.bracket, flat)
    return _with_cache(gauged, found.bracket, found.why) if found.bracket else found

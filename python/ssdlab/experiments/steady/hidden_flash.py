"""Hidden flash without the drive's counters, or why the run does not determine it.

It is what the drive programs before collection begins. If more than one gauge shows where that is,
they must agree. What is measured as an interval wider than `WIDEST` is not reported: its middle
would be taken for a measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ssdlab.analysis.write_amplification import BY_POLICY, Bracket, waf_from_alpha
from ssdlab.experiments.steady.estimate import WIDEST, Estimate, between
from ssdlab.experiments.steady.first_cycle import SURE, Cycle, cycles
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW, Garbage
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.experiments.steady.mapping_unit import UNIT
from ssdlab.experiments.steady.rates import SAME, same
from ssdlab.experiments.steady.victims_at_random import RESERVE, agrees_with_cost, is_too_slow
from ssdlab.experiments.steady.write_costs import is_clear
from ssdlab.stats.rate_drops import RateDrop
from ssdlab.units import format_size

MIB: Final = 1 << 20
_RESERVE_BORROWED: Final = 1.4
"""`RESERVE`, if an SLC cache borrows free superblocks, of which collection keeps more."""
_BUFFERED: Final = 1.4
"""What a buffer holds / what the burst showed, at most: it may not have been empty before."""
_HIDDEN_MOST: Final = 1.0  # hidden / visible flash
_FOLDED: Final = 0.4
"""Folding an SLC cache of two bits per cell halves the rate of direct writes, at most."""
_SPARE_LEAST: Final = 0.01
"""Hidden / visible flash that is reported, at least: less may be a superblock or two."""
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
    if found.bracket is None or found.bracket.high > WIDEST * found.bracket.low:
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
        known = garbage.waf_at(gauged.steady)
        if not least / _FAR < known < most * _FAR:
            return _OTHER_KNOWN
    low, high = least / SURE, most * SURE
    is_other = all(each.high < low for each in wafs) or all(each.low > high for each in wafs)
    return _NO_CHOICE if wafs and is_other else ""


def _hidden_by_cycle(gauged: Gauged) -> Estimate | None:
    """Where the rate of the rounds fell, if their cost after it is that of collection.

    Both how it declines and the WAF that it shows must be possible with as much hidden flash.
    """
    fall, unit = gauged.fall, gauged.unit
    if fall is None or unit is None or not gauged.has_single_reads or gauged.is_steady_limited:
        return None
    if gauged.rested_writes_cache and not gauged.cache:
        return None
    if gauged.borrows and unit * fall.at < gauged.cache:
        return None
    if gauged.garbage in {AT_RANDOM, FROM_FEW} and gauged.may_hide_borrowed:
        return None
    cached = _in_own_flash(gauged)
    low = unit * fall.low - _most_buffered(gauged) - cached.high
    value = unit * fall.at - gauged.buffer - cached.value
    taken = Bracket(value, low, unit * fall.high - gauged.buffer - cached.low)
    if low <= 0 or not _agrees(gauged, cycles(gauged, by_fall=True), taken):
        return None
    why = _fell("after the fill", fall.before, fall.after)
    found = _estimate(taken, Bracket(0, 0, 0), RESERVE, why)
    return found if found.bracket else None


def _in_own_flash(gauged: Gauged) -> Bracket:
    """Bytes before the fall of the rate that an SLC cache has taken, whose flash is not hidden."""
    if not gauged.cache or gauged.has_own_flash is False:
        return Bracket(0, 0, 0)
    return gauged.cached if gauged.has_own_flash else Bracket(0, 0, gauged.cached.high)


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
        min(each.low for each in bounds) < factor * most * SURE
        and max(each.high for each in bounds) > BY_POLICY[0] * least / SURE
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
    is_full = _is_full(gauged, fall)
    least = 0.0 if gauged.is_direct_limited or is_full else gauged.buffer
    value = gauged.buffer / 2 if is_full else gauged.buffer
    taken = Bracket(value, least, _most_buffered(gauged))
    return _estimate(clear, taken, reserve, why)


def _most_buffered(gauged: Gauged) -> float:
    """Bytes that the buffer may hold at the fall, in whole mapping units."""
    return max(_BUFFERED, gauged.unit or 1) * gauged.buffer + gauged.unseen_buffer


def _is_full(gauged: Gauged, fall: RateDrop) -> bool:
    """Whether the buffer was full before this fall of the rate, so that it did not delay it.

    Of a write that is smaller than a mapping unit, the buffer holds only the bytes of the write.
    """
    unit = gauged.unit or 1
    return unit > 1 and fall.at - gauged.direct / unit * fall.seconds > gauged.buffer


def _fell(place: str, before: float, after: float) -> str:
    return f"{place} the rate fell from {before / MIB:.4g} to {after / MIB:.4g} MiB/s when"


def _clear(gauged: Gauged, kink: Bracket, later: Bracket | None) -> Bracket | None:
    """The fall at which collection begins: that of the rounds, or that of large writes.

    Large writes follow the rounds. If victims are chosen at random, they are collected early. If
    neither rates nor reads show whether a cache takes the rounds, but not the large writes, which
    follow without a rest, collection may begin at either.
    """
    assert gauged.fall is not None
    assert gauged.unit is not None
    if not gauged.cache:
        is_other = later is not None and later.value > SAME * kink.value
        is_written = gauged.has_single_reads and gauged.writes_cache
        is_hidden = gauged.may_hide_cache or gauged.may_hide_borrowed or is_written
        if is_other or is_hidden:
            return None
        may_be_cached = gauged.is_direct_limited and gauged.rested_writes_cache is None
        return _either(kink, later) if later and may_be_cached else kink
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


def _either(one: Bracket, other: Bracket) -> Bracket:
    return between(min(one.low, other.low), max(one.high, other.high))


def _estimate(at: Bracket, taken: Bracket, reserve: float, why: str) -> Estimate:
    """The bytes programmed at a fall: those written, without those in buffer or cache."""
    value, low, high = (at.value - taken.value, at.low - taken.high, at.high - taken.low)
    if low <= 0 or high > WIDEST * low:
        bounds = f"{format_size(max(0.0, low))} to {format_size(high)}"
        return Estimate(None, f"too uncertain: {bounds} of hidden flash took data")
    return Estimate(Bracket(value, low, reserve * high), why)

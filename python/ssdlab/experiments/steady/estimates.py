"""Hidden spare and WAF without the drive's counters, or why the run does not determine them.

Both come as intervals. An interval wider than `WIDEST` is not reported as a finding: it would say
little, and its middle would be taken for a measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.write_amplification import (
    BY_POLICY,
    Bracket,
    senses_per_unit,
    spare_from_alpha,
    waf_from_alpha,
    waf_from_costs,
)
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW, STREAMS, Garbage
from ssdlab.experiments.steady.gauged import UNITS, Gauged
from ssdlab.experiments.steady.rates import SAME, same, settled
from ssdlab.units import format_size

MIB: Final = 1 << 20
WIDEST: Final = 1.5
"""High / low of the widest interval that counts as an estimate."""
_RESERVE: Final = 1.15
_RESERVE_BORROWED: Final = 1.4
"""Hidden flash / the part that is seen to take data, at most. Collection keeps some superblocks
free, and more if an SLC cache borrows free ones."""
_HIDDEN_MOST: Final = 1.0  # hidden / visible flash
_FOLDED: Final = 0.4
"""Folding an SLC cache of two bits per cell halves the rate of direct writes, at most."""
_UNIT: Final = (
    "the rates of large writes, of writes in order and of writes at random do not show how many "
    "mapping units a write takes up"
)
_HELD: Final = "the write buffer or an SLC cache may have held as much"
_BUFFER_S: Final = 0.006
"""A buffer that holds more than the writes of this time keeps all dies busy: two programs of the
slowest cells. A smaller one may limit the host's writes, but not relocations."""
_SHORT_S: Final = 0.0025
_SHORT_MORE: Final = 1.32  # WAF / the ratio of costs, at most, if the buffer is that small
_PAGE_UNITS: Final = (4, 3)
"""Mapping units in a page, for the dearest reads for relocation; fewer if victims are chosen at
random, as the cost without relocation is less certain then."""
_DEAR_READ: Final = 0.5
"""If a read costs this share of a write, the channel may limit both: no unit is read for free."""
_RESERVE_AT_RANDOM: Final = 1.2
"""Besides the usual reserve: collection that begins early leaves more free."""
_SPARE_LEAST: Final = 0.03
"""Hidden / visible flash that is reported, at least. Of less, the reserve may be a large part: some
superblocks of any size."""
_READ_SHARE: Final = 0.7  # of a write of known WAF, at most
_HOST_SHARE: Final = 0.7
_WAITS: Final = 1.3
"""Cost of a write that first reads the rest of its mapping unit, of which several wait for one die,
relative to one that reads nothing."""
_FAR: Final = 5
"""The highest WAF that the cost of a known one shows, as a multiple."""
_ADDED: Final = 0.5  # programs; a write to an SLC cache as well costs about one
_UNSURE: Final = 0.03  # of a cost
_EXTRA: Final = 0.1  # of a cost: less is neglected in the value, but not in its bounds
_OLDEST: Final = 1.1  # WAF / the closed form, if victims are not chosen at random
_ROUGHLY: Final = 1.1
_HARDLY_MORE: Final = 1.05  # WAF of random victims / that of all hidden flash, at most


@dataclass(frozen=True)
class Estimate:
    """An interval with its value, or `None` and the reason."""

    bracket: Bracket | None
    why: str


def hidden_flash(gauged: Gauged) -> Estimate:
    """Bytes that the drive programmed before collection began, up to all hidden flash."""
    garbage = gauged.garbage
    if not isinstance(garbage, Garbage):
        return _hidden_by_fall(gauged)
    if same(garbage.hidden.value, gauged.held):
        return Estimate(None, _HELD)
    why = _fell("on trimmed flash", garbage.alone, garbage.rate)
    found = _estimate(garbage.hidden, Bracket(0, 0, gauged.unseen_buffer), _RESERVE, why)
    if found.bracket is None:
        by_fall = _hidden_by_fall(gauged)
        bracket, within = by_fall.bracket, garbage.hidden
        if bracket is not None and within.low < bracket.low and bracket.value < within.high * SAME:
            return by_fall
    return found


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
        return Estimate(None, _UNIT if fall else "the rate did not fall within 2 times the region")
    if unit * fall.after > gauged.direct:
        return Estimate(None, "after the rate fell, it was still that of writes without relocation")
    why = _fell("after the fill", fall.before, fall.after)
    kink = Bracket(*(unit * at for at in (fall.at, fall.low, fall.high)))
    is_late = kink.value - gauged.cache > _HIDDEN_MOST * gauged.region
    if is_late or fall.at < SAME * gauged.buffer:
        reason = "too late for spare" if is_late else "the write buffer may hold as much"
        return Estimate(None, f"the rate fell after {format_size(fall.at)}: {reason}")
    if gauged.cache and gauged.has_own_flash:  # which is not spare
        buffer = gauged.buffer / 2
        taken = Bracket(gauged.cache - buffer, gauged.cache - 2 * buffer, gauged.cache)
        return _estimate(kink, taken, _RESERVE, why)
    later = None if large is None else Bracket(large.at, large.low, large.high)
    clear = _clear(gauged, kink, later)
    if clear is None:
        return Estimate(
            None,
            f"the rate fell after {format_size(kink.value)} in whole mapping units, that of large "
            f"writes after {format_size(0.0 if later is None else later.value)}: an SLC cache or "
            "the choice of victims hides where collection begins",
        )
    reserve = _RESERVE_BORROWED if gauged.cache else _RESERVE
    taken = Bracket(gauged.buffer, gauged.buffer, gauged.buffer + gauged.unseen_buffer)
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
        return None if is_other or gauged.may_hide_cache else kink
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


def waf(gauged: Gauged, hidden: Estimate) -> Estimate:
    """WAF from the cost of a steady write, if it is consistent with the hidden flash."""
    if not gauged.is_complete:
        return Estimate(None, "the gauges need random writes to a whole drive that can be trimmed")
    if gauged.is_steady_limited:
        return Estimate(None, "the link, the host or the controller may limit the steady rate")
    if gauged.cost_at_random(1) > SAME * UNITS[-1]:
        return Estimate(None, "a write costs more than a whole mapping unit of any drive")
    if isinstance(gauged.garbage, Garbage):
        return _waf_by_garbage(gauged, gauged.garbage, hidden)
    if gauged.is_direct_limited:
        return _waf_by_spare(gauged, hidden)
    return _waf_by_costs(gauged, hidden)


def _waf_by_garbage(gauged: Gauged, garbage: Garbage, hidden: Estimate) -> Estimate:
    """WAF from the cost of a steady write relative to that of one with a known WAF.

    Costs are proportional to WAF if reads for relocation take no time. The other bounds: a read
    takes as long as one of the host; and what writes cost without relocation beyond programs, as
    with a small buffer, is added to each write.
    """
    if same(garbage.hidden.value, gauged.held):
        return Estimate(None, f"without relocation, {_HELD}")
    if gauged.unit is None and gauged.reads_first:
        return Estimate(None, _UNIT)
    cost, known, alone = 1 / gauged.steady, 1 / garbage.rate, 1 / garbage.alone
    units = 1 if gauged.read > _DEAR_READ * alone else _PAGE_UNITS[0]
    per_unit = (garbage.waf - 1) * _senses_in_turn(garbage.trimmed, units)
    read = min(gauged.read, _READ_SHARE * known / per_unit)
    program = (known - per_unit * read) / garbage.waf
    extra = max(gauged.read if gauged.reads_first else 0.0, gauged.extra)
    wafs = [
        garbage.waf * cost / known,
        garbage.waf * (cost - extra) / known,
        _waf_with_reads(cost, program, read, units),
    ]
    if gauged.unit is not None and gauged.unit > 1:  # each write reads the rest of its unit
        wafs.append(min(wafs) / max(_WAITS, gauged.cost_at_random(gauged.unit) / gauged.unit))
    host = max(0.0, (garbage.waf * alone - known) / (garbage.waf - 1))
    if host < _HOST_SHARE * known:
        wafs.append(garbage.waf * (cost - host) / (known - host))
    low, high = max(1.0, (1 - _UNSURE) * min(wafs)), (1 + _UNSURE) * max(wafs)
    is_folded = gauged.folds_while_writing or _may_fold(gauged, garbage)
    if is_folded:  # then each unit is written to the cache, too
        high += gauged.unit or 1
    high += gauged.may_write_map
    if high > _FAR * garbage.waf * (gauged.unit or 1):
        return Estimate(None, f"up to {high:.3g}, too far from the WAF of {garbage.waf:.3g} known")
    low, high = _narrowed(gauged, hidden, low, high)
    if high > WIDEST * low:
        return Estimate(None, f"too uncertain: {low:.3g} to {high:.3g}")
    why = (
        f"a steady write costs {cost / known:.3g} times as much as one that collects superblocks "
        f"with {garbage.trimmed:.3g} of their data invalid, for which WAF is {garbage.waf:.3g}"
    )
    is_plain = not is_folded and gauged.unit == 1 and extra < _EXTRA * cost
    value = garbage.waf * cost / known if is_plain else math.sqrt(low * high)
    value = min(high, max(low, value))
    return Estimate(Bracket(value, low, high), why)


def _narrowed(gauged: Gauged, hidden: Estimate, low: float, high: float) -> tuple[float, float]:
    """Bounds of WAF that are too wide, narrowed by the hidden flash if that determines WAF.

    It does if victims are not chosen at random or from a few, and if neither folding nor a map
    that does not fit into memory adds programs.
    """
    may_add = gauged.may_borrow or gauged.may_write_map
    if hidden.bracket is None or gauged.unit is None or may_add or high <= WIDEST * low:
        return low, high
    if gauged.garbage in {AT_RANDOM, FROM_FEW}:
        return low, high
    most, least = (
        gauged.unit * waf_from_alpha(1 + size / gauged.region)
        for size in (hidden.bracket.low, hidden.bracket.high)
    )
    within = max(low, BY_POLICY[0] * least), min(high, _OLDEST * most)
    return within if within[0] < within[1] else (low, high)


def _may_fold(gauged: Gauged, garbage: Garbage) -> bool:
    """Whether the cost of writes with known WAF allows that each also goes to an SLC cache.

    A small buffer makes each write wait, too. Programs of one bit per cell may cost so little that
    the cost does not show a cache that is seen to borrow flash.
    """
    if garbage.added is None or gauged.borrows:
        return gauged.is_direct_limited or gauged.may_borrow
    is_small = gauged.buffer < _BUFFER_S * gauged.direct and not gauged.is_direct_limited
    return garbage.added > _ADDED and not is_small


def _senses_in_turn(trimmed: float, page: int) -> float:
    """Senses per relocated unit if the region was written as `STREAMS` parts in turn.

    `page` is the number of units in a page.
    """
    invalid = round(trimmed * STREAMS)
    senses = sum(invalid < (at + 1) * page for at in range(STREAMS // page))
    return senses / (STREAMS - invalid)


def _waf_with_reads(cost: float, program: float, read: float, units: int) -> float:
    """WAF of a write of this cost, if relocations also cost reads; all in seconds per byte."""
    found = cost / program
    for _ in range(40):  # the fewer units are valid, the fewer a read yields
        reads = senses_per_unit(1 - 1 / found, units) * read
        found = max(1.0, found / 2 + (cost + reads) / (program + reads) / 2)
    return found


def _why_cost_is_unclear(gauged: Gauged) -> str:
    """Why the cost shows no WAF if the hidden flash is not known; "" if it does."""
    if gauged.garbage == AT_RANDOM:
        return "victims are chosen at random, and the hidden flash is not known"
    if gauged.buffer < _BUFFER_S * gauged.direct:
        return "a small write buffer may limit writes that relocate nothing"
    return ""


def _waf_by_costs(gauged: Gauged, hidden: Estimate) -> Estimate:
    units = _PAGE_UNITS[0 if gauged.spares_new_data else 1]
    if gauged.read * gauged.direct > _DEAR_READ:
        units = 1
    costs = waf_from_costs(1 / gauged.steady, 1 / gauged.direct, gauged.read, units)
    if costs is None:
        return Estimate(None, "a steady write costs no more than one without relocation")
    low, high = costs.low, costs.high
    if gauged.reads_first:
        low = max(1.0, low - gauged.read * gauged.direct)
    bounds = _bounds_by_spare(gauged, hidden)
    if bounds is None and (why := _why_cost_is_unclear(gauged)):
        return Estimate(None, why)
    if bounds is not None and (_ROUGHLY * high < bounds.low or low > SAME * bounds.high):
        return Estimate(
            None,
            f"a steady write costs {high:.3g} times one without relocation, but with the hidden "
            f"flash WAF must be {bounds.low:.3g} to {bounds.high:.3g}: one of them is limited by "
            "something other than programs",
        )
    if bounds is not None:
        low = max(low, bounds.low)
    high = _most(gauged, high)
    if bounds is not None and gauged.garbage == AT_RANDOM:
        low, high = _at_random(gauged, bounds, low, high)
    low, high = _narrowed(gauged, hidden, low, high)
    if high > WIDEST * low:
        return Estimate(None, f"too uncertain: {low:.3g} to {high:.3g}")
    why = (
        f"from the curve: a steady write costs {costs.high:.3g} times a large write without "
        "relocation; the bounds assume that reads for relocation take no time, or all of it"
    )
    middle = high if gauged.folds_while_writing else costs.high
    value = min(high, math.sqrt(low * max(low, middle)))
    if middle < low:  # the hidden flash raises it
        value = math.sqrt(low * high)
    return Estimate(Bracket(value, low, high), why)


def _at_random(gauged: Gauged, bounds: Bracket, low: float, high: float) -> tuple[float, float]:
    """The bounds of WAF if victims are chosen at random: as many units are valid as of all flash.

    `bounds.high` is that WAF if the hidden flash is what took data; collection begins earlier.
    """
    folded = 1 if gauged.folds_while_writing else 0
    may_add = (gauged.unit or 1) * gauged.borrows + gauged.may_write_map
    most = (_ROUGHLY if gauged.cache else _HARDLY_MORE) * bounds.high + may_add
    least, middle = bounds.high / (_RESERVE * _RESERVE_AT_RANDOM) + folded, math.sqrt(low * high)
    if least < middle and (middle < most or not may_add):
        # Nothing else can raise WAF above that: if the cost is higher, a small buffer limits it.
        return max(low, least) if low < most else least, min(high, most)
    return min(low, least), max(high, most)  # they hardly agree: one of them is wrong


def _most(gauged: Gauged, high: float) -> float:
    """The highest WAF, if a steady write costs `high` times one without relocation.

    A drive that folds a borrowed cache while the host writes also writes each unit to the cache, at
    little cost, and more slowly than when it was new. Nothing shows for sure whether it does.
    """
    most = high * (_SHORT_MORE if gauged.buffer < _SHORT_S * gauged.direct else 1.0)
    if gauged.cache and not gauged.has_own_flash:
        most = max(most, 1 + high * max(1.0, settled(gauged.fresh) / gauged.direct))
    return most + gauged.may_write_map


def _bounds_by_spare(gauged: Gauged, hidden: Estimate) -> Bracket | None:
    """WAF with this hidden flash and the best or worst (random) choice of victims."""
    if hidden.bracket is None or gauged.unit is None:
        return None
    most, least = (1 + size / gauged.region for size in (hidden.bracket.high, hidden.bracket.low))
    low, high = BY_POLICY[0] * waf_from_alpha(most), 1 / spare_from_alpha(least)
    return Bracket(gauged.unit * math.sqrt(low * high), gauged.unit * low, gauged.unit * high)


def _waf_by_spare(gauged: Gauged, hidden: Estimate) -> Estimate:
    """WAF if link or host limit writes without relocation, so that the cost is a lower bound."""
    limited = "the link or the host may limit writes that relocate nothing"
    bounds = _bounds_by_spare(gauged, hidden)
    if bounds is None or hidden.bracket is None or gauged.unit is None:
        return Estimate(None, limited)
    if hidden.bracket.low < _SPARE_LEAST * gauged.region:
        return Estimate(None, f"{limited}, and so little hidden flash does not determine WAF")
    low = max(bounds.low, gauged.direct / gauged.steady / SAME)
    if gauged.spares_new_data and not (gauged.unit == 1 and gauged.reads_first):
        most = _OLDEST * waf_from_alpha(1 + hidden.bracket.low / gauged.region) * gauged.unit
        bounds = bounds._replace(high=min(bounds.high, most))
    if bounds.high > WIDEST * low or low > bounds.high:
        return Estimate(
            None,
            f"{limited}; with the hidden flash WAF is {low:.3g} to {bounds.high:.3g}, depending on "
            "the choice of victims",
        )
    return Estimate(
        Bracket(math.sqrt(low * bounds.high), low, bounds.high), "from the hidden flash"
    )

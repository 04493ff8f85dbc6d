"""WAF, and hidden flash, from the first cycle of collection and what else the gauges show."""

from __future__ import annotations

import math
from typing import Any

import pytest
from gauged_drive import (
    FLAT,
    LIKELY,
    NEITHER,
    REGION,
    SURE,
    cycle_of,
    drive,
    garbage_of_an_eighth,
)

from ssdlab.analysis.write_amplification import Bracket, waf_from_alpha
from ssdlab.experiments.steady import analysis, closed_form, waf
from ssdlab.experiments.steady.estimate import Estimate
from ssdlab.experiments.steady.first_cycle import Cycle
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW
from ssdlab.experiments.steady.single_reads import StridedReads
from ssdlab.experiments.steady.waf import waf_without_map, with_map
from ssdlab.stats.steady import Progress

UNKNOWN = Estimate(None, "not measured")


def _found(monkeypatch: pytest.MonkeyPatch, *cycles: Cycle, **values: Any) -> Estimate:
    """WAF with these cycles; a steady write costs 5, and the hidden flash is not known.

    `by_costs` are the bounds by programs and reads.
    """
    monkeypatch.setattr(waf, "cycles", lambda *_args, **_options: list(cycles))
    by_costs, shows_map = values.pop("by_costs", None), values.pop("shows_map", True)
    monkeypatch.setattr(waf, "shows_map", lambda _gauged: shows_map)
    monkeypatch.setattr(waf, "waf_by_costs", lambda _gauged: by_costs)
    hidden, map_counts = values.pop("hidden", UNKNOWN), values.pop("with_map", True)
    gauged = drive(**values)
    found = waf_without_map(gauged, hidden)
    return with_map(gauged, found) if map_counts else found


def _bracket(monkeypatch: pytest.MonkeyPatch, *cycles: Cycle, **values: Any) -> Bracket:
    found = _found(monkeypatch, *cycles, **values)
    assert found.bracket is not None, found.why
    return found.bracket


def test_the_cycles_are_what_they_are_called() -> None:
    assert SURE.is_collection
    assert LIKELY.may_be_collection
    assert not LIKELY.is_collection
    assert not NEITHER.may_be_collection


def test_waf_is_that_of_the_cycle_times_the_ratio_of_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _bracket(monkeypatch, SURE)
    assert found.value == pytest.approx(5.0, rel=0.02)
    assert found.low < 5.0 < found.high < 1.15 * found.low
    doubled = _bracket(monkeypatch, SURE, steady=1 / 10)
    assert doubled.value == pytest.approx(2 * found.value, rel=0.02)


def test_a_mapping_unit_counts_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _bracket(monkeypatch, cycle_of(4), unit=4, steady=1 / 20)
    assert found.value == pytest.approx(20.0, rel=0.02)


def test_a_cycle_that_is_sure_counts_alone_unless_the_mapping_unit_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Cycle(2, (4.0, 3.0), (8.0, 6.7), 2.0)
    assert other.may_be_collection
    assert not other.is_collection
    assert _bracket(monkeypatch, SURE, other) == _bracket(monkeypatch, SURE)
    both = _found(monkeypatch, SURE, other, unit=None)
    assert both.bracket is None or both.bracket.low < 0.9 * _bracket(monkeypatch, SURE).low


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"is_complete": False}, "not all gauges were measured"),
        ({"has_single_reads": False}, "not all gauges were measured"),
        ({"is_steady_limited": True}, "may limit the steady rate"),
    ],
)
def test_without_gauges_or_behind_a_slow_link_there_is_no_waf(
    values: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _found(monkeypatch, SURE, **values)
    assert found.bracket is None
    assert why in found.why


@pytest.mark.parametrize("cycles", [(), (NEITHER,)])
def test_a_cost_unlike_that_of_collection_shows_no_waf(
    cycles: tuple[Cycle, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _found(monkeypatch, *cycles)
    assert found.bracket is None
    assert "did not change as that of collection" in found.why


def test_known_garbage_gives_the_value_within_the_bounds_by_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gauges = {"garbage": garbage_of_an_eighth(rate=1 / 10), "by_costs": Bracket(4.2, 3.5, 5.0)}
    found = _bracket(monkeypatch, **gauges)
    assert found == pytest.approx((4.0, 3.5, 5.0))


def test_a_cycle_that_may_be_one_leaves_the_wider_bounds_without_known_garbage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The decline allows a constant part of three programs, so that WAF would be lower."""
    alone, few = (
        _bracket(monkeypatch, LIKELY, garbage=garbage) for garbage in ("not measured", FROM_FEW)
    )
    known = _bracket(monkeypatch, LIKELY, garbage=garbage_of_an_eighth(rate=1 / 7.5))
    bounds = LIKELY.waf_of(5.0)
    assert bounds.low == pytest.approx(5 / 7 * 7.5, rel=0.01)
    assert bounds.least == pytest.approx(5 / 7 * (7.5 + 4.23) - 4.23, rel=0.01)
    assert alone.low == pytest.approx(bounds.least / 1.07)
    assert alone.high == pytest.approx(bounds.high * 1.07)
    assert few.low == known.low == pytest.approx(bounds.low / 1.07)
    assert known.high == alone.high
    assert few.high == pytest.approx(1.03 * 5.0), "the cost relative to a large write in order"


@pytest.mark.parametrize(("direct", "high"), [(1.0, 5.15), (1.2, 6.18), (1.3, 6.56), (0.9, 6.56)])
def test_victims_from_a_few_have_a_higher_waf_than_in_the_firstcycle_of(
    direct: float, high: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below WAF by the cycle, the cost relative to large writes shows that these are limited."""
    gauges = {"garbage": FROM_FEW, "direct": direct}
    found = _bracket(monkeypatch, LIKELY, **gauges)
    assert found.high == pytest.approx(high, rel=0.01)
    assert found.value == pytest.approx((found.low * found.high) ** 0.5)
    borrows = _found(monkeypatch, LIKELY, borrows=True, writes_cache=False, **gauges)
    assert borrows.bracket is not None
    assert borrows.bracket.high == pytest.approx(6.56, rel=0.01)


@pytest.mark.parametrize(("rate", "is_known"), [(1 / 9, True), (1 / 7, True), (1 / 5, False)])
def test_known_garbage_must_agree_with_a_cycle_that_may_be_one(
    rate: float, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Victims of WAF 8 that cost 9, 7 or 5 make a steady write's WAF 4.4, 5.7 or 8."""
    found = _found(monkeypatch, LIKELY, garbage=garbage_of_an_eighth(rate=rate))
    assert (found.bracket is not None) is is_known
    if found.bracket is not None:
        assert found.bracket.value == pytest.approx(5 * 8 * rate)
        assert found.bracket.low <= found.bracket.value <= found.bracket.high
    else:
        assert "did not change as that of collection" in found.why


def test_known_garbage_does_not_have_the_reads_of_a_write_to_a_larger_mapping_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cycle = cycle_of(4, costs=(8.0, 6.0))
    gauges = {"unit": 4, "steady": 1 / 20, "garbage": garbage_of_an_eighth(rate=1 / 7)}
    found = _bracket(monkeypatch, cycle, **gauges)
    assert found.value == pytest.approx((found.low * found.high) ** 0.5)


def test_a_cycle_that_may_be_one_needs_a_known_mapping_unit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _found(monkeypatch, LIKELY, unit=None)
    assert found.bracket is None
    assert "how many mapping units" in found.why


@pytest.mark.parametrize(
    ("values", "is_known"),
    [
        ({}, True),
        ({"is_direct_limited": True}, True),
        ({"misses_map": True, "shows_map": False}, False),
        ({"misses_map": True, "with_map": False}, True),
        ({"writes_cache": True, "steady": 1 / 10}, True),
        ({"writes_cache": None, "may_write_cache": True, "steady": 1 / 10}, False),
        ({"garbage": FROM_FEW}, True),
        ({"garbage": FROM_FEW, "writes_cache": True, "steady": 1 / 10}, False),
        ({"garbage": FROM_FEW, "is_direct_limited": True}, False),
    ],
)
def test_what_a_cycle_that_may_be_one_shows_without_known_garbage(
    values: dict[str, Any], is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a slow link or an SLC cache, victims from a few may be victims at random."""
    assert (_found(monkeypatch, LIKELY, **values).bracket is not None) is is_known


def test_a_map_in_flash_may_make_all_of_the_cost_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _bracket(monkeypatch, SURE)
    known = _bracket(monkeypatch, SURE, garbage=garbage_of_an_eighth(rate=0.98 / 8))
    assert known.value == pytest.approx(4.9), "known garbage gives the value within the bounds"
    cached = {"writes_cache": None, "borrows": True, "by_costs": _costs(4.5, 5.6)}
    unclear = _bracket(monkeypatch, SURE, garbage=garbage_of_an_eighth(rate=0.98 / 8), **cached)
    assert unclear.value == pytest.approx(math.sqrt(unclear.low * unclear.high))
    far = _bracket(monkeypatch, SURE, garbage=garbage_of_an_eighth(rate=0.6 / 8))
    assert known[1:] == plain[1:]
    assert far == plain
    missing = _bracket(monkeypatch, SURE, misses_map=True, direct=1 / 0.8)
    assert missing.low == plain.low
    assert missing.high == pytest.approx(1.05 * 5.0 / 0.8)
    gauges = {"misses_map": True, "direct": 1.0, "garbage": garbage_of_an_eighth(rate=1 / 7)}
    assert _bracket(monkeypatch, SURE, **gauges).high == pytest.approx(1.05 * 5.0 * 8 / 7)
    link = {"misses_map": True, "is_direct_limited": True}
    unknown = _found(monkeypatch, SURE, **link)
    assert unknown.bracket is None
    assert "map in flash" in unknown.why
    # Of the cost of known garbage, some is that of the reads of seven units: 0.2 / 1.5 each.
    reads = {"block": 4096, "curve": lambda _case: Progress([1.0] * 100, [5.0] * 100)}
    reads["map_misses"] = Bracket(0.5, 0.4, 0.6)
    garbage = garbage_of_an_eighth(rate=1 / (8 * 0.9 + 7 * 0.2 / 1.5))
    known = _bracket(monkeypatch, SURE, garbage=garbage, **reads, **link)
    assert known.high == pytest.approx(1.05 * 5.0 / 0.9)
    garbage = garbage_of_an_eighth(rate=1 / (6 * 0.2 / 1.5))
    assert "map in flash" in _found(monkeypatch, SURE, garbage=garbage, **reads, **link).why


def test_the_writes_of_a_map_are_left_out_or_at_least_a_unit_for_each_miss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gauges = {"misses_map": True, "steady": 1 / 9, "map_misses": Bracket(0.6, 0.5, 0.7)}
    cycle = cycle_of(constant=1.0)
    plain = _bracket(monkeypatch, cycle, steady=1 / 9)
    without, total = (
        _bracket(monkeypatch, cycle, with_map=each, **gauges) for each in (False, True)
    )
    assert without == plain
    assert total.low == pytest.approx(plain.low + 0.5)
    assert total.high == pytest.approx(1.05 * 9.0)
    assert total.value == pytest.approx((total.low * total.high) ** 0.5)


def test_the_size_of_a_map_page_narrows_what_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that misses programs a page of 16 KiB, or four blocks, if this costs no more."""
    gauges = {"misses_map": True, "map_misses": Bracket(0.5, 0.5, 0.5), "block": 4096}
    gauges |= {
        "region": 2048 * 2**20,
        "strided_reads": StridedReads(2048, 2048 * 2**20, 108.36 / 2048, 0.0),
    }
    plain = _bracket(monkeypatch, SURE)
    for steady, direct, most in ((1 / 5, 100.0, 2.2), (1 / 5, 1.0, 0.72)):
        total = _bracket(monkeypatch, SURE, steady=steady, direct=direct, **gauges)
        assert total.low == pytest.approx(plain.low + 1.8, abs=0.1)
        assert total.high == pytest.approx(plain.high + max(most, 1.8), abs=0.1)
    unlimited = _bracket(monkeypatch, SURE, is_direct_limited=True, **gauges)
    assert unlimited.high == pytest.approx(plain.high + 2.2, abs=0.1)


def _costs(low: float, high: float) -> Bracket:
    return Bracket((low * high) ** 0.5, low, high)


def test_both_ways_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _bracket(monkeypatch, SURE)
    assert _bracket(monkeypatch, SURE, by_costs=_costs(4.0, 6.0)) == plain
    cut = _bracket(monkeypatch, SURE, by_costs=_costs(5.0, 6.0))
    assert cut == pytest.approx(((5.0 * plain.high) ** 0.5, 5.0, plain.high))
    for other in (_costs(3.0, 4.0), _costs(6.0, 8.0)):
        found = _found(monkeypatch, SURE, by_costs=other)
        assert found.bracket is None
        assert "show different values" in found.why


@pytest.mark.parametrize("values", [{}, {"garbage": FROM_FEW}, {"garbage": AT_RANDOM}])
def test_costs_alone_show_waf_where_the_first_cycle_does_not(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    near, wide = _costs(4.5, 6.0), _costs(4.0, 6.1)
    found = _found(monkeypatch, by_costs=near, **values)
    assert found.bracket == near
    assert "relative to programs and reads" in found.why
    unclear = _found(monkeypatch, by_costs=wide, **values)
    assert unclear.bracket is None
    assert "too uncertain: 4 to 6.1" in unclear.why


@pytest.mark.parametrize(
    ("trimmed", "limited", "is_known"),
    [(1 / 8, True, True), (1 / 4, True, False), (1 / 4, False, True)],
)
def test_behind_a_slow_link_later_garbage_may_be_that_of_victims_from_a_few(
    trimmed: float, limited: bool, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauges = {"garbage": garbage_of_an_eighth(trimmed=trimmed), "is_direct_limited": limited}
    found = _found(monkeypatch, by_costs=_costs(4.5, 6.0), **gauges)
    assert (found.bracket is not None) is is_known
    assert _found(monkeypatch, LIKELY, by_costs=_costs(4.5, 6.0), **gauges).bracket is not None


def test_costs_alone_are_not_enough_if_all_possible_cycles_show_another_waf(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gauges = {"garbage": garbage_of_an_eighth(rate=1 / 4)}
    assert LIKELY.waf_of(5.0).low > 5.3
    found = _found(monkeypatch, LIKELY, by_costs=_costs(9.0, 11.0), **gauges)
    assert found.bracket is None
    assert "show different values" in found.why


def test_victims_from_a_few_are_collected_earlier_than_the_first_cycle_assumes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So only what writes cost counts; the cycle narrows bounds that are too wide."""
    found = _bracket(monkeypatch, LIKELY, garbage=FROM_FEW, by_costs=_costs(4.0, 5.5))
    assert found == _costs(4.0, 5.5)
    high = LIKELY.waf_of(5.0).high * 1.15
    narrowed = _bracket(monkeypatch, LIKELY, garbage=FROM_FEW, by_costs=_costs(4.5, 9.0))
    assert narrowed == pytest.approx(((4.5 * high) ** 0.5, 4.5, high))
    low = LIKELY.waf_of(5.0).least / 1.07
    narrowed = _bracket(monkeypatch, LIKELY, garbage=FROM_FEW, by_costs=_costs(3.0, 5.5))
    assert narrowed == pytest.approx(((low * 5.5) ** 0.5, low, 5.5))
    random = _found(monkeypatch, LIKELY, garbage=AT_RANDOM, by_costs=_costs(4.5, 9.0))
    assert "too uncertain: 4.5 to 9" in random.why
    other = _bracket(monkeypatch, LIKELY, garbage=AT_RANDOM, by_costs=_costs(9.0, 11.0))
    assert other == _costs(9.0, 11.0), "victims at random have no first cycle"


def test_a_cycle_that_victims_at_random_may_have_does_not_narrow_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flat = cycle_of(costs=(7.2, 6.1))
    assert flat.is_flat
    assert flat.may_be_collection
    found = _found(monkeypatch, flat, garbage=FROM_FEW, by_costs=_costs(4.0, 9.0))
    assert "too uncertain: 4 to 9" in found.why


def test_the_hidden_flash_narrows_what_costs_show(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _bracket(monkeypatch, SURE)
    garbage = {"garbage": garbage_of_an_eighth(rate=1 / 4)}
    cut = _bracket(monkeypatch, SURE, hidden=_hidden(0.12), **garbage)
    assert cut.high == pytest.approx(1.06 * waf_from_alpha(1.12))
    assert plain.low < cut.high < plain.high
    other = _bracket(monkeypatch, SURE, hidden=_hidden(0.4), **garbage)
    assert other[1:] == _bracket(monkeypatch, SURE, **garbage)[1:]


def test_a_cache_adds_a_write_to_each_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    gauges = {"unit": 4, "steady": 1 / 40}
    plain = _bracket(monkeypatch, cycle_of(4), **gauges)
    cached = _bracket(monkeypatch, cycle_of(4), writes_cache=True, **gauges)
    assert cached.low == pytest.approx(plain.low + 0.8 * 4)
    assert cached.high == pytest.approx(plain.high + 4)
    for borrows, high in ((True, plain.high + 4), (False, plain.high)):
        unclear = _bracket(monkeypatch, cycle_of(4), writes_cache=None, borrows=borrows, **gauges)
        assert (unclear.low, unclear.high) == pytest.approx((plain.low, high))


def test_a_wide_interval_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    gauges = {"writes_cache": None, "borrows": True}
    found = _found(monkeypatch, SURE, steady=1 / 1.5, **gauges)
    assert found.bracket is None
    assert "too uncertain: 1.4" in found.why


def _hidden(share: float) -> Estimate:
    size = share * REGION
    return Estimate(Bracket(size, size, 1.15 * size), "")


@pytest.mark.parametrize("cycles", [(), (NEITHER,)])
def test_the_hidden_flash_shows_waf_where_the_cost_of_writes_does_not(
    cycles: tuple[Cycle, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    gauges: dict[str, Any] = {"garbage": garbage_of_an_eighth(), "hidden": _hidden(0.15)}
    monkeypatch.setattr(closed_form, "cycles", lambda _gauged: [])
    found = _bracket(monkeypatch, *cycles, **gauges)
    assert found.low < waf_from_alpha(1.15) < found.high


def test_victims_at_random_are_as_full_as_all_flash(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 25 hidden of 125, a fifth is invalid."""
    monkeypatch.setattr(waf, "may_choose_from_few", lambda *_: False)
    monkeypatch.setattr(closed_form, "may_choose_from_few", lambda *_: False)
    random = {"garbage": AT_RANDOM, "hidden": _hidden(0.25)}
    found = _bracket(monkeypatch, FLAT, **random)
    assert found.low < 5.0 < found.high < 1.5 * found.low
    uncertain = Estimate(Bracket(250.0, 200.0, 260.0), "")
    wide = _bracket(monkeypatch, FLAT, garbage=AT_RANDOM, hidden=uncertain)
    assert wide.value == pytest.approx((5.0 * (1 + 1000 / 260)) ** 0.5)
    larger = _bracket(monkeypatch, FLAT, unit=4, **random)
    assert larger.value == pytest.approx(4 * found.value)
    unknown = _found(monkeypatch, FLAT, garbage=AT_RANDOM)
    assert "hidden flash is not known" in unknown.why
    declining = _found(monkeypatch, SURE, **random)
    assert declining.bracket is None
    assert "the rate changed" in declining.why
    for direct, is_known in ((0.8, False), (0.95, True), (1.4, True), (1.75, False)):
        rates = {"direct": direct, "erased": direct, "large_read_s": 0.27}
        shown = _found(monkeypatch, FLAT, **rates, **random)
        assert (shown.bracket is not None) is is_known
        assert is_known or "costs more or less" in shown.why
        for other in ({"unit": 4}, {"cache": 9.0}, {"may_borrow": True}):
            cost = {"direct": direct, "erased": direct}
            assert _found(monkeypatch, FLAT, **cost, **random | other).bracket is not None
    collected = {"direct": 0.8, "erased": 1.0, **random}  # also by the large writes
    assert _found(monkeypatch, FLAT, **collected).bracket is not None
    for direct, cache, is_known in ((1.0, 0.0, True), (1.0, 9.0, False), (0.8, 0.0, False)):
        cost = {"direct": direct, "erased": direct, "cache": cache}
        early = _found(monkeypatch, **cost, **random)  # collection before 4 %: no cycle
        assert (early.bracket is not None) is is_known
    little = _found(monkeypatch, FLAT, garbage=AT_RANDOM, hidden=_hidden(0.029))
    assert little.bracket is None
    assert "little flash is hidden" in little.why


def test_behind_a_slow_link_victims_at_random_show_waf_if_no_cache_takes_the_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hidden = Estimate(Bracket(250.0, 250.0, 260.0), "")
    link = {"garbage": AT_RANDOM, "is_direct_limited": True, "hidden": hidden}
    assert _found(monkeypatch, FLAT, **link).bracket is not None
    found = _found(monkeypatch, FLAT, writes_cache=None, **link)
    assert found.bracket is None
    assert "the link may hide" in found.why


def test_the_reported_bounds_are_two_percent_wider_but_not_below_one() -> None:
    for bracket, least in ((Bracket(5.0, 4.0, 6.0), 4 / 1.02), (Bracket(1.1, 1.01, 1.2), 1.0)):
        found = analysis._waf_finding(Estimate(bracket, "by costs"), "; not steady")
        bounds = (found.value, found.low, found.high)
        assert bounds == pytest.approx((bracket.value, least, 1.02 * bracket.high))
        assert found.why == "by costs; not steady"

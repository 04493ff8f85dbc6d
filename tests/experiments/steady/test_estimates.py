"""Estimates of hidden spare and WAF from what the gauges show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ssdlab.analysis.write_amplification import Bracket, waf_from_alpha
from ssdlab.experiments.steady.estimates import Estimate, hidden_flash, reportable, waf
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW, Garbage
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.stats.rate_drops import RateDrop
from ssdlab.stats.steady import Progress

MIB = 2**20
REGION = 1000.0
UNKNOWN = Estimate(None, "not measured")


def _drop(at: float) -> RateDrop:
    return RateDrop(at, 0.99 * at, 1.01 * at, before=1.0, after=0.2, ahead=0.0, seconds=at)


def _gauged(**values: Any) -> Any:
    """Gauges of a drive with units of one block, a large buffer and no cache."""
    usual = {
        "region": REGION,
        "fall": _drop(100.0),
        "large_fall": _drop(100.0),
        "unit": 1,
        "cache": 0.0,
        "held": 0.0,
        "borrows": False,
        "has_own_flash": None,
        "may_hide_cache": False,
        "folds_while_writing": False,
        "buffer": 1.0,
        "direct": 1.0,
        "steady": 1 / 8,
        "read": 0.2,
        "is_complete": True,
        "is_steady_limited": False,
        "is_direct_limited": False,
        "spares_new_data": True,
        "reads_first": False,
        "cost_at_random": lambda _unit: 1.0,
        "garbage": "not measured",
        "extra": 0.0,
    }
    gauged = SimpleNamespace(**usual | values)
    for name in ("_cache_least", "unseen_buffer", "may_borrow", "may_write_map"):
        derived = vars(Gauged)[name].fget(gauged)
        setattr(gauged, name, values.get(name, derived))
    return gauged


def test_hidden_flash_is_written_before_the_rate_falls_less_the_buffer() -> None:
    estimate = hidden_flash(_gauged())
    assert estimate.bracket is not None
    assert estimate.bracket.value == 99.0


def test_a_fall_within_what_the_write_buffer_holds_shows_no_hidden_flash() -> None:
    estimate = hidden_flash(_gauged(unit=4, buffer=90.0, fall=_drop(100.0)))
    assert estimate.bracket is None
    assert "the write buffer may hold as much" in estimate.why
    assert hidden_flash(_gauged(unit=4, buffer=80.0, fall=_drop(100.0))).bracket is not None


def test_a_fall_to_a_rate_without_relocation_shows_no_hidden_flash() -> None:
    """Then the buffer was full, and collection had not begun."""
    assert hidden_flash(_gauged(direct=0.19)).bracket is None
    assert hidden_flash(_gauged(direct=0.21)).bracket is not None
    assert hidden_flash(_gauged(direct=0.3, unit=2)).bracket is None


def test_a_cache_that_may_have_flash_of_its_own_or_not_leaves_spare_undetermined() -> None:
    estimate = hidden_flash(_gauged(cache=20.0, has_own_flash=None))
    assert estimate.bracket is None
    assert "SLC cache" in estimate.why


def test_a_cache_that_is_folded_while_the_host_writes_may_raise_waf() -> None:
    """A new drive writes 1.3 times as fast; a write to the cache as well counts as one."""
    fresh = Progress([1.0] * 100, [1.3] * 100)
    cache = {"cache": 1.0, "has_own_flash": False}
    plain = waf(_gauged(read=0.01, fresh=fresh), UNKNOWN).bracket
    borrowed = waf(_gauged(read=0.01, fresh=fresh, **cache), UNKNOWN).bracket
    folded = waf(
        _gauged(read=0.01, fresh=fresh, folds_while_writing=True, **cache), UNKNOWN
    ).bracket
    assert plain is not None
    assert borrowed is not None
    assert folded is not None
    assert plain.value == borrowed.value
    assert plain.low == borrowed.low == folded.low
    assert borrowed.high == folded.high == pytest.approx(1 + 1.3 * plain.high)
    assert folded.value == pytest.approx((folded.low * folded.high) ** 0.5)


def test_a_read_that_costs_over_half_a_write_may_be_limited_by_the_channel() -> None:
    """Then no unit of a page is read for free, so that WAF may be lower."""
    cheap = waf(_gauged(read=0.2), UNKNOWN).bracket
    assert cheap is not None
    assert cheap.low <= 8.0 <= 1.001 * cheap.high
    dear = waf(_gauged(read=0.6), UNKNOWN).bracket
    assert dear is not None
    assert dear.low == pytest.approx(8.6 / 1.6)  # each relocated unit is read: w + 0.6 (w - 1) = 8


def _garbage(**values: Any) -> Garbage:
    """Victims of which an eighth is invalid; nothing but programs takes time."""
    usual: dict[str, Any] = {"trimmed": 1 / 8, "rate": 1 / 8, "alone": 1.0}
    usual |= {"hidden": Bracket(80.0, 79.0, 81.0), "added": 0.0}
    return Garbage(**usual | values)


def test_waf_and_hidden_flash_come_from_known_garbage_although_the_link_limits_other_writes() -> (
    None
):
    """A steady write costs half as much as one with a WAF of 8."""
    link = {"is_direct_limited": True, "direct": 0.5, "steady": 1 / 4, "read": 0.01}
    gauged = _gauged(garbage=_garbage(alone=0.5), **link)
    found = waf(gauged, UNKNOWN).bracket
    assert found is not None
    assert found.value == pytest.approx(4.0, rel=0.15)
    assert found.low < 4.0 < found.high
    hidden = hidden_flash(gauged).bracket
    assert hidden is not None
    assert hidden.value == 80.0
    assert waf(_gauged(**link), UNKNOWN).bracket is None


def test_what_each_write_costs_besides_programs_shows_a_cache_that_is_folded() -> None:
    """If the link hides the cache, WAF is higher by one write to it, or is not."""
    link = {"is_direct_limited": True, "read": 0.0}
    apart, along = (
        waf(_gauged(garbage=_garbage(added=added), **link), UNKNOWN).bracket for added in (0.0, 1.8)
    )
    assert apart is not None
    assert along is not None
    assert apart.high < 9 < along.high
    assert along.low == apart.low


def test_what_each_write_costs_besides_programs_counts_behind_a_fast_link_too() -> None:
    """It may also be due to a buffer, but not to a large one."""
    apart, along, small = (
        waf(_gauged(garbage=_garbage(added=added), read=0.0, buffer=buffer), UNKNOWN).bracket
        for added, buffer in ((0.0, 1.0), (0.8, 1.0), (0.8, 0.001))
    )
    assert apart is not None
    assert along is not None
    assert along.low == apart.low
    assert along.high == pytest.approx(apart.high + 1)
    assert small == apart


@pytest.mark.parametrize("added", [None, 0.0])
def test_a_write_to_a_borrowed_cache_takes_a_whole_mapping_unit(added: float | None) -> None:
    gauges = {"garbage": _garbage(added=added), "unit": 4, "read": 0.0, "steady": 1 / 50}
    gauges["cost_at_random"] = lambda _unit: 4.0
    kept, borrowed = (
        waf(_gauged(borrows=borrows, **gauges), UNKNOWN).bracket for borrows in (False, True)
    )
    assert kept is not None
    assert borrowed is not None
    assert borrowed.low == kept.low
    assert borrowed.high == pytest.approx(kept.high + 4)


def test_hidden_flash_of_the_size_of_what_a_new_drive_held_is_undetermined() -> None:
    estimate = hidden_flash(_gauged(garbage=_garbage(), held=75.0))
    assert estimate.bracket is None
    assert "may have held as much" in estimate.why


def test_a_fall_determines_hidden_flash_of_which_known_garbage_shows_a_range() -> None:
    def found(fall: float) -> Bracket | None:
        wide = _garbage(hidden=Bracket(80.0, 79.0, 110.0))
        return hidden_flash(_gauged(garbage=wide, fall=_drop(fall), large_fall=_drop(fall))).bracket

    inside = found(100.0)
    assert inside is not None
    assert inside.value == 99.0
    assert found(70.0) is None
    assert found(140.0) is None


def test_a_buffer_that_a_slow_link_never_fills_may_hold_what_was_written_before_a_fall() -> None:
    def found(megabytes: float, buffer: float) -> Bracket | None:
        fall = _drop(megabytes * MIB)
        link = {"is_direct_limited": True, "region": 2000.0 * MIB, "buffer": buffer}
        return hidden_flash(_gauged(fall=fall, large_fall=fall, **link)).bracket

    assert found(200.0, 0.0) is None
    assert found(200.0, 1.0 * MIB) is not None
    large = found(400.0, 0.0)
    assert large is not None
    assert large.low == pytest.approx((0.99 * 400 - 64) * MIB)


def _at_random(**values: Any) -> Bracket | None:
    """WAF of a drive of which a tenth is hidden and whose victims are chosen at random."""
    hidden = Estimate(Bracket(0.11 * REGION, 0.11 * REGION, 0.13 * REGION), "")
    return waf(_gauged(garbage=AT_RANDOM, **values), hidden).bracket


def test_if_victims_are_chosen_at_random_the_hidden_flash_bounds_waf() -> None:
    """With a tenth it is 10, or 7.3 if collection begins early."""
    found = _at_random(steady=1 / 8, read=0.5)
    assert found is not None
    assert found.low == pytest.approx(10.09 / (1.15 * 1.2), rel=0.01)
    assert found.high == pytest.approx(8.0)


def test_victims_at_random_without_known_hidden_flash_show_no_waf() -> None:
    found = waf(_gauged(garbage=AT_RANDOM), UNKNOWN)
    assert found.bracket is None
    assert "hidden flash is not known" in found.why
    assert waf(_gauged(), UNKNOWN).bracket is not None


def test_a_borrowed_cache_may_take_each_unit_too_if_victims_are_chosen_at_random() -> None:
    fresh = Progress([1.0] * 100, [1.0] * 100)
    cache = {"cache": 1.0, "has_own_flash": False, "fresh": fresh, "read": 0.5}
    with_own, borrowed = (
        _at_random(steady=1 / 10.5, borrows=borrows, **cache) for borrows in (False, True)
    )
    assert with_own is not None
    assert borrowed is not None
    assert with_own.high == pytest.approx(1.1 * 10.09, rel=0.01)
    assert borrowed.high == pytest.approx(10.5 + 1)


def test_a_cost_that_does_not_agree_with_the_hidden_flash_leaves_waf_undetermined() -> None:
    assert _at_random(steady=1 / 7, read=0.3) is None
    folded = {"cache": 1.0, "borrows": True, "fresh": Progress([1.0] * 100, [1.0] * 100)}
    assert _at_random(steady=1 / 14, read=0.0, **folded) is None


def test_a_cost_above_what_random_victims_can_cause_does_not_raise_waf() -> None:
    """A tenth of hidden flash is a WAF of at most 10, whatever limits large writes."""
    for cost in (11, 12):
        found = _at_random(steady=1 / cost, read=0.0)
        assert found is not None
        assert found.low == pytest.approx(10.09 / (1.15 * 1.2), rel=0.01)
        assert found.high == pytest.approx(1.05 * 10.09, rel=0.01)


def test_a_map_that_does_not_fit_into_memory_may_add_a_program_to_each_write() -> None:
    gauges = {"garbage": _garbage(), "read": 0.0}
    in_memory, read_late, outside = (
        waf(_gauged(reads_first=reads, extra=extra, **gauges), UNKNOWN).bracket
        for reads, extra in ((False, 0.9), (True, 0.7), (True, 0.9))
    )
    assert in_memory is not None
    assert read_late is not None
    assert outside is not None
    assert read_late.high == in_memory.high
    assert outside.low == in_memory.low
    assert outside.high == pytest.approx(in_memory.high + 1)
    unclear = waf(_gauged(reads_first=True, unit=None, **gauges), UNKNOWN)
    assert unclear.bracket is None
    assert "how many mapping units" in unclear.why


def test_a_write_that_waits_and_reads_the_rest_of_its_unit_may_have_a_lower_waf() -> None:
    """Both count: waits by a factor of 1.3, and reads as measured before collection."""
    gauges = {"garbage": _garbage(), "unit": 2, "cost_at_random": lambda _unit: 2.0, "read": 0.0}
    free, reading = (waf(_gauged(extra=extra, **gauges), UNKNOWN).bracket for extra in (0.0, 0.4))
    assert free is not None
    assert reading is not None
    assert free.low == pytest.approx(0.97 * 8 / 1.3)
    assert reading.low == pytest.approx(0.97 * 7.6 / 1.3)


def test_a_channel_that_limits_reads_and_programs_makes_each_relocated_unit_cost_a_read() -> None:
    """Victims of WAF 8 cost 8 p + 7 r = 8 with r = 0.6; a steady write of 16 is 15.4 times that."""
    found = waf(_gauged(garbage=_garbage(), steady=1 / 16, read=0.6), UNKNOWN).bracket
    assert found is not None
    assert found.low == pytest.approx(0.97 * (16 + 0.6) / (0.475 + 0.6))


def test_the_hidden_flash_narrows_a_waf_that_known_garbage_leaves_too_wide() -> None:
    """15 to 17 % of hidden flash are a WAF of 3.8 to 4.2 without random victims or folding."""
    hidden = Estimate(Bracket(0.15 * REGION, 0.15 * REGION, 0.17 * REGION), "")
    gauges = {"garbage": _garbage(), "read": 0.0, "steady": 1 / 6, "extra": 2.5}
    assert waf(_gauged(**gauges), UNKNOWN).bracket is None
    found = waf(_gauged(**gauges), hidden).bracket
    assert found is not None
    assert found.low == pytest.approx(3.5 * 0.97)
    assert found.high == pytest.approx(1.1 * waf_from_alpha(1.15))
    for reason in ({"borrows": True}, {"held": 300.0 * MIB}, {"reads_first": True}):
        assert waf(_gauged(**gauges, **reason), hidden).bracket is None, reason
    narrow = waf(_gauged(**gauges | {"extra": 0.0}), hidden).bracket
    assert narrow is not None
    assert narrow.value == 6.0, "known garbage alone determines it"


@pytest.mark.parametrize(("garbage", "is_narrowed"), [("not measured", True), (FROM_FEW, False)])
def test_hidden_flash_narrows_no_waf_of_victims_that_are_chosen_from_a_few(
    garbage: str, is_narrowed: bool
) -> None:
    hidden = Estimate(Bracket(0.15 * REGION, 0.15 * REGION, 0.17 * REGION), "")
    found = waf(_gauged(garbage=garbage, steady=1 / 6, read=0.8), hidden)
    assert (found.bracket is not None) is is_narrowed
    assert is_narrowed or "too uncertain" in found.why


def test_a_map_in_flash_may_add_a_program_to_a_waf_by_costs() -> None:
    in_memory, in_flash = (
        waf(_gauged(read=0.01, reads_first=reads), UNKNOWN).bracket for reads in (False, True)
    )
    assert in_memory is not None
    assert in_flash is not None
    assert in_flash.high == pytest.approx(in_memory.high + 1)


def test_known_garbage_that_a_cache_may_explain_shows_no_waf() -> None:
    found = waf(_gauged(garbage=_garbage(), held=82.0), UNKNOWN)
    assert found.bracket is None
    assert "may have held as much" in found.why


def test_a_cache_that_only_the_new_drive_showed_may_be_folded() -> None:
    plain, hidden_by_link = (
        waf(_gauged(garbage=_garbage(added=None), read=0.0, held=held), UNKNOWN).bracket
        for held in (0.0, 300.0 * MIB)
    )
    assert plain is not None
    assert hidden_by_link is not None
    assert hidden_by_link.high == pytest.approx(plain.high + 1)


def test_random_writes_far_faster_than_large_ones_may_go_to_a_borrowed_cache() -> None:
    """The rate before the fall is 1; 2.3 times the direct rate is the limit."""
    assert _gauged(direct=0.4).may_borrow
    assert not _gauged(direct=0.5).may_borrow


def test_a_buffer_that_a_slow_link_never_fills_may_hold_what_precedes_known_garbage() -> None:
    def found(megabytes: float) -> Bracket | None:
        hidden = Bracket(*(part * megabytes * MIB for part in (1.0, 0.99, 1.01)))
        link = {"is_direct_limited": True, "region": 2000.0 * MIB, "buffer": 0.0}
        return hidden_flash(_gauged(garbage=_garbage(hidden=hidden), fall=None, **link)).bracket

    assert found(200.0) is None
    large = found(400.0)
    assert large is not None
    assert large.low == pytest.approx((0.99 * 400 - 64) * MIB)


def test_little_hidden_flash_does_not_show_waf() -> None:
    link = {"is_direct_limited": True, "direct": 1.0}
    found = {}
    for size in (0.02 * REGION, 0.05 * REGION):
        hidden = Estimate(Bracket(size, size, 1.15 * size), "")
        steady = 2 * size / REGION  # about what the closed form says
        found[size] = waf(_gauged(steady=steady, **link), hidden)
    little, enough = found.values()
    assert little.bracket is None
    assert "so little hidden flash" in little.why
    assert enough.bracket is not None


def test_less_than_three_percent_of_hidden_flash_is_not_reported() -> None:
    little, enough = (
        reportable(hidden_flash(_gauged(fall=_drop(at), large_fall=_drop(at))), REGION)
        for at in (31.0, 32.0)
    )
    assert little.bracket is None
    assert "the reserve may be as large" in little.why
    assert enough.bracket is not None
    assert reportable(UNKNOWN, REGION) is UNKNOWN


def test_writes_all_over_a_region_whose_map_does_not_fit_may_have_a_lower_waf() -> None:
    """A third of the cost of a steady write may be that of the map."""
    found = waf(_gauged(garbage=_garbage(), extra=8 / 3, read=0.0), UNKNOWN)
    assert found.bracket is None
    assert "too uncertain: 5.17" in found.why


def test_a_waf_far_above_the_known_one_is_undetermined() -> None:
    found = waf(_gauged(garbage=_garbage(), steady=1 / 64), UNKNOWN)
    assert found.bracket is None
    assert "too far" in found.why

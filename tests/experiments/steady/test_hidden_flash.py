"""Estimates of hidden flash from what the gauges show."""

from __future__ import annotations

import pytest
from gauged_drive import REGION, drive, drop, garbage_of_an_eighth

from ssdlab.analysis.write_amplification import Bracket, waf_from_alpha
from ssdlab.experiments.steady import hidden_flash as hidden
from ssdlab.experiments.steady.estimate import Estimate
from ssdlab.experiments.steady.first_cycle import Cycle
from ssdlab.experiments.steady.garbage import AT_RANDOM, FROM_FEW
from ssdlab.experiments.steady.hidden_flash import hidden_flash, reportable
from ssdlab.stats.rate_drops import RateDrop

MIB = 2**20
UNKNOWN = Estimate(None, "not measured")


@pytest.fixture(autouse=True)
def no_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden flash is estimated without the first cycle of collection."""
    monkeypatch.setattr(hidden, "cycles", lambda *_args, **_options: [])


def test_hidden_flash_is_written_before_the_rate_falls_less_the_buffer() -> None:
    estimate = hidden_flash(drive())
    assert estimate.bracket is not None
    assert estimate.bracket.value == 99.0


def test_a_fall_within_what_the_write_buffer_holds_shows_no_hidden_flash() -> None:
    estimate = hidden_flash(drive(unit=4, buffer=90.0, fall=drop(100.0)))
    assert estimate.bracket is None
    assert "the write buffer may hold as much" in estimate.why
    smaller = hidden_flash(drive(unit=4, buffer=80.0, fall=drop(100.0)))
    assert "too uncertain" in smaller.why, "the buffer may hold 1.4 times what is seen"


def test_a_fall_to_a_rate_without_relocation_shows_no_hidden_flash() -> None:
    """Then the buffer was full, and collection had not begun."""
    for direct, is_known in ((0.19, False), (0.21, True)):
        found = hidden_flash(drive(direct=direct, may_borrow=False)).bracket
        assert (found is not None) is is_known
    assert hidden_flash(drive(direct=0.3, unit=2)).bracket is None


def test_a_cache_that_may_have_flash_of_its_own_or_not_leaves_spare_undetermined() -> None:
    estimate = hidden_flash(drive(cache=20.0, has_own_flash=None))
    assert estimate.bracket is None
    assert "SLC cache" in estimate.why


def test_a_fall_determines_hidden_flash_of_which_known_garbage_shows_a_range() -> None:
    """A fall outside the range does not count; a range that is narrow without the reserve does."""

    def found(low: float, fall: float) -> float | None:
        wide = garbage_of_an_eighth(hidden=Bracket(80.0, low, 110.0))
        known = hidden_flash(drive(garbage=wide, fall=drop(fall), large_fall=drop(fall))).bracket
        return known and known.value

    for low, without_fall in ((70.0, None), (79.0, 80.0)):
        assert found(low, fall=100.0) == 99.0
        assert found(low, fall=70.0) == without_fall
        assert found(low, fall=140.0) == without_fall


@pytest.mark.parametrize(
    ("trimmed", "limited", "hidden"), [(3 / 4, True, 99.0), (1 / 8, True, 80.0)]
)
def test_behind_a_slow_link_the_fall_counts_if_garbage_lowers_the_rate_late(
    trimmed: float, limited: bool, hidden: float
) -> None:
    garbage = garbage_of_an_eighth(trimmed=trimmed)
    link = {"is_direct_limited": limited, "unseen_buffer": 0.0, "rested_writes_cache": False}
    gauges = {"garbage": garbage, "buffer": 1.0, **link}
    found = hidden_flash(drive(**gauges))
    assert found.bracket is not None
    assert found.bracket.value == hidden
    without_fall = hidden_flash(drive(fall=None, **gauges))
    assert without_fall.bracket is not None
    assert without_fall.bracket.value == 80.0


def test_a_buffer_that_a_slow_link_never_fills_may_hold_what_was_written_before_a_fall() -> None:
    def found(megabytes: float, buffer: float) -> Bracket | None:
        fall = drop(megabytes * MIB)
        link = {"is_direct_limited": True, "region": 2000.0 * MIB, "buffer": buffer}
        return hidden_flash(drive(fall=fall, large_fall=fall, **link)).bracket

    assert found(200.0, 0.0) is None
    assert found(200.0, 1.0 * MIB) is not None
    large = found(400.0, 0.0)
    assert large is not None
    assert large.low == pytest.approx((0.99 * 400 - 64) * MIB)


@pytest.mark.parametrize(
    ("is_seen", "least"), [(None, 0.99 * 90.0 - 1.4), (False, 0.99 * 100.0 - 1.4)]
)
def test_behind_a_slow_link_collection_may_begin_where_large_writes_fall(
    is_seen: bool | None, least: float
) -> None:
    """A cache may have taken some of the rounds, which follow a rest."""
    link = {"is_direct_limited": True, "unseen_buffer": 0.0, "rested_writes_cache": is_seen}
    found = hidden_flash(drive(large_fall=drop(90.0), **link)).bracket
    assert found is not None
    assert (found.low, found.high) == pytest.approx((least, 1.15 * 1.01 * 100.0))


def test_behind_a_slow_link_the_buffer_may_be_smaller_than_the_burst_showed() -> None:
    """The rate of the burst falls by less than without a link."""
    limited, free = (
        hidden_flash(drive(is_direct_limited=limits, unseen_buffer=0.0, buffer=20.0)).bracket
        for limits in (True, False)
    )
    assert limited is not None
    assert free is not None
    assert limited.high == pytest.approx(free.high + 1.15 * 20.0)
    assert limited.low == free.low


@pytest.mark.parametrize(
    ("unit", "seconds", "least"), [(2, 100.0, 0.0), (2, 165.0, 20.0), (1, 50.0, 20.0)]
)
def test_a_buffer_that_parts_of_units_filled_before_the_fall_does_not_delay_it(
    unit: int, seconds: float, least: float
) -> None:
    """A write of half a unit takes half of its flash from the buffer; flash programs 1 byte/s.

    So the buffer may hold twice as much of whole units, and 1.4 times what the burst showed.
    """
    at = 200.0 / unit
    fall = RateDrop(at, 0.99 * at, 1.01 * at, 1.0, 0.2, ahead=0.0, seconds=seconds)
    values = {"unit": unit, "units": (unit,), "fall": fall, "large_fall": drop(200.0)}
    found = hidden_flash(drive(buffer=20.0, **values)).bracket
    assert found is not None
    assert found.value == 200.0 - (least + 20.0) / 2
    assert found.low == pytest.approx(198.0 - 20.0 * max(1.4, unit))
    assert found.high == pytest.approx(1.15 * (202.0 - least))


def test_the_reserve_of_collection_does_not_make_a_measurement_too_uncertain() -> None:
    """Bounds that differ by a factor of 1.5 count, and the reserve is added to them."""
    for low, is_known in ((90.0, True), (80.0, False)):
        fall = RateDrop(100.0, low, 130.0, 1.0, 0.2, ahead=0.0, seconds=100.0)
        found = hidden_flash(drive(fall=fall, large_fall=fall)).bracket
        assert (found is not None) is is_known
        assert found is None or found.high == pytest.approx(1.15 * 129.0)


def test_a_fall_shows_nothing_if_writes_go_to_a_cache_that_the_fill_does_not_show() -> None:
    assert hidden_flash(drive(writes_cache=True)).bracket is None
    assert hidden_flash(drive(writes_cache=None, may_borrow=True)).bracket is None
    assert hidden_flash(drive(writes_cache=None)).bracket is not None
    assert hidden_flash(drive(writes_cache=True, has_single_reads=False)).bracket is not None


def test_a_fall_shows_nothing_if_a_cache_that_the_fill_does_not_show_may_borrow_flash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    borrowed = {"may_borrow": True, "writes_cache": False}
    assert hidden_flash(drive(**borrowed)).bracket is None
    seen = hidden_flash(drive(cache=20.0, has_own_flash=False, **borrowed))
    assert seen.bracket is not None
    cycle = Cycle(1, (5.0, 4.0), (5.0, 4.0), 1.0)
    monkeypatch.setattr(hidden, "cycles", lambda *_args, **_options: [cycle])
    shown = {"large_fall": drop(130.0), "steady": 1 / waf_from_alpha(1.1)}  # by the cycle alone
    for garbage in ("not measured", FROM_FEW):
        values = {**shown, "garbage": garbage}
        assert hidden_flash(drive(**values)).bracket is not None
        is_known = hidden_flash(drive(**values, **borrowed)).bracket is not None
        assert is_known is (garbage != FROM_FEW)
        assert hidden_flash(drive(**values, **borrowed, cache=20.0)).bracket is not None


def test_known_garbage_shows_less_certainly_if_a_cache_may_take_its_writes() -> None:
    """A cache may borrow 1.4 instead of 1.15 times what takes data."""
    for writes, cache, reserve in ((False, 20.0, 1.15), (None, 0.0, 1.15), (None, 20.0, 1.4)):
        hidden = garbage_of_an_eighth(hidden=Bracket(80.0, 79.0, 81.0))
        values = {"garbage": hidden, "borrows": True, "writes_cache": writes, "cache": cache}
        found = hidden_flash(drive(**values))
        assert found.bracket is not None
        assert found.bracket.high == pytest.approx(reserve * 81.0)


def test_what_a_cache_with_flash_of_its_own_holds_is_not_spare() -> None:
    own = {"cache": 60.0, "has_own_flash": True, "fall": drop(200.0)}
    found = hidden_flash(drive(**own, cached=Bracket(50.0, 48.0, 52.0))).bracket
    assert found == pytest.approx((150.0, 0.99 * 200 - 52, 1.15 * (1.01 * 200 - 48)))


def test_random_writes_far_faster_than_large_ones_may_go_to_a_borrowed_cache() -> None:
    """The rate before the fall is 1; 2.3 times that of large writes is the limit."""
    for direct, erased, may_borrow in ((0.4, 0.4, True), (0.5, 0.4, False), (0.4, 0.5, False)):
        assert drive(direct=direct, erased=erased).may_borrow is may_borrow
    assert not drive(erased=2.1).may_borrow
    assert drive(erased=2.3).may_borrow, "writes before collection also fold the cache"
    for other in ({"unit": 2}, {"unit": None}, {"misses_map": True}, {"cache": 9.0, "held": 0.0}):
        assert not drive(erased=2.3, **other).may_borrow
    assert not drive(erased=2.3, direct=1.0, fall=None).may_borrow


def test_a_buffer_that_a_slow_link_never_fills_may_hold_what_precedes_known_garbage() -> None:
    def found(megabytes: float) -> Bracket | None:
        hidden = Bracket(*(part * megabytes * MIB for part in (1.0, 0.99, 1.01)))
        link = {"is_direct_limited": True, "region": 2000.0 * MIB, "buffer": 0.0}
        return hidden_flash(
            drive(garbage=garbage_of_an_eighth(hidden=hidden), fall=None, **link)
        ).bracket

    assert found(200.0) is None
    large = found(400.0)
    assert large is not None
    assert large.low == pytest.approx((0.99 * 400 - 64) * MIB)


def test_victims_at_random_cost_at_most_a_read_and_a_program_for_each_unit() -> None:
    """100 of hidden flash beside 1000 have a WAF of 11, and so a cost of at most 22 programs."""
    hidden = {"garbage": AT_RANDOM, "buffer": 0.0, "direct": 1.0}
    assert hidden_flash(drive(steady=1 / 22, **hidden)).bracket is not None
    refused = hidden_flash(drive(steady=1 / 25, **hidden))
    assert refused.bracket is None
    assert "costs more than a read and a program" in refused.why
    unit = {"unit": 2, "fall": drop(50.0), "large_fall": drop(100.0)}
    assert hidden_flash(drive(steady=1 / 44, **hidden | unit)).bracket is not None


def test_less_than_one_percent_of_hidden_flash_is_not_reported() -> None:
    little, enough = (
        reportable(hidden_flash(drive(fall=drop(at), large_fall=drop(at))), REGION)
        for at in (11.0, 12.0)
    )
    assert little.bracket is None
    assert "the reserve may be as large" in little.why
    assert enough.bracket is not None
    assert reportable(UNKNOWN, REGION) is UNKNOWN

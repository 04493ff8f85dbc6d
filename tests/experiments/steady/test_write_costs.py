"""Bounds of WAF by what programs and reads cost, on writes whose cost is known."""

from __future__ import annotations

from typing import Any

import pytest
from gauged_drive import drive, drop, garbage_of_an_eighth

from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady.garbage import AT_RANDOM
from ssdlab.experiments.steady.write_costs import waf_by_costs
from ssdlab.stats.steady import Progress

BLOCK = 4096.0
READ = 0.2
"""Seconds per byte of random reads; a program takes 1 second per byte."""


def _drive(waf: float, *, unit: int = 1, relocated: float = READ, **values: Any) -> Any:
    """A drive whose steady writes cost `waf` programs, reads of what is relocated, and `others`."""
    others = values.pop("others", 0.0)
    cost = waf + (waf - unit) * relocated / unit + others
    reads = Progress([1.0] * 100, [1 / READ] * 100)
    usual = {
        "unit": unit,
        "units": (unit,),
        "block": BLOCK,
        "steady": 1 / cost,
        "curve": lambda _case: reads,
        "map_misses": Bracket(0.0, 0.0, 0.05),
        "cost_before_collection": unit + others,
        "fastest": 100.0,
    }
    return drive(**usual | values)


def _bounds(waf: float, **values: Any) -> Bracket:
    found = waf_by_costs(_drive(waf, **values))
    assert found is not None
    return found


@pytest.mark.parametrize("relocated", [0.0, 0.5 * READ, READ])
@pytest.mark.parametrize("unit", [1, 2, 4])
@pytest.mark.parametrize("waf", [1.5, 5.0, 40.0])
def test_large_writes_and_reads_bound_waf(waf: float, unit: int, relocated: float) -> None:
    found = _bounds(unit * waf, unit=unit, relocated=relocated)
    assert found.low < unit * waf < found.high
    reads = (unit > 1) * 4 * READ  # of the rest of a unit
    assert found.high * (1 + READ) ** -1 < 1.07 * 1.05 * (found.low + reads)


def test_the_bounds_are_nearer_if_reads_take_less_time() -> None:
    slow, fast = (
        _bounds(5.0, relocated=0.0, curve=lambda _, rate=rate: Progress([1.0] * 9, [rate] * 9))
        for rate in (2.0, 200.0)
    )
    assert fast.high == slow.high
    assert fast.low > 1.2 * slow.low


@pytest.mark.parametrize("in_order", [0.02, 0.1])
def test_large_reads_show_what_collection_reads_at_most(in_order: float) -> None:
    """A page of a victim is read once, for all of its units that are valid."""
    full = {"relocated": in_order * 8 / 7, "large_read_s": in_order}
    alone, both = _bounds(8.0, relocated=in_order * 8 / 7), _bounds(8.0, **full)
    assert both.high == alone.high
    assert both.low == pytest.approx(8.0 / 1.05)
    assert both.low > alone.low
    fast = _bounds(8.0, relocated=0.0, large_read_s=in_order)
    assert fast.low == pytest.approx(8.0 / (1 + in_order) / 1.05)
    assert _bounds(8.0, relocated=0.0, large_read_s=2 * READ) == _bounds(8.0, relocated=0.0)


def test_large_reads_show_what_known_garbage_reads_at_most() -> None:
    """Behind a slow link it alone shows what a program costs."""
    link: dict[str, Any] = {"is_direct_limited": True, "unseen_buffer": 0.0, "relocated": 0.0}
    link["garbage"] = garbage_of_an_eighth(rate=1 / 8)
    alone, both = _bounds(40.0, **link), _bounds(40.0, large_read_s=0.02, **link)
    assert alone.low < both.low < 40.0 < both.high == alone.high
    least = _bounds(4.0, **link), _bounds(4.0, large_read_s=0.02, **link)
    assert least[1].high < least[0].high


@pytest.mark.parametrize("relocated", [0.0, READ])
@pytest.mark.parametrize("limited", [True, False])
def test_known_garbage_shows_programs_and_reads_together(relocated: float, limited: bool) -> None:
    """A slow link may then limit large writes."""
    garbage = garbage_of_an_eighth(rate=1 / (8 + 7 * relocated))
    found = _bounds(
        7.0, relocated=relocated, garbage=garbage, is_direct_limited=limited, unseen_buffer=0.0
    )
    assert found.low < 7.0 < found.high < 1.15 * found.low


@pytest.mark.parametrize("others", [0.0, READ, 4 * READ])
def test_reads_of_the_rest_of_a_mapping_unit_may_suspend_programs(others: float) -> None:
    found = _bounds(6.0, unit=2, relocated=0.0, others=others)
    assert found.low < 6.0 < found.high


@pytest.mark.parametrize(("trimmed", "is_clear"), [(1 / 4, True), (1 / 2, False)])
def test_known_garbage_of_low_waf_does_not_decide_alone(trimmed: float, is_clear: bool) -> None:
    """Then newer superblocks may have been collected, too, so that its WAF was higher."""
    garbage = garbage_of_an_eighth(trimmed=trimmed, rate=trimmed / 1.3)
    found = _bounds(5.0, relocated=0.0, garbage=garbage)
    assert (found.high < 5.0) is is_clear


def test_victims_that_are_emptier_than_known_garbage_cost_less_than_its_waf() -> None:
    """Then a program takes longer than its cost shows, as large writes do."""
    garbage = garbage_of_an_eighth(rate=1 / 6.4)
    found = _bounds(10.0, relocated=0.0, garbage=garbage)
    assert found.low < 10.0
    assert found.high == pytest.approx(1.07 * 10.0 / 0.8)
    small = _bounds(10.0, relocated=0.0, garbage=garbage, buffer=0.002)
    assert small.low > 10.0, "a small buffer may limit large writes"


@pytest.mark.parametrize("limited", [True, False])
def test_what_writes_cost_before_collection_shows_what_a_map_adds(limited: bool) -> None:
    """Only in part, if the link may have limited these writes."""
    map_values: dict[str, Any] = {
        "misses_map": True,
        "map_misses": Bracket(0.5, 0.45, 0.55),
        "others": 2.0,
    }
    rate = 1 / 3.0 if limited else 100.0
    found = _bounds(5.0, fastest=rate, **map_values)
    assert found.low < 5.0 < found.high
    assert (found.high < 1.5 * found.low) != limited
    larger = _bounds(10.0, unit=2, fastest=rate, **map_values)
    assert larger.high > 1.07 * 12.0, "the host may wait for the rest of a unit instead"
    for unit, buffer, at in ((1, 10.0, 18.0), (1, 1.0, 10.0), (2, 1.0, 5.0)):
        for near, is_known in ((0.95, False), (1.05, True)):  # at least 1 % of the region
            fall = drop(near * at)
            slow = _drive(5.0 * unit, unit=unit, buffer=buffer, fall=fall, **map_values)
            assert (waf_by_costs(slow) is not None) is is_known, "a buffer took what was written"


def test_a_cache_before_collection_hides_what_a_map_adds_but_not_how_much_at_most() -> None:
    """These writes cost half a program in the cache, and look-ups of 2."""
    garbage = garbage_of_an_eighth(rate=1 / 8)
    cached: dict[str, Any] = {
        "writes_cache": True,
        "misses_map": True,
        "cost_before_collection": 2.5,
    }
    found = _bounds(40.0, relocated=0.0, others=2.0, garbage=garbage, **cached)
    assert found.low == pytest.approx((40.0 + 2.0 - 2.5) / 1.05 + 0.8, rel=0.03)
    assert found.high == pytest.approx(1.07 * 42.0 + 1.0, rel=0.03)
    early = _drive(40.0, others=2.0, garbage=garbage, buffer=10.0, fall=drop(17.0), **cached)
    assert waf_by_costs(early) is None


def test_large_writes_may_relocate_data_if_victims_are_chosen_at_random() -> None:
    """Then the fill of the new drive shows what a program costs at least."""
    slow: dict[str, Any] = {"direct": 0.7, "erased": 1.0, "relocated": 0.0}
    found, other = (_bounds(12.0, **slow, garbage=name) for name in (AT_RANDOM, "not measured"))
    assert found.high == pytest.approx(1.02 * 12.0)
    assert other.high == pytest.approx(1.02 * 0.7 * 12.0)
    assert found.low == other.low
    folded = _bounds(12.0, **slow, borrows=True)  # the cache, meanwhile
    assert folded.high == pytest.approx(1.07 * 12.0)
    assert folded.low == found.low


@pytest.mark.parametrize(
    "values",
    [
        {"is_direct_limited": True},
        {"direct": 1000.0},
        {"map_misses": None},
        {"borrows": True, "writes_cache": None},
        {"cost_before_collection": 0.6},
    ],
)
def test_without_the_cost_of_a_program_there_are_no_bounds(values: dict[str, Any]) -> None:
    """The link, a small buffer or a cache may limit large writes; or reads are not clear."""
    assert waf_by_costs(_drive(5.0)) is not None
    assert waf_by_costs(_drive(5.0, **values)) is None


def test_writes_that_go_to_a_cache_first_count_once_more() -> None:
    values = {"garbage": garbage_of_an_eighth(rate=1 / 8), "relocated": 0.0}
    alone = _bounds(5.0, **values)
    cached = _bounds(5.0, writes_cache=True, **values)
    unclear = _bounds(5.0, writes_cache=None, borrows=True, **values)
    assert cached.low == pytest.approx(alone.low + 0.8)
    assert cached.high == unclear.high == pytest.approx(alone.high + 1.0)
    assert unclear.low == alone.low

"""The first cycle of collection, from curves whose WAF is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from gauged_drive import REGION, drive, drop, garbage_of_an_eighth

from ssdlab.analysis.write_amplification import Bracket
from ssdlab.experiments.steady.first_cycle import Cycle, cycles
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.stats.steady import Progress

SLICES = 4000


def _first_cycle_waf(share: float) -> float:
    return 1 / -math.expm1(-share)


def _drive(
    hidden: float = 100.0,
    *,
    unit: int = 1,
    constant: float = 0.0,
    buffer: float = 0.0,
    written: float = REGION,
    waf: Callable[[float], float] = _first_cycle_waf,
    **values: Any,
) -> Any:
    """A drive that collects from `hidden` bytes on, in whole mapping units.

    A program costs 1 second per byte, and each write the constant besides; `waf` is that after the
    share of the region that was written in units.
    """
    seconds, amount = [], written / SLICES
    for number in range(SLICES):
        at = unit * (number + 0.5) * amount - buffer
        programs = waf(at / REGION) if at > hidden else 1.0
        seconds.append(unit * amount * (programs + constant))
    gauges = {"fall": drop((hidden + buffer) / unit), "unit": unit, "buffer": buffer}
    gauged = drive(rounds=Progress(seconds, [amount] * SLICES), **gauges | values)
    gauged.units = (unit,)
    gauged.cost_before_collection = vars(Gauged)["cost_before_collection"].func(gauged)
    return gauged


@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("buffer", [0.0, 30.0])
def test_a_cycle_shows_the_waf_of_a_write_whatever_else_each_write_costs(
    unit: int, constant: float, buffer: float
) -> None:
    """A steady write of WAF 5 in whole mapping units, after a hidden tenth."""
    (cycle,) = cycles(_drive(unit=unit, constant=constant, buffer=buffer))
    assert cycle.is_collection
    assert cycle.may_be_collection
    bounds = cycle.waf_of(unit * (5.0 + constant))
    assert bounds.least == pytest.approx(5.0 * unit, rel=0.03)
    assert bounds.least <= bounds.low <= 5.0 * unit * 1.001
    assert 4.999 * unit <= bounds.high < 5.15 * unit


def test_a_slow_link_does_not_hide_the_waf_but_what_each_write_costs_besides() -> None:
    """Before collection the link made a write cost three programs."""
    gauged = _drive()
    gauged.cost_before_collection = 3.0
    (cycle,) = cycles(gauged)
    bounds = cycle.waf_of(5.0)
    assert cycle.is_collection
    assert bounds.least < 5.0 <= bounds.high * 1.001
    assert bounds.high < 1.05 * bounds.least


def test_victims_at_random_cost_the_same_from_the_start() -> None:
    (cycle,) = cycles(_drive(waf=lambda _share: 11.0))
    assert cycle.decline == pytest.approx(1.0, abs=0.01)
    assert not cycle.is_collection
    assert not cycle.may_be_collection


def test_a_cost_that_hardly_declines_is_not_that_of_collection() -> None:
    cycle = Cycle(1, (10.0, 8.0), (10.3, 10.0), 10.0)
    assert cycle.constants[0] < cycle.most_constant
    assert not cycle.may_be_collection
    assert not cycle.is_collection
    assert not Cycle(1, (10.0, 6.0), (8.0, 7.0), 1.0).may_be_collection
    for decline, may_be in ((1.06, False), (1.1, True)):
        assert Cycle(1, (4.0, 3.0), (decline, 1.0), 0.2).may_be_collection is may_be


def test_victims_from_a_few_let_the_cost_decline_less() -> None:
    """WAF then also depends on newer superblocks."""
    (cycle,) = cycles(_drive(waf=lambda share: 3.0 + 0.6 * _first_cycle_waf(share)))
    assert cycle.relative_decline < 0.92
    assert not cycle.is_collection
    assert cycle.may_be_collection


def test_a_cost_that_declines_more_than_waf_is_not_that_of_collection() -> None:
    (cycle,) = cycles(_drive(waf=lambda share: max(1.1, _first_cycle_waf(share) - 3.0)))
    assert cycle.relative_decline > 1.08
    assert not cycle.may_be_collection


def test_collection_that_begins_too_early_has_no_cycle() -> None:
    """Its WAF depends on a few superblocks."""
    assert not cycles(_drive(20.0))
    assert cycles(_drive(40.0))


def test_a_run_that_ends_within_the_cycle_shows_nothing() -> None:
    assert not cycles(_drive(written=200.0))
    assert cycles(_drive(written=300.0))


def test_writes_that_cost_no_more_than_before_are_not_collected() -> None:
    assert not cycles(_drive(waf=lambda _share: 0.9))


def test_no_fall_has_no_cycle() -> None:
    gauged = _drive()
    gauged.fall = None
    assert not cycles(gauged)


def test_an_unknown_mapping_unit_has_the_cycles_of_all_or_none() -> None:
    """With units of one block, collection would begin after 2.5 % of the region."""
    late, early = (_drive(hidden, unit=4) for hidden in (200.0, 100.0))
    for gauged in (late, early):
        gauged.units = (1, 2, 4)
    assert [cycle.unit for cycle in cycles(late)] == [1, 2, 4]
    assert not cycles(early)


def test_known_garbage_shows_another_begin_unless_a_cache_takes_writes() -> None:
    """The fall is where a cache was full; the hidden flash was used up later."""
    garbage = garbage_of_an_eighth(hidden=Bracket(100.0, 99.0, 101.0))
    gauged = _drive(garbage=garbage, fall=drop(60.0))
    by_fall, by_garbage = cycles(gauged)
    assert not by_fall.is_collection
    assert by_garbage.is_collection
    assert cycles(gauged, by_fall=True) == [by_fall]
    gauged.may_write_cache = True
    assert cycles(gauged) == [by_fall]


def test_a_buffer_that_a_slow_link_never_fills_may_or_may_not_delay_the_fall() -> None:
    gauged = _drive(200.0, unseen_buffer=30.0)
    assert len(cycles(gauged)) == 2
    wafs = [cycle.wafs[0] for cycle in cycles(gauged)]
    assert wafs[0] < wafs[1], "then it began earlier"
    assert not cycles(_drive(60.0, unseen_buffer=30.0)), "and then it would have no cycle"
    assert cycles(_drive(60.0))


def test_a_constant_part_lowers_the_decline() -> None:
    cycle = Cycle(1, (10.0, 6.0), (12.0, 8.0), 3.0)
    assert cycle.constants[0] < 2.0 < cycle.constants[1]
    assert cycle.most_constant == pytest.approx(2.0)

"""The mapping unit by what writes of several sizes cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from ssdlab.experiments.steady.mapping_unit import UNITS, likeliest_unit
from ssdlab.stats.steady import Progress

LARGE = 16
SIZES = (1, 2, 4, 8)


def _likeliest(
    gains: Sequence[float],
    cost: float | Sequence[float],
    *,
    ordered: float | None = None,
    misses_map: bool = False,
    uneven: float = 1.0,
) -> int | None:
    """The unit if larger writes are faster by these gains.

    The writes of each size take `uneven` times as long in every second tenth of the gauge.
    """
    rate, curves = 10.0, []
    for gain in gains:
        rate *= gain
        mean = (1 + uneven) / 2
        seconds = [(uneven if number // 2 % 2 else 1.0) / mean / rate for number in range(20)]
        # The first part of each gauge does not count.
        seconds[:4] = [100.0] * 4
        curves.append(Progress(seconds, [1.0] * 20))
    costs = [cost] * len(UNITS) if isinstance(cost, float) else cost
    return likeliest_unit(10.0, curves, costs, ordered, LARGE, misses_map=misses_map)


def _gains(unit: int, lookup: float = 0.0, rest: float = 0.0) -> tuple[list[float], float]:
    """Gains and cost of a drive with this unit.

    `lookup` is the cost of a look-up, `rest` that of reading the rest of a unit. Both are relative
    to the cost of programming a block.
    """
    costs = [
        (lookup + max(unit, blocks) + rest * (blocks < unit)) / blocks for blocks in (*SIZES, LARGE)
    ]
    return [one / two for one, two in pairwise(costs[:4])], costs[0] / costs[4]


@pytest.mark.parametrize(
    ("gains", "cost", "unit"),
    [
        ((1.0, 1.0, 1.0), 1.0, 1),
        ((2.0, 1.0, 1.0), 2.0, 2),
        ((2.0, 2.0, 1.0), 4.0, 4),
        ((2.0, 2.0, 2.0), 8.0, 8),
        ((2.0, 2.0, 2.0), 16.0, 16),
        ((2.4, 0.8, 1.4), 2.4, 2),  # few superblocks: each gain alone is unclear
        ((0.7, 1.2, 2.5), 0.9, 1),
        ((2.0, 1.4, 1.0), 2.8, None),  # 2 or 4
    ],
)
def test_gains_and_the_cost_relative_to_large_writes_show_the_unit_together(
    gains: tuple[float, ...], cost: float, unit: int | None
) -> None:
    assert _likeliest(gains, cost) == unit


def test_rates_that_change_within_a_gauge_show_less() -> None:
    gains, cost = _gains(1, lookup=3.0)
    assert _likeliest(gains, cost, misses_map=True, uneven=1.5) == 1
    assert _likeliest(gains, cost, misses_map=True, uneven=4.0) is None


@pytest.mark.parametrize("unit", [1, 2, 4])
@pytest.mark.parametrize(("lookup", "is_known"), [(0.5, True), (3.0, True), (12.0, False)])
def test_a_look_up_in_a_map_costs_as_much_for_each_request(
    lookup: float, is_known: bool, unit: int
) -> None:
    gains, cost = _gains(unit, lookup)
    assert _likeliest(gains, cost, misses_map=True) == (unit if is_known else None)


def test_without_a_map_a_cost_of_each_request_is_taken_for_that_of_a_unit() -> None:
    assert _likeliest(*_gains(1, 4.0)) == 4


@pytest.mark.parametrize("rest", [0.5, 2.0])
@pytest.mark.parametrize("unit", [2, 4])
def test_reads_of_the_rest_of_a_unit_cost_more(unit: int, rest: float) -> None:
    assert _likeliest(*_gains(unit, rest=rest)) == unit


@pytest.mark.parametrize(
    ("ordered", "unit"), [(None, None), (2.0, 2), (4.0, 4), (1.0, None), (16.0, None)]
)
def test_writes_in_order_take_up_a_unit_each_unless_the_drive_merges_them(
    ordered: float | None, unit: int | None
) -> None:
    assert _likeliest((2.0, 1.4, 1.0), 2.8, ordered=ordered) == unit
    assert _likeliest((2.0, 1.0, 1.0), 1.4, ordered=1.0) == 2


def test_the_cost_is_that_of_the_unit_in_question() -> None:
    """The rounds and the large writes are compared as far after the fill, in whole units."""
    gains = (2.0, 1.4, 1.0)
    assert _likeliest(gains, [1.0, 2.0, 1.0, 1.0, 1.0]) == 2
    assert _likeliest(gains, [1.0, 1.0, 4.0, 1.0, 1.0]) == 4

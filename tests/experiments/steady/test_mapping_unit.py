"""The mapping unit by what random writes of several sizes cost."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ssdlab.experiments.steady.mapping_unit import UNITS, likeliest_unit, unit_by_size
from ssdlab.stats.steady import Progress

LARGE = 16


@pytest.mark.parametrize(
    ("gains", "unit"),
    [
        ((1.0, 1.1, 0.9), 1),
        ((2.0, 1.0, 1.0), 2),
        ((2.0, 2.4, 1.1), 4),
        ((1.75, 1.75, 1.1), 4),
        ((1.65, 1.65, 1.1), None),  # a map that does not fit into memory
        ((2.0, 2.0, 2.0), None),  # 8 or more, or each request costs as much
        ((1.5, 1.3, 1.2), None),  # each request costs something besides its bytes
        ((1.0, 2.0, 1.0), None),
    ],
)
def test_larger_random_writes_are_faster_up_to_the_mapping_unit(
    gains: tuple[float, ...], unit: int | None
) -> None:
    rate, curves = 10.0, []
    for gain in gains:
        rate *= gain
        # The first part of each write does not count.
        curves.append(Progress([1.0, 10.0], [20.0, 10 * rate]))
    assert unit_by_size(10.0, curves) == unit
    assert unit_by_size(10.0, [*curves[:2], Progress([], [])]) is None
    assert unit_by_size(0.0, curves) is None


def _rates(gains: tuple[float, ...]) -> list[float]:
    rates = [10.0]
    for gain in gains:
        rates.append(rates[-1] * gain)
    return rates


def _likeliest(gains: tuple[float, ...], cost: float, *, misses_map: bool = False) -> int | None:
    return likeliest_unit(_rates(gains), [cost] * len(UNITS), LARGE, misses_map=misses_map)


@pytest.mark.parametrize(
    ("gains", "cost", "unit"),
    [
        ((1.0, 1.0, 1.0), 1.0, 1),
        ((2.0, 1.0, 1.0), 2.0, 2),
        ((2.0, 2.0, 1.0), 4.0, 4),
        ((2.0, 2.0, 2.0), 8.0, 8),
        ((2.0, 2.0, 2.0), 16.0, 16),
        ((2.4, 0.8, 1.4), 2.4, 2),  # few superblocks: each gain alone is unclear
        ((1.5, 1.0, 1.4), 1.7, 2),
        ((0.7, 1.2, 2.5), 0.9, 1),
        ((2.0, 1.4, 1.0), 2.9, None),  # 2 or 4
    ],
)
def test_gains_and_the_cost_relative_to_large_writes_show_the_unit_together(
    gains: tuple[float, ...], cost: float, unit: int | None
) -> None:
    assert _likeliest(gains, cost) == unit


@pytest.mark.parametrize(
    ("lookup", "unit", "without", "with_map"),
    [(0.5, 1, 1, 1), (1.0, 1, None, 1), (0.1, 2, 2, 2), (4.0, 1, 4, None), (8.0, 2, 8, None)],
)
def test_a_look_up_in_a_map_makes_all_larger_writes_faster(
    lookup: float, unit: int, without: int | None, with_map: int | None
) -> None:
    costs = [(lookup + max(unit, blocks)) / blocks for blocks in (1, 2, 4, 8, LARGE)]
    gains = tuple(one / two for one, two in pairwise(costs[:4]))
    found = [_likeliest(gains, costs[0] / costs[4], misses_map=each) for each in (False, True)]
    assert found == [without, with_map]


def test_the_cost_is_that_of_the_unit_in_question() -> None:
    """The rounds and the large writes are compared as far after the fill, in whole units."""
    gains = (2.0, 1.4, 1.0)
    assert likeliest_unit(_rates(gains), [1.0, 2.0, 1.0, 1.0, 1.0], LARGE, misses_map=False) == 2
    assert likeliest_unit(_rates(gains), [1.0, 1.0, 4.0, 1.0, 1.0], LARGE, misses_map=False) == 4
    assert likeliest_unit(_rates((2.0, 1.0, 1.0)), [1.0] * 5, 1, misses_map=False) == 2

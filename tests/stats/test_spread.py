"""Mean deviation of repeats."""

from __future__ import annotations

import math

import pytest

from ssdlab.stats.spread import mean_deviation


def test_the_mean_deviation_of_three_values() -> None:
    # Mean 4; deviations 3, 1 and 4, with mean 8/3.
    assert mean_deviation([1.0, 3.0, 8.0]) == pytest.approx((4, 8 / 3, 200 / 3))
    assert mean_deviation([5.0]) == (5, 0, 0)
    with pytest.raises(AssertionError):
        mean_deviation([0.0, 0.0])


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_a_deviation_needs_finite_values(values: list[float]) -> None:
    with pytest.raises(AssertionError):
        mean_deviation(values)

"""Spread and robust ratios of repeats: known values, outliers, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ssdlab.stats.spread import (
    cv,
    hodges_lehmann,
    hodges_lehmann_ratio,
    mad,
    mean_deviation,
    robust_cv,
)

POSITIVE = st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=8)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_the_mad_is_that_of_scipy_with_normal_scale(values: list[float]) -> None:
    expected = stats.median_abs_deviation(values, scale="normal")
    assert mad(values) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_the_cv_is_the_sample_deviation_over_the_mean() -> None:
    assert cv([9.0, 10.0, 11.0]) == pytest.approx(0.1)


def test_two_outliers_of_nine_values_do_not_change_the_robust_cv() -> None:
    values = [98.0, 99.0, 99.5, 100.0, 100.5, 101.0, 102.0]
    assert robust_cv([*values, 1e9, 1e9]) < 0.03
    assert cv([*values, 1e9, 1e9]) > 1


@given(POSITIVE, POSITIVE)
def test_the_reverse_ratio_is_the_reciprocal(above: list[float], below: list[float]) -> None:
    assert hodges_lehmann(above, below) == pytest.approx(1 / hodges_lehmann(below, above))


@settings(max_examples=20)
@given(POSITIVE, st.floats(0.01, 100))
def test_the_ratio_of_a_set_and_its_multiple_is_the_factor(
    values: list[float], factor: float
) -> None:
    ratio = hodges_lehmann_ratio([factor * x for x in values], values)
    assert ratio is not None
    assert ratio.value == pytest.approx(factor)
    assert ratio.low <= factor * (1 + 1e-9)
    assert ratio.high >= factor * (1 - 1e-9)


def test_one_outlier_does_not_change_the_ratio() -> None:
    quiet = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8]
    ratio = hodges_lehmann_ratio([2 * x for x in quiet[:-1]] + [20.0], quiet)
    assert ratio is not None
    assert ratio.value == pytest.approx(2, rel=0.01)


def test_the_interval_covers_the_ratio_in_ninety_percent() -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(40):
        above, below = np.exp(0.1 * generator.standard_normal((2, 10)))
        ratio = hodges_lehmann_ratio(2 * above, below)
        assert ratio is not None
        covered += ratio.low <= 2 <= ratio.high
    assert 36 <= covered < 40


def test_the_same_seed_gives_the_same_interval() -> None:
    sets = np.random.default_rng(1).uniform(1, 2, (2, 9))
    assert hodges_lehmann_ratio(*sets, seed=3) == hodges_lehmann_ratio(*sets, seed=3)
    assert hodges_lehmann_ratio(*sets, seed=3) != hodges_lehmann_ratio(*sets, seed=4)


def test_four_repeats_have_no_bootstrap_interval() -> None:
    assert hodges_lehmann_ratio([1.0] * 4, [1.0] * 9) is None
    assert hodges_lehmann_ratio([1.0] * 9, [1.0] * 4) is None


def test_the_mean_deviation_of_three_values() -> None:
    # Mean 4; deviations 3, 1 and 4, with mean 8/3.
    assert mean_deviation([1.0, 3.0, 8.0]) == pytest.approx((4, 8 / 3, 200 / 3))
    assert mean_deviation([5.0]) == (5, 0, 0)
    with pytest.raises(AssertionError):
        mean_deviation([0.0, 0.0])


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [0.0, 1.0], [-1.0]])
def test_a_ratio_of_empty_or_not_positive_values_raises_an_assertion(values: list[float]) -> None:
    with pytest.raises(AssertionError):
        hodges_lehmann(values, [1.0])

"""Intervals of ratios: known answers of scipy's Welch test, and what holds for all numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from ssdlab.stats.interval import ratio_interval

SECONDS = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=6)


def _interval(above: list[float], below: list[float], confidence: float) -> tuple[float, float]:
    bounds = ratio_interval(above, below, confidence)
    assert bounds is not None
    return bounds


def _scatter(values: list[float]) -> float:
    logs = [math.log(value) for value in values]
    return max(logs) - min(logs)


def test_the_bounds_of_three_reads_each_are_those_of_welch_on_logarithms() -> None:
    aged, fresh = [6.39, 6.51, 6.42], [1.90, 1.95, 1.91]
    welch = stats.ttest_ind(
        [math.log(x) for x in aged], [math.log(x) for x in fresh], equal_var=False
    ).confidence_interval(0.95)
    assert ratio_interval(aged, fresh) == pytest.approx(
        (math.exp(welch.low), math.exp(welch.high)), rel=1e-12
    )
    assert ratio_interval(aged, fresh) == pytest.approx((3.2614, 3.4497), abs=1e-3)


@given(SECONDS, SECONDS, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_bounds_agree_with_scipy_for_any_repeats(
    above: list[float], below: list[float], confidence: float
) -> None:
    assume(_scatter(above) > 1e-4)
    assume(_scatter(below) > 1e-4)
    logs = [[math.log(x) for x in values] for values in (above, below)]
    welch = stats.ttest_ind(*logs, equal_var=False).confidence_interval(confidence)
    assume(welch.high < 500)  # else e to this overflows: an interval that says nothing
    assume(welch.low > -500)
    low, high = _interval(above, below, confidence)
    assert math.log(low) == pytest.approx(welch.low, rel=1e-6, abs=1e-6)
    assert math.log(high) == pytest.approx(welch.high, rel=1e-6, abs=1e-6)


@given(SECONDS, SECONDS)
def test_the_interval_holds_the_ratio_of_the_geometric_means(
    above: list[float], below: list[float]
) -> None:
    assume(_scatter(above) > 1e-4)
    low, high = _interval(above, below, 0.5)
    ratio = stats.gmean(above) / stats.gmean(below)
    assert low <= ratio * (1 + 1e-9)
    assert high >= ratio * (1 - 1e-9)


@given(SECONDS, SECONDS)
def test_the_reciprocal_ratio_has_the_reciprocal_bounds(
    above: list[float], below: list[float]
) -> None:
    assume(_scatter(above) > 1e-4)
    low, high = _interval(above, below, 0.5)
    assert _interval(below, above, 0.5) == pytest.approx((1 / high, 1 / low), rel=1e-6)


def test_exact_repeats_say_nothing_about_an_error() -> None:
    assert ratio_interval([3.3, 3.3, 3.3], [1.1, 1.1, 1.1]) is None


def test_scatter_on_one_side_alone_is_scatter() -> None:
    low, high = _interval([2.0, 2.2], [1.0, 1.0], 0.95)
    assert low < 2.0
    assert high > 2.2


@pytest.mark.parametrize(("above", "below"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0]), ([], [])])
def test_one_repeat_has_no_interval(above: list[float], below: list[float]) -> None:
    assert ratio_interval(above, below) is None

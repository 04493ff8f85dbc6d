"""Intervals of ratios and means: known values, coverage and invariants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from ssdlab.stats.changepoint import ar1_noise
from ssdlab.stats.interval import mean_interval, median_ratio_interval, ratio_interval

SECONDS = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=6)


def _interval(above: list[float], below: list[float], confidence: float) -> tuple[float, float]:
    bounds = ratio_interval(above, below, confidence)
    assert bounds is not None
    return bounds


def _scatter(values: list[float]) -> float:
    logs = [math.log(value) for value in values]
    return max(logs) - min(logs)


def test_the_interval_of_a_ratio_is_that_of_welch_on_logarithms() -> None:
    aged, fresh = [6.39, 6.51, 6.42], [1.90, 1.95, 1.91]
    welch = stats.ttest_ind(
        [math.log(x) for x in aged], [math.log(x) for x in fresh], equal_var=False
    ).confidence_interval(0.95)
    assert ratio_interval(aged, fresh) == pytest.approx(
        (math.exp(welch.low), math.exp(welch.high)), rel=1e-12
    )
    assert ratio_interval(aged, fresh) == pytest.approx((3.2614, 3.4497), abs=1e-3)


@given(SECONDS, SECONDS, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_interval_agrees_with_scipy_for_any_repeats(
    above: list[float], below: list[float], confidence: float
) -> None:
    assume(_scatter(above) > 1e-4)
    assume(_scatter(below) > 1e-4)
    logs = [[math.log(x) for x in values] for values in (above, below)]
    welch = stats.ttest_ind(*logs, equal_var=False).confidence_interval(confidence)
    assume(welch.high < 500)  # otherwise math.exp overflows
    assume(welch.low > -500)
    low, high = _interval(above, below, confidence)
    assert math.log(low) == pytest.approx(welch.low, rel=1e-6, abs=1e-6)
    assert math.log(high) == pytest.approx(welch.high, rel=1e-6, abs=1e-6)


@given(SECONDS, SECONDS)
def test_the_interval_contains_the_ratio_of_the_geometric_means(
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


def test_equal_repeats_have_no_interval() -> None:
    assert ratio_interval([3.3, 3.3, 3.3], [1.1, 1.1, 1.1]) is None


def test_variance_on_one_side_is_enough_for_an_interval() -> None:
    low, high = _interval([2.0, 2.2], [1.0, 1.0], 0.95)
    assert low < 2.0
    assert high > 2.2


@pytest.mark.parametrize(("above", "below"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0]), ([], [])])
def test_one_repeat_has_no_interval(above: list[float], below: list[float]) -> None:
    assert ratio_interval(above, below) is None


def _ar1(rho: float, count: int) -> np.ndarray:
    return 1 + 0.05 * ar1_noise(np.random.default_rng(4), (count, 40), rho)


@pytest.mark.parametrize(("rho", "least"), [(0.0, 0.93), (0.3, 0.92), (0.6, 0.87)])
def test_the_interval_covers_the_mean_if_correlation_ends_within_a_block(
    rho: float, least: float
) -> None:
    bounds = [mean_interval(series, 8) for series in _ar1(rho, 1000)]
    assert least <= np.mean([low <= 1 <= high for low, high in bounds]) <= 0.98


def test_with_blocks_of_one_the_interval_of_a_correlated_series_is_too_narrow() -> None:
    bounds = [mean_interval(series, 1) for series in _ar1(0.6, 1000)]
    assert np.mean([low <= 1 <= high for low, high in bounds]) < 0.72


def test_the_width_is_that_of_the_moving_block_bootstrap() -> None:
    series = _ar1(0.3, 1)[0]
    blocks = np.lib.stride_tricks.sliding_window_view(series, 8)
    draws = np.random.default_rng(6).integers(0, len(blocks), (20_000, 5))
    drawn = blocks[draws].mean(axis=(1, 2)).std() * math.sqrt(40 / 32)  # n / (n - block)
    low, high = mean_interval(series, 8)
    margin = math.log(high / low) / 2
    # The bootstrap uses the mean of the draws, the formula that of the series: a little wider.
    assert margin / stats.t.ppf(0.975, 6) == pytest.approx(drawn / series.mean(), rel=0.1)


@given(st.lists(st.floats(1e-3, 1e3), min_size=8, max_size=40), st.floats(1e-6, 1e6))
def test_the_interval_contains_the_mean_and_scales_with_the_unit(
    series: list[float], scale: float
) -> None:
    low, high = mean_interval(series, 4)
    assert low * (1 - 1e-9) <= math.fsum(series) / len(series) <= high * (1 + 1e-9)
    assert mean_interval([scale * x for x in series], 4) == pytest.approx(
        (scale * low, scale * high)
    )


def test_for_ten_and_ten_repeats_the_rank_interval_is_from_the_24th_ratios() -> None:
    # In the tables of Mann and Whitney, the critical U at 5 % is 23 for 10 and 10.
    above, below = [2.0**n for n in range(10, 20)], [3.0**n for n in range(10)]
    ratios = sorted(a / b for a in above for b in below)
    assert median_ratio_interval(above, below) == pytest.approx((ratios[23], ratios[-24]))


def test_rank_intervals_have_their_nominal_coverage_with_heavy_tails() -> None:
    random = np.random.default_rng(5)
    held, runs = 0, 1000
    for _ in range(runs):
        above, below = np.exp(random.standard_t(1.5, (2, 10)) / 10)
        bounds = median_ratio_interval(3 * above, below)
        assert bounds is not None
        held += bounds[0] <= 3 <= bounds[1]
    assert 0.93 <= held / runs <= 0.98


def test_an_outlier_moves_rank_intervals_much_less_than_intervals_of_means() -> None:
    slow, fast = [10.0 + n / 10 for n in range(10)], [5.0 + n / 10 for n in range(10)]
    hiccup = [*slow[:-1], 1000.0]
    plain, robust = median_ratio_interval(slow, fast), median_ratio_interval(hiccup, fast)
    assert plain is not None
    assert robust == pytest.approx(plain, rel=0.03)
    means = ratio_interval(hiccup, fast)
    assert means is not None
    assert means[1] > 3 * plain[1]


def test_too_few_or_equal_repeats_have_no_rank_interval() -> None:
    assert median_ratio_interval([2, 3, 4], [1, 1.5, 1.2]) is None
    assert median_ratio_interval([2, 3, 4, 5], [1, 1.5, 1.2, 1.1]) is not None
    assert median_ratio_interval([2] * 9, [1] * 9) is None
    assert median_ratio_interval([], [1.0]) is None

"""Change points: false alarm rate, detection rate and location."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdlab.stats.changepoint import (
    FEWEST_POINTS,
    Numbers,
    ar1_noise,
    change_points,
    lag1_correlation,
)

POINTS = (30, 64, 128)


def _noise(count: int, rho: float, series: int, seed: int = 1) -> Numbers:
    return ar1_noise(np.random.default_rng(seed), (series, count), rho)


def _stepped(count: int, at: int, series: int, rho: float = 0.0) -> Numbers:
    """Rows with a level of 100 and 3 % noise that rises by 10 % at index `at`."""
    level = np.where(np.arange(count) < at, 100.0, 110.0)
    return np.asarray(level + 3 * _noise(count, rho, series))


@pytest.mark.parametrize("count", POINTS)
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.8])
def test_the_false_alarm_rate_is_below_five_percent(count: int, rho: float) -> None:
    series = 100 + 3 * _noise(count, rho, 300)
    assert sum(bool(change_points(x)) for x in series) < 0.05 * 300


def test_the_false_alarm_rate_of_a_long_correlated_series_is_below_five_percent() -> None:
    series = 100 + 3 * _noise(250, 0.8, 200)
    assert sum(bool(change_points(x)) for x in series) < 0.05 * 200


@pytest.mark.parametrize("count", POINTS)
def test_a_rise_by_ten_percent_in_three_percent_noise_is_found_and_located(count: int) -> None:
    at = count // 2
    results = [change_points(x) for x in _stepped(count, at, 200)]
    hits = [changes[0] for changes in results if len(changes) == 1]
    assert len(hits) >= (0.8 if count == 30 else 0.95) * 200
    assert np.mean([abs(hit.at - at) <= 2 for hit in hits]) > 0.95


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_the_interval_of_the_step_covers_it_in_ninety_percent(rho: float) -> None:
    results = [change_points(x) for x in _stepped(128, 50, 300, rho)]
    hits = [changes[0] for changes in results if len(changes) == 1]
    assert len(hits) > 200
    assert np.mean([hit.low <= 10 <= hit.high for hit in hits]) >= 0.9


def test_a_change_that_reverses_is_found() -> None:
    level = np.where((np.arange(128) // 32) % 2 == 0, 100.0, 115.0)
    changes = change_points(level + 3 * _noise(128, 0.0, 1)[0])
    assert [change.at for change in changes] == [32, 64, 96]
    assert [round(change.step / 15) for change in changes] == [1, -1, 1]


def test_a_cliff_of_a_hundred_times_the_noise_is_not_mistaken_for_correlation() -> None:
    series = np.where(np.arange(64) < 40, 500.0, 100.0) + _noise(64, 0.0, 1)[0]
    (change,) = change_points(series)
    assert change.at == 40
    assert change.step == pytest.approx(-400, abs=2)
    assert change.low < -400 < change.high
    assert change.p_value <= 0.002


def test_a_single_outlier_is_not_a_change() -> None:
    series = 100 + _noise(64, 0.0, 1)[0]
    series[20] = 1000
    assert change_points(series) == ()


def test_rounding_errors_are_not_a_change() -> None:
    assert change_points([0.1 + 0.2, 0.3] * 20) == ()


def test_an_exact_step_is_found_exactly() -> None:
    (change,) = change_points([5.0] * 25 + [1.0] * 15)
    assert (change.at, change.before, change.after, change.step) == (25, 5.0, 1.0, -4.0)


def test_too_short_a_series_is_refused() -> None:
    with pytest.raises(AssertionError, match="29 points"):
        change_points([1.0] * (FEWEST_POINTS - 1))


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.8])
def test_correlation_is_estimated_within_a_tenth_despite_two_steps(rho: float) -> None:
    estimates = []
    for noise in _noise(1000, rho, 50):
        noise[300:] += 20
        noise[600:] -= 50
        estimates.append(lag1_correlation(noise))
    assert np.median(estimates) == pytest.approx(rho, abs=0.1)


@given(st.floats(0.01, 1e9), st.floats(-1e3, 1e3), st.integers(0, 50))
def test_scaling_and_offset_only_scale_the_step(scale: float, offset: float, seed: int) -> None:
    x = np.where(np.arange(60) < 30, 0.0, 5.0) + _noise(60, 0.0, 1, seed)[0]
    plain, scaled = change_points(x), change_points(scale * (x + offset))
    assert [(c.at, c.p_value) for c in plain] == [(c.at, c.p_value) for c in scaled]
    for one, other in zip(plain, scaled, strict=True):
        assert other.step == pytest.approx(scale * one.step, rel=1e-6)


@given(st.integers(0, 50), st.integers(15, 45))
def test_a_reversed_series_has_the_reversed_change(seed: int, at: int) -> None:
    x = np.where(np.arange(60) < at, 0.0, 6.0) + _noise(60, 0.0, 1, seed)[0]
    forth, back = change_points(x), change_points(x[::-1])
    assert [c.at for c in forth] == [60 - c.at for c in reversed(back)]

"""Change points: how often they are seen where there are none, and found where there are."""

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
    """A level of 100 with 3 % noise that rises by 10 % at a point."""
    level = np.where(np.arange(count) < at, 100.0, 110.0)
    return np.asarray(level + 3 * _noise(count, rho, series))


@pytest.mark.parametrize("count", POINTS)
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.8])
def test_fewer_than_one_in_twenty_series_without_a_change_is_said_to_have_one(
    count: int, rho: float
) -> None:
    series = 100 + 3 * _noise(count, rho, 300)
    assert sum(bool(change_points(x)) for x in series) < 0.05 * 300


def test_a_long_correlated_series_without_a_change_has_none() -> None:
    series = 100 + 3 * _noise(250, 0.8, 200)
    assert sum(bool(change_points(x)) for x in series) < 0.05 * 200


@pytest.mark.parametrize("count", POINTS)
def test_a_rise_by_a_tenth_under_noise_of_three_per_cent_is_found_where_it_is(count: int) -> None:
    at = count // 2
    found = [change_points(x) for x in _stepped(count, at, 200)]
    hits = [changes[0] for changes in found if len(changes) == 1]
    assert len(hits) >= (0.8 if count == 30 else 0.95) * 200
    assert np.mean([abs(hit.at - at) <= 2 for hit in hits]) > 0.95


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_the_interval_of_the_step_holds_it_in_nine_of_ten_series(rho: float) -> None:
    found = [change_points(x) for x in _stepped(128, 50, 300, rho)]
    hits = [changes[0] for changes in found if len(changes) == 1]
    assert len(hits) > 200
    assert np.mean([hit.low <= 10 <= hit.high for hit in hits]) >= 0.9


def test_a_change_that_is_undone_does_not_hide_from_the_test() -> None:
    level = np.where((np.arange(128) // 32) % 2 == 0, 100.0, 115.0)
    changes = change_points(level + 3 * _noise(128, 0.0, 1)[0])
    assert [change.at for change in changes] == [32, 64, 96]
    assert [round(change.step / 15) for change in changes] == [1, -1, 1]


def test_a_cliff_a_hundred_times_the_noise_does_not_pass_for_correlation() -> None:
    series = np.where(np.arange(64) < 40, 500.0, 100.0) + _noise(64, 0.0, 1)[0]
    (change,) = change_points(series)
    assert change.at == 40
    assert change.step == pytest.approx(-400, abs=2)
    assert change.low < -400 < change.high
    assert change.p_value <= 0.002


def test_one_outlier_is_no_change() -> None:
    series = 100 + _noise(64, 0.0, 1)[0]
    series[20] = 1000
    assert change_points(series) == ()


def test_a_level_that_repeats_to_the_last_bits_has_no_change() -> None:
    assert change_points([0.1 + 0.2, 0.3] * 20) == ()


def test_an_exact_step_is_found_exactly() -> None:
    (change,) = change_points([5.0] * 25 + [1.0] * 15)
    assert (change.at, change.before, change.after, change.step) == (25, 5.0, 1.0, -4.0)


def test_too_short_a_series_is_refused() -> None:
    with pytest.raises(AssertionError, match="29 points"):
        change_points([1.0] * (FEWEST_POINTS - 1))


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.8])
def test_correlation_is_estimated_to_a_tenth_despite_two_steps(rho: float) -> None:
    estimates = []
    for noise in _noise(1000, rho, 50):
        noise[300:] += 20
        noise[600:] -= 50
        estimates.append(lag1_correlation(noise))
    assert np.median(estimates) == pytest.approx(rho, abs=0.1)


@given(st.floats(0.01, 1e9), st.floats(-1e3, 1e3), st.integers(0, 50))
def test_units_and_zero_points_change_the_step_alone(
    scale: float, offset: float, seed: int
) -> None:
    x = np.where(np.arange(60) < 30, 0.0, 5.0) + _noise(60, 0.0, 1, seed)[0]
    plain, scaled = change_points(x), change_points(scale * (x + offset))
    assert [(c.at, c.p_value) for c in plain] == [(c.at, c.p_value) for c in scaled]
    for one, other in zip(plain, scaled, strict=True):
        assert other.step == pytest.approx(scale * one.step, rel=1e-6)


@given(st.integers(0, 50), st.integers(15, 45))
def test_backwards_the_same_change_is_seen_the_other_way_round(seed: int, at: int) -> None:
    x = np.where(np.arange(60) < at, 0.0, 6.0) + _noise(60, 0.0, 1, seed)[0]
    forth, back = change_points(x), change_points(x[::-1])
    assert [c.at for c in forth] == [60 - c.at for c in reversed(back)]

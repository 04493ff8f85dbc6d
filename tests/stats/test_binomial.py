"""Bounds of a proportion against published values, scipy and the rule of three."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ssdlab.stats.binomial import proportion_bounds, proportion_upper_bound, trials_needed


@pytest.mark.parametrize(("trials", "percent"), [(1, 95), (5, 45.07), (23, 12.21), (60, 4.870)])
def test_the_upper_bound_without_failures_is_as_published(trials: int, percent: float) -> None:
    assert 100 * proportion_upper_bound(0, trials) == pytest.approx(percent, rel=1e-3)


@given(st.integers(1, 500), st.data())
def test_the_bounds_are_those_of_clopper_and_pearson(trials: int, choose: st.DataObject) -> None:
    failures = choose.draw(st.integers(0, trials))
    exact = stats.binomtest(failures, trials).proportion_ci(0.95, "exact")
    assert proportion_bounds(failures, trials) == pytest.approx((exact.low, exact.high), abs=1e-9)
    one_sided = stats.binomtest(failures, trials, alternative="less").proportion_ci(0.95)
    assert proportion_upper_bound(failures, trials) == pytest.approx(one_sided.high, abs=1e-9)


def test_the_rule_of_three_holds_for_many_trials() -> None:
    assert proportion_upper_bound(0, 1000) == pytest.approx(3 / 1000, rel=5e-3)


@given(st.floats(1e-4, 0.9))
def test_trials_needed_is_the_smallest_sufficient_number(proportion: float) -> None:
    trials = trials_needed(proportion)
    assert proportion_upper_bound(0, trials) <= proportion * (1 + 1e-9)
    assert proportion_upper_bound(0, trials - 1) > proportion * (1 - 1e-9)


def test_without_trials_the_upper_bound_is_one() -> None:
    assert proportion_upper_bound(0, 0) == 1

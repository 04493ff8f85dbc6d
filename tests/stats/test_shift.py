"""Ratios with intervals and p-values: known values, error rates, adjustment by Holm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssdlab.stats import shift
from ssdlab.stats.interval import block_length, mean_interval


def test_signed_ranks_of_six_pairs_are_as_in_the_tables() -> None:
    numerator = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    result = shift.from_pairs(numerator, [1.0] * 6)
    assert result is not None
    assert result.p == pytest.approx(2 / 64)  # all pairs have the same sign
    assert (result.low, result.high) == pytest.approx((1.1, 1.6))
    mixed = shift.from_pairs([0.99, *numerator[1:]], [1.0] * 6)
    assert mixed is not None
    assert mixed.p == pytest.approx(4 / 64)  # the smallest rank has the other sign


def test_five_pairs_are_too_few() -> None:
    assert shift.from_pairs([2.0] * 5, [1.0] * 5) is None


def test_the_error_rate_is_five_percent_with_heavy_tailed_noise() -> None:
    generator = np.random.default_rng(5)
    wrong = 0
    for _ in range(1000):
        numerator, denominator = np.exp(0.05 * generator.standard_t(1.5, (2, 20)))
        result = shift.from_pairs(numerator, denominator)
        assert result is not None
        assert (result.p <= 0.05) == (not result.low <= 1 <= result.high)
        wrong += result.p <= 0.05
    assert 30 <= wrong <= 65


def test_a_difference_within_the_margin_is_not_significant() -> None:
    numerator = [1.005 + 0.0001 * at for at in range(20)]
    plain, wide = (shift.from_pairs(numerator, [1.0] * 20, margin) for margin in (1.0, 1.01))
    assert plain is not None
    assert wide is not None
    assert plain.p < 0.001
    assert wide.p == 1.0
    assert plain.low == wide.low


def test_a_single_repeat_is_assumed_to_have_the_variance_of_the_other_side() -> None:
    many = [100.0, 101.0, 99.0, 100.5]
    result = shift.from_repeats([110.0], many)
    assert result is not None
    assert result.low < 1.098 < result.high
    assert result.p < 0.05
    assert shift.from_repeats([110.0], many[:2]) is None


def test_an_additional_error_is_added_in_quadrature() -> None:
    result = shift.from_bounds(1.2, 1.1, 1.2**2 / 1.1, scatter=0.05)
    width = math.hypot(math.log(1.2 / 1.1), 1.959964 * 0.05)
    assert result.low == pytest.approx(1.2 * math.exp(-width))
    assert result.high == pytest.approx(1.2 * math.exp(width))


def test_p_values_are_adjusted_as_in_holm() -> None:
    assert shift.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert shift.holm([]) == []


@pytest.mark.parametrize(("rho", "max_errors"), [(0.0, 0.08), (0.8, 0.12)])
def test_blocks_are_longer_than_the_correlation_of_a_series(rho: float, max_errors: float) -> None:
    generator = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        series, level = np.empty(400), 0.0
        for at, new in enumerate(generator.standard_normal(400)):
            level = rho * level + new
            series[at] = 100 + 3 * level
        low, high = mean_interval(series, block_length(series))
        wrong += not low <= 100 <= high
    assert wrong <= 200 * max_errors

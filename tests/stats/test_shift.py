"""Shifts: their bounds hold the truth as often as they say, and several at once are adjusted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssdlab.stats import shift
from ssdlab.stats.interval import block_length, mean_interval


def test_signed_ranks_of_six_pairs_are_those_of_the_printed_table() -> None:
    numerator = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
    found = shift.from_pairs(numerator, [1.0] * 6)
    assert found is not None
    assert found.p == pytest.approx(2 / 64)  # all lean to one side
    assert (found.low, found.high) == pytest.approx((1.1, 1.6))
    mixed = shift.from_pairs([0.99, *numerator[1:]], [1.0] * 6)
    assert mixed is not None
    assert mixed.p == pytest.approx(4 / 64)  # the smallest rank leans to the other


def test_five_pairs_say_nothing() -> None:
    assert shift.from_pairs([2.0] * 5, [1.0] * 5) is None


def test_equal_pairs_exceed_the_bounds_in_one_case_of_twenty_under_wild_noise() -> None:
    generator = np.random.default_rng(5)
    wrong = 0
    for _ in range(1000):
        numerator, denominator = np.exp(0.05 * generator.standard_t(1.5, (2, 20)))
        found = shift.from_pairs(numerator, denominator)
        assert found is not None
        assert (found.p <= 0.05) == (not found.low <= 1 <= found.high)
        wrong += found.p <= 0.05
    assert 30 <= wrong <= 65


def test_a_difference_within_the_margin_is_none() -> None:
    numerator = [1.005 + 0.0001 * at for at in range(20)]
    plain, wide = (shift.from_pairs(numerator, [1.0] * 20, margin) for margin in (1.0, 1.01))
    assert plain is not None
    assert wide is not None
    assert plain.p < 0.001
    assert wide.p == 1.0
    assert plain.low == wide.low


def test_one_repeat_is_taken_to_scatter_as_the_others_do() -> None:
    many = [100.0, 101.0, 99.0, 100.5]
    found = shift.from_repeats([110.0], many)
    assert found is not None
    assert found.low < 1.098 < found.high
    assert found.p < 0.05
    assert shift.from_repeats([110.0], many[:2]) is None


def test_an_error_from_run_to_run_widens_bounds_by_squares() -> None:
    found = shift.from_bounds(1.2, 1.1, 1.2**2 / 1.1, scatter=0.05)
    width = math.hypot(math.log(1.2 / 1.1), 1.959964 * 0.05)
    assert found.low == pytest.approx(1.2 * math.exp(-width))
    assert found.high == pytest.approx(1.2 * math.exp(width))


def test_several_chances_are_adjusted_as_holm_printed_them() -> None:
    assert shift.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert shift.holm([]) == []


@pytest.mark.parametrize(("memory", "wrong_most"), [(0.0, 0.08), (0.8, 0.12)])
def test_blocks_outlast_the_correlation_of_a_series(memory: float, wrong_most: float) -> None:
    generator = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        series, level = np.empty(400), 0.0
        for at, new in enumerate(generator.standard_normal(400)):
            level = memory * level + new
            series[at] = 100 + 3 * level
        low, high = mean_interval(series, block_length(series))
        wrong += not low <= 100 <= high
    assert wrong <= 200 * wrong_most

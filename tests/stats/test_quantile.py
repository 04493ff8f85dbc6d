"""Quantiles of histograms: nearest rank, number of samples needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdlab.stats.quantile import (
    Percentiles,
    percentiles,
    quantile,
    quantile_supported,
    samples_needed,
)

SAMPLES = st.lists(st.integers(0, 20), min_size=1, max_size=200)


def _histogram(samples: list[int]) -> tuple[list[float], list[int]]:
    values, counts = np.unique(samples, return_counts=True)
    return [float(value) for value in values], [int(count) for count in counts]


@given(SAMPLES, st.floats(0, 1))
def test_a_quantile_is_the_nearest_rank_of_the_samples(samples: list[int], q: float) -> None:
    expected = np.quantile(samples, q, method="inverted_cdf")
    assert quantile(*_histogram(samples), q) == expected


@given(SAMPLES, st.integers(2, 1000))
def test_multiplying_all_counts_changes_no_quantile(samples: list[int], times: int) -> None:
    values, counts = _histogram(samples)
    for q in (0.0, 0.1, 0.5, 0.99, 1.0):
        repeated = quantile(values, [times * count for count in counts], q)
        assert repeated == quantile(values, counts, q)


def test_empty_buckets_are_never_a_quantile() -> None:
    assert quantile([1, 2, 3, 4], [0, 5, 0, 5], 0.0) == 2
    assert quantile([1, 2, 3, 4], [0, 5, 0, 5], 0.5) == 2
    assert quantile([1, 2, 3, 4], [0, 5, 0, 5], 0.51) == 4


@pytest.mark.parametrize(("q", "count"), [(0.99, 1100), (0.999, 11_000), (0.9999, 110_000)])
def test_a_high_percentile_needs_eleven_samples_above_it(q: float, count: int) -> None:
    assert samples_needed(q) == count
    assert quantile_supported(count, q)
    assert not quantile_supported(count - 1, q)


@given(st.decimals("0.0001", "0.9999", places=4))
def test_samples_needed_is_the_smallest_sufficient_count(q: float) -> None:
    needed = samples_needed(float(q))
    assert quantile_supported(needed, float(q))
    assert not quantile_supported(needed - 1, float(q))


@given(st.integers(1, 10**6))
def test_low_and_high_percentiles_need_about_the_same_number_of_samples(count: int) -> None:
    for q in ("0.001", "0.01", "0.25"):
        low, high = quantile_supported(count, float(q)), quantile_supported(count + 2, 1 - float(q))
        assert high >= low


def test_one_sample_is_enough_for_the_extremes_only() -> None:
    assert not quantile_supported(0, 0.5)
    assert quantile_supported(1, 1.0)


def test_percentiles_are_the_nearest_ranks_to_four_nines() -> None:
    latencies = range(1, 110_001)
    assert percentiles(latencies, [1] * 110_000) == (55_000, 99_000, 108_900, 109_890, 109_989)


@pytest.mark.parametrize(
    ("count", "supported"),
    [(0, 0), (21, 0), (22, 0), (23, 1), (109, 1), (110, 2), (1100, 3), (11_000, 4), (109_999, 4)],
)
def test_a_percentile_with_too_few_samples_is_none(count: int, supported: int) -> None:
    values, counts = ([1.0, 5.0], [count - 1, 1]) if count else ([], [])
    is_present = [value is not None for value in percentiles(values, counts)]
    assert is_present == [True] * supported + [False] * (5 - supported)


@given(SAMPLES, st.integers(1, 10**6))
def test_percentiles_ascend_and_a_larger_sample_has_no_fewer(
    samples: list[int], times: int
) -> None:
    values, counts = _histogram(samples)
    few, many = percentiles(values, counts), percentiles(values, [times * n for n in counts])
    present = [value for value in many if value is not None]
    assert present == sorted(present)
    assert isinstance(few, Percentiles)
    assert all(one == other for one, other in zip(few, many, strict=True) if one is not None)

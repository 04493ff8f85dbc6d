"""Rounds from intervals of any length, and the values of a verdict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdlab.stats.steady import Progress, Rule, SteadyMonitor, evaluate, first_steady, rounds_of

INTERVALS = st.lists(
    st.tuples(st.floats(0.01, 100), st.integers(0, 10**6)), min_size=1, max_size=60
)
# SNIA PTS-E example run: rounds of one minute each, 4 KiB random writes, "cloudharmony/
# block-storage sample-report.pdf": mean 11726.8 IOPS, excursion 300, line -6.4 R + 11746.
PUBLISHED_MEAN, PUBLISHED_SLOPE = 11726.8, -6.4


@given(INTERVALS, st.integers(1000, 10**6))
def test_rounds_contain_the_time_of_their_bytes(
    intervals: list[tuple[float, int]], round_bytes: int
) -> None:
    seconds, written = zip(*intervals, strict=True)
    rounds = rounds_of(Progress(seconds, written), round_bytes)
    assert len(rounds) == sum(written) // round_bytes
    assert (rounds >= 0).all()
    assert rounds.sum() <= sum(seconds) * (1 + 1e-9)


@given(INTERVALS, st.integers(2, 5))
def test_splitting_intervals_changes_no_round(
    intervals: list[tuple[float, int]], pieces: int
) -> None:
    seconds, written = (np.array(column, float) for column in zip(*intervals, strict=True))
    whole = rounds_of(Progress(seconds, written), 10**5)
    finer = rounds_of(
        Progress(np.repeat(seconds / pieces, pieces), np.repeat(written / pieces, pieces)), 10**5
    )
    shared = min(len(whole), len(finer))  # rounding may drop a last round that is just complete
    # A stall at a boundary may count to either round.
    assert finer[:shared].sum() <= whole.sum() + seconds[written == 0].sum() + 1e-6
    if not (written == 0).any():
        assert finer[:shared] == pytest.approx(whole[:shared], rel=1e-6)


def test_an_interval_across_a_round_boundary_is_split_by_bytes() -> None:
    rounds = rounds_of(Progress([10, 20, 10], [50, 100, 50]), 100)
    assert rounds.tolist() == [20, 20]


def test_a_stall_belongs_to_the_round_in_which_it_happens() -> None:
    rounds = rounds_of(Progress([1, 1, 30, 1, 1], [50, 25, 0, 25, 100]), 100)
    assert rounds.tolist() == [33, 1]


def test_with_fewer_than_five_rounds_the_verdict_reports_their_number() -> None:
    verdict = evaluate(Progress([1.0] * 4, [10] * 4), Rule(10, 0))
    assert str(verdict) == "not attained: 4 rounds were measured, 5 are needed"
    assert (verdict.mean, verdict.low, verdict.cv, verdict.from_round) == (None,) * 4
    assert not SteadyMonitor(Rule(10, 0)).verdict().steady


def test_the_floor_condition_reports_its_numbers() -> None:
    verdict = evaluate(Progress([1.0] * 60, [10**9] * 60), Rule(10 * 10**9, 20 * 10**9))
    assert str(verdict) == (
        "not attained: the last 5 rounds begin after 10 GB, but must begin after 20 GB"
    )


def test_too_few_intervals_violate_the_resolution_condition() -> None:
    verdict = evaluate(Progress([1.0] * 10, [10] * 10), Rule(10, 0))
    assert [failure.code for failure in verdict.failures] == ["resolution"]


@pytest.mark.parametrize(
    ("rates", "codes"),
    [
        ([100.0, 100, 100, 100, 100], set()),
        ([100.0, 92, 108, 92, 108], set()),
        ([100.0, 88, 112, 88, 112], {"excursion"}),
        ([104.5, 102, 100, 98, 95.5], set()),
        ([106.0, 103, 100, 97, 94], {"slope"}),
    ],
)
def test_excursion_and_slope_have_the_limits_of_snia(rates: list[float], codes: set[str]) -> None:
    """Excursion at most 20 % of the mean, slope at most 10 %; earlier rounds are at 100."""
    rounds = np.array([100.0] * 20 + rates)
    verdict = evaluate(Progress(np.repeat(100 / rounds / 8, 8), [12.5] * 8 * 25), Rule(100, 0))
    assert {failure.code for failure in verdict.failures} & {"excursion", "slope"} == codes


def test_a_published_window_is_steady() -> None:
    rates = PUBLISHED_MEAN + PUBLISHED_SLOPE * np.array([-2.0, -1, 0, 1, 2])
    verdict = evaluate(Progress(np.repeat(100 / rates / 8, 8), [12.5] * 40), Rule(100, 0))
    assert verdict.steady
    assert verdict.mean == pytest.approx(PUBLISHED_MEAN, rel=1e-5)


@given(st.integers(1, 10**6), st.integers(0, 20))
def test_the_verdict_does_not_depend_on_the_unit(scale: int, seed: int) -> None:
    seconds = np.random.default_rng(seed).uniform(0.8, 1.2, 200)
    one = evaluate(Progress(seconds, np.full(200, 8.0)), Rule(64, 128))
    other = evaluate(Progress(seconds, np.full(200, 8.0 * scale)), Rule(64 * scale, 128 * scale))
    assert (one.steady, one.rounds, one.from_round) == (
        other.steady,
        other.rounds,
        other.from_round,
    )
    assert other.mean == pytest.approx(scale * (one.mean or 0))


def test_the_monitor_gives_the_same_verdict_as_the_complete_series() -> None:
    seconds = np.random.default_rng(1).uniform(0.9, 1.1, 300)
    verdict = first_steady(seconds, [8.0] * 300, Rule(64, 640))
    until = int(np.ceil(verdict.rounds * 64 / 8))
    assert verdict == evaluate(Progress(seconds[:until], [8.0] * until), Rule(64, 640))
    assert verdict.from_round == 10


def test_a_round_is_a_fifth_of_the_scope_and_the_floor_twice_scope_spare_and_cache() -> None:
    assert Rule.of_drive(scope=1000, spare=70, cache=30) == Rule(200, 2200)


@pytest.mark.parametrize(
    ("seconds", "written"), [([1.0], [1, 2]), ([0.0], [1]), ([1.0], [-1]), ([[1.0]], [[1.0]])]
)
def test_invalid_columns_raise_an_assertion(seconds: list[float], written: list[float]) -> None:
    with pytest.raises(AssertionError):
        Progress(seconds, written)

"""Intervals cover numbers that limit a rate on one side only, and other optima are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from ssdlab import profiles
from ssdlab.analysis.cells import Cell
from ssdlab.fit import intervals
from ssdlab.fit.intervals import POOR_FIT, estimates, measured_reach
from ssdlab.fit.measurement import CellKey
from ssdlab.fit.objective import Effort, Objective
from ssdlab.fit.parameters import DIES, DIES_MAX, SearchSpace
from ssdlab.fit.search import search
from ssdlab.fit.solving import Floats, Solution, Task
from ssdlab.fit.variables import Choice, Dies, Scale
from ssdlab.profiles.toml_edit import set_values

START = "toshiba-xg5"
LINK = Scale("link.bandwidth", 0.1, 10.0, 1.0)
CHANNEL = Scale("flash.channel_bandwidth", 0.1, 10.0, 1.0)
SIGMA = 0.04


def _solution(at: float, sigma: float, excess: float = 1.0) -> Solution:
    jacobian = np.array([[1 / sigma]])
    return Solution((), np.array([at]), np.array([sigma]), 0.0, excess, jacobian)


def _reach(
    residual: Callable[[float], float],
    best: Solution,
    monkeypatch: pytest.MonkeyPatch,
    prior_sigma: float = np.inf,
) -> Solution:
    def residuals_of(_task: Task) -> Callable[[Floats], Floats]:
        return lambda at: np.array([residual(float(at[0])), at[0] / prior_sigma])

    monkeypatch.setattr(intervals, "residuals_of", residuals_of)
    space = SearchSpace((LINK,), ())
    return measured_reach(Task("", (), space, best, 0.0, 1, Effort.FINE), best)


def test_a_limit_that_no_longer_limits_has_no_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    best = _solution(0.0, 0.05)
    reached = _reach(lambda at: min(at, 0.0) / 0.05, best, monkeypatch)
    [link] = estimates(SearchSpace((LINK,), ()), [reached])
    assert link.high == pytest.approx(10.0)
    assert link.low == pytest.approx(np.exp(-(3.84**0.5) * 0.05))
    assert not link.determined


@pytest.mark.parametrize(
    ("reach", "bounds"),
    [
        ((9.0, 9.0), (0.3 * 0.5, 1.25 * 4.0)),
        ((0.1, 9.0), (0.905, 5.0)),
        ((9.0, 0.1), (0.15, 1.105)),
    ],
)
def test_a_ratio_at_its_limit_may_go_as_far_as_the_number_that_it_multiplies(
    reach: tuple[float, float], bounds: tuple[float, float]
) -> None:
    """A link may be 0.5 to 4 times as fast as it seems, and so may its writes."""
    ratio = Scale("link.write_bandwidth", 0.3, 1.25, 0.3, of=LINK.key)
    of_both = np.array([[np.log(2), reach[0]], [np.log(4), reach[1]]])
    best = Solution((), np.log([2.0, 1.0]), np.ones(2), 0.0, 1.0, np.eye(2), reach=of_both)
    link, writes = estimates(SearchSpace((LINK, ratio), ()), [best])
    assert (link.low, link.high) == pytest.approx((1.0, 8.0))
    assert (writes.low, writes.high) == pytest.approx(bounds, rel=1e-3)
    assert not writes.determined
    [alone] = estimates(
        SearchSpace((ratio,), ()), [replace(best, log_factors=np.zeros(1), reach=of_both[:, 1:])]
    )
    assert alone.high <= 1.25


@pytest.mark.parametrize("excess", [1.0, 2 * POOR_FIT])
def test_a_ratio_within_its_limits_may_be_determined(excess: float) -> None:
    ratio = Scale("link.write_bandwidth", 0.3, 1.25, 0.3, of=LINK.key)
    of_both = np.array([[np.log(2), 0.1], [np.log(4), 0.1]])
    best = Solution((), np.zeros(2), np.ones(2), 0.0, excess, np.eye(2), reach=of_both)
    _, writes = estimates(SearchSpace((LINK, ratio), ()), [best])
    assert (writes.low, writes.high) == pytest.approx((np.exp(-0.1), np.exp(0.1)))
    assert writes.determined is (excess == 1.0)


@pytest.mark.parametrize(("to", "factor"), [(1.5, 2.0), (2.5, 4.0), (np.inf, 4.0)])
def test_a_number_with_several_values_that_fit_has_all_in_its_interval(
    to: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Factors of 2, 4 ... fit as well, as long as their logarithm to base 2 is below `to`."""

    def residual(at: float) -> float:
        doublings = at / np.log(2)
        return 5 * float(np.sin(np.pi * doublings)) if abs(doublings) < to else 5.0

    reached = _reach(residual, _solution(0.0, 0.05), monkeypatch)
    [link] = estimates(SearchSpace((LINK,), ()), [reached])
    assert link.low == pytest.approx(1 / factor)
    assert link.high == pytest.approx(factor)


def test_a_number_that_no_result_depends_on_may_be_far_from_the_start_profiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached = _reach(lambda _at: 0.0, _solution(0.0, 1.0), monkeypatch, prior_sigma=1.0)
    [link] = estimates(SearchSpace((LINK,), ()), [reached])
    assert (link.low, link.high) == (pytest.approx(0.1), pytest.approx(10.0))


@pytest.mark.parametrize(
    ("more", "excess", "high"), [(3.8, 1.0, "1 ms"), (3.9, 1.0, None), (5.8, 2.0, "1 ms")]
)
def test_a_value_that_only_its_prior_makes_less_likely_is_in_the_interval(
    more: float, excess: float, high: str | None
) -> None:
    """The results alone must exclude it: by 3.84, or more if no candidate fits them well."""
    space = SearchSpace((LINK,), (Choice("flash.delay_limit", (None, "1 ms"), (0.25, 4.0)),))
    costs = ((None, 10.0 + 0.25), ("1 ms", 10.0 + more + 4.0))
    one, other = (
        Solution((value,), np.zeros(1), np.full(1, 0.01), cost, excess) for value, cost in costs
    )
    limit, link = estimates(space, [one, replace(other, log_factors=np.ones(1))])
    assert (limit.value, limit.low, limit.high) == (None, None, high)
    assert limit.determined == (high is None)
    assert link.determined


def test_a_better_point_on_the_way_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    better = _reach(lambda at: (at - 0.2) / 0.05, _solution(0.0, 0.05), monkeypatch)
    assert better.reach is None
    assert better.log_factors[0] == pytest.approx(0.196, abs=0.001)
    assert better.cost < 0.1


def test_nothing_is_determined_if_no_twin_explains_the_results() -> None:
    space = SearchSpace((LINK,), ())
    for excess, determined in ((1.0, True), (1.1 * POOR_FIT, False)):
        [link] = estimates(space, [_solution(0.0, 0.01, excess)])
        assert link.determined is determined


def _rates(text: str, _effort: Effort) -> Mapping[CellKey, float]:
    """Long reads are limited by link or channels; short ones show a little of both."""
    link, channel = LINK.mean(text), CHANNEL.mean(text)
    return {
        ((1,), "read_ms"): min(link, 4 * channel),
        ((2,), "read_ms"): 10e-6 + 4096 / link,
        ((3,), "read_ms"): 100e-6 + 4096 / channel,
    }


def test_channels_that_limit_long_reads_are_found_if_the_link_seemed_to() -> None:
    rates = {"link.bandwidth": "3000 MB/s", "flash.channel_bandwidth": "250 MB/s"}
    truth = set_values(profiles.load(START), {"flash.channels": 4, **rates})
    cells = tuple(Cell(key[0], key[1], value) for key, value in _rates(truth, Effort.FINE).items())
    objective = Objective("suite", cells, _rates, np.full(3, SIGMA))
    rates = {"link.bandwidth": "1000 MB/s", "flash.channel_bandwidth": "900 MB/s"}
    start = set_values(truth, rates)
    space = SearchSpace((LINK, CHANNEL), (Choice("flash.channels", (4,), (0.0,)),))
    best = search(start, [objective], space, lambda _done, _total: None)[0]
    link, channel = np.exp(best.log_factors) * [1000, 900]
    assert link == pytest.approx(3000, rel=0.3)
    assert channel == pytest.approx(250, rel=0.05)


@pytest.mark.parametrize(
    ("pairs", "excess", "expected"),
    [
        ([(2, 4)], 1.0, (8, 5.6, 11.4)),
        ([(2, 4), (8, 1)], 1.0, (8, 5.6, 11.4)),
        ([(2, 4), (4, 4)], 1.0, (8, 5.6, 22.8)),
        ([(2, 4)], POOR_FIT + 1, (8, 1, DIES_MAX)),
    ],
)
def test_all_dies_have_the_bounds_of_the_combinations_that_fit(
    pairs: list[tuple[int, int]], excess: float, expected: tuple[float, float, float]
) -> None:
    choices = (
        Choice("flash.channels", (2, 4, 8), (0.0,) * 3),
        Dies("flash.dies_per_channel", (1, 2, 4, 8), (0.0,) * 4),
    )
    empty = np.empty(0)
    solutions = [Solution(pair, empty, empty, 0.0, excess) for pair in pairs]
    [dies] = [each for each in estimates(SearchSpace((), choices), solutions) if each.key == DIES]
    assert (dies.value, dies.low, dies.high) == pytest.approx(expected)
    assert not dies.determined

"""Main effects and Pareto-optimal points, on rows with known answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ssdlab.sweep.analysis import _share, effects, summarise
from ssdlab.sweep.report import SweepPage

KEYS = {"ftl.spare": True, "ftl.victim": False, "workload.skew": True}
Formula = Callable[[float, str, float], float]


def _rows(formula: Formula, noise: float = 0.0) -> list[dict[str, Any]]:
    """A grid of 4 x 2 x 3 points with two repeats."""
    generator = np.random.default_rng(1)
    points = [(a, b, c) for a in (1.0, 2.0, 3.0, 4.0) for b in "gf" for c in (0.0, 1.0, 2.0)]
    rows = []
    for point, (spare, victim, skew) in enumerate(points):
        for repeat in range(2):
            value = formula(spare, victim, skew) * float(np.exp(generator.normal(0, noise)))
            names = ("write_iops", "latency_us_p50", "latency_us_p99", "waf", "cost")
            rows.append(
                {
                    **dict.fromkeys(names, 1.0),
                    "read_mib_per_s": value,
                    "point": point,
                    "repeat": repeat,
                    "status": "done",
                    "ftl.spare": spare,
                    "ftl.victim": victim,
                    "workload.skew": skew,
                }
            )
    return rows


def test_a_parameter_that_alone_determines_a_result_explains_all_variance() -> None:
    found = effects(_rows(lambda spare, _v, _s: spare**2, 0.01), KEYS, ["read_mib_per_s", "waf"])
    shares = {each.key: each for each in found if each.number == "read_mib_per_s"}
    assert shares["ftl.spare"].share > 0.99
    assert shares["ftl.spare"].low > 0.98
    assert shares["ftl.victim"].share < 0.05
    assert [value for value, _ in shares["ftl.spare"].levels] == [1.0, 2.0, 3.0, 4.0]
    assert not [each for each in found if each.number == "waf"]  # constant


def test_shares_of_an_additive_formula_are_its_variances_and_interaction_is_in_none() -> None:
    weights = np.array([np.var([1, 2, 3, 4]), np.var([0, 1]) * 4, np.var([0, 1, 2])])
    rows = _rows(lambda spare, victim, skew: float(np.exp(spare + 2 * (victim == "g") + skew)))
    found = [each.share for each in effects(rows, KEYS, ["read_mib_per_s"])]
    assert found == pytest.approx(weights / weights.sum(), abs=0.04)
    crossed = _rows(lambda _s, victim, skew: float(np.exp((skew - 1) * (victim == "g") * 2)))
    by_key = {each.key: each.share for each in effects(crossed, KEYS, ["read_mib_per_s"])}
    assert sum(by_key.values()) < 0.6


def test_noise_has_no_effect() -> None:
    found = effects(_rows(lambda *_: 1.0, 0.1), KEYS, ["read_mib_per_s"])
    assert all(each.share < 0.15 for each in found)
    assert all(each.low < 0.05 for each in found)


def test_shares_are_corrected_for_chance() -> None:
    generator = np.random.default_rng(2)
    level = np.arange(48) % 4
    shares = [_share(generator.standard_normal(48), level) for _ in range(200)]
    assert np.mean(shares) < 0.035  # uncorrected: 3 / 47


def test_points_are_dominated_only_by_better_ones_under_the_same_load() -> None:
    rows = _rows(lambda spare, victim, skew: spare + (victim == "g") + 10 * skew)
    summary = summarise("s", "p", KEYS, 48, rows)
    best = [point.values for point in summary.points if point.best]
    assert best == [
        {"ftl.spare": 4.0, "ftl.victim": "g", "workload.skew": skew} for skew in (0.0, 1.0, 2.0)
    ]


def test_failed_runs_are_counted_and_do_not_affect_the_others() -> None:
    rows = _rows(lambda spare, *_: spare)
    rows[0] = {**rows[0], "status": "failed", "reason": "its worker was killed"}
    rows[0]["read_mib_per_s"] = None
    summary = summarise("s", "p", KEYS, 48, rows)
    assert (summary.done, len(summary.failed), summary.wanted) == (47, 1, 48)
    assert summary.points[0].runs == 1
    assert "47 of 48 runs done, 1 failed" in summary.verdict
    assert "no results yet" in summarise("s", "p", KEYS, 50, rows[:1]).verdict


def test_an_unfinished_sweep_says_so_and_explains_nothing() -> None:
    rows = _rows(lambda spare, *_: spare)
    assert "ftl.spare explains" in summarise("s", "p", KEYS, 48, rows).verdict
    unfinished = summarise("s", "p", KEYS, 200, rows)
    assert unfinished.verdict.startswith("48 of 200 runs done. So far, ")
    assert "explains 9" not in unfinished.verdict
    assert unfinished.verdict.endswith("the same command runs them.")
    titles = [title for title, _ in SweepPage(unfinished).tables]
    assert not [title for title in titles if "Effect" in title]


@pytest.mark.parametrize("seed", range(20))
def test_the_verdict_names_no_effect_that_the_table_says_may_be_zero(seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = _rows(lambda *_: float(np.exp(generator.normal())))[:18]
    summary = summarise("s", "p", KEYS, 18, rows)
    named = [key for key in KEYS if f"{key} explains" in summary.verdict]
    zero = [each.key for each in summary.effects if each.may_be_zero]
    assert not set(named) & set(zero)

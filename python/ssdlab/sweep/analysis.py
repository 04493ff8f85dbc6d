"""Results of a sweep: its points, which of them are Pareto-optimal, and the main effects.

A main effect is the part of a result's variance that a parameter explains (Sobol's first order):
the variance of the means at the parameter's levels, divided by the variance over all runs (I. M.
Sobol, Mathematical Modelling and Computational Experiments 1993), less the part expected by chance
(epsilon squared: T. L. Kelley, Proc. Nat. Acad. Sciences 1935). Logarithms are used because effects
on rates multiply. A parameter with many values is divided into five bins of equal count. The shares
add up to less than 100 %: interactions between parameters, and chance, explain the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LEVELS_MAX: Final = 12
"""A numeric parameter with more distinct values than this is divided into bins."""
BINS: Final = 5
RESAMPLES: Final = 400
RUNS_MIN: Final = 6

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Effect:
    """A parameter's share of a result's variance, with its 95 % interval.

    `levels` pairs each value of the parameter, or the median of each bin, with the geometric mean
    of the result at that level.
    """

    number: str
    key: str
    share: float
    low: float
    high: float
    levels: tuple[tuple[Any, float], ...]

    @property
    def may_be_zero(self) -> bool:
        """Whether the interval of the share includes zero."""
        return self.low < SHARE_ZERO


def effects(
    rows: Sequence[Mapping[str, Any]], keys: Mapping[str, bool], numbers: Sequence[str]
) -> list[Effect]:
    """The effect of each parameter on each result, from the rows of finished runs.

    `keys` says whether each parameter is numeric. A result is skipped if it is constant, or missing
    or not positive in some row.
    """
    if len(rows) < RUNS_MIN:
        return []
    points = np.array([row["point"] for row in rows])
    found = []
    for number in numbers:
        values = [row[number] for row in rows]
        if not all(value is not None and value > 0 for value in values):
            continue
        y = np.log(np.asarray(values, dtype=np.float64))
        if y.std() < 1e-9:
            continue
        for key, numeric in keys.items():
            labels, level = _levels([row[key] for row in rows], numeric=numeric)
            if len(labels) > 1:
                share, (low, high) = _share(y, level), _interval(y, level, points)
                means = [float(np.exp(y[level == at].mean())) for at in range(len(labels))]
                bounds = min(low, share), max(high, share)
                pairs = tuple(zip(labels, means, strict=True))
                found.append(Effect(number, key, share, *bounds, pairs))
    return found


def _levels(values: Sequence[Any], *, numeric: bool) -> tuple[list[Any], Indices]:
    """The levels' labels, and the index of each value's level."""
    distinct = sorted(set(values))
    if not numeric or len(distinct) <= LEVELS_MAX:
        return distinct, np.array([distinct.index(value) for value in values])
    x = np.asarray(values, dtype=np.float64)
    level = np.argsort(np.argsort(x, kind="stable"), kind="stable") * BINS // len(x)
    return [float(np.median(x[level == at])) for at in range(BINS)], level


def _share(y: Floats, level: Indices) -> float:
    """Epsilon squared: the share of the variance of `y` that the levels explain."""
    total = float(np.sum((y - y.mean()) ** 2))
    counts = np.bincount(level)
    means = np.bincount(level, y) / np.maximum(counts, 1)
    within = float(np.sum((y - means[level]) ** 2))
    groups = int(np.count_nonzero(counts))
    if total <= 0 or len(y) <= groups:
        return 0.0
    chance = (groups - 1) * within / (len(y) - groups)
    return max(0.0, (total - within - chance) / total)


def _interval(y: Floats, level: Indices, points: Indices) -> tuple[float, float]:
    """95 % bootstrap interval: resamples points with all their repeats, from a fixed seed."""
    generator = np.random.default_rng(0)
    distinct = np.unique(points)
    members = [np.flatnonzero(points == point) for point in distinct]
    shares = []
    for _ in range(RESAMPLES):
        chosen = generator.integers(len(distinct), size=len(distinct))
        rows = np.concatenate([members[at] for at in chosen])
        shares.append(_share(y[rows], level[rows]))
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)


GOALS: Final = {"read_mib_per_s": 1, "waf": -1, "latency_us_p99": -1, "cost": -1}
"""The results to maximise (1) or to minimise (-1)."""
_WORDS: Final = {
    "read_mib_per_s": "the read speed",
    "waf": "the write amplification",
    "latency_us_p99": "the p99 latency",
}
NUMBERS: Final = (
    *("read_mib_per_s", "write_iops", "waf", "latency_us_p50", "latency_us_p99", "cost"),
)
MARGIN: Final = 0.01
"""Relative differences up to this one count as none."""
LOAD: Final = "workload."
SHARE_MIN: Final = 0.1
"""The smallest share of the variance that the verdict mentions."""
SHARE_ZERO: Final = 0.01
"""An interval of a share that begins below this includes zero."""


@dataclass(frozen=True)
class Point:
    """The parameters of a point in the sweep, and the mean results of its repeats.

    `best` means Pareto-optimal among the points with the same load.
    """

    number: int
    values: dict[str, Any]
    means: dict[str, float]
    runs: int
    best: bool = False

    @property
    def load(self) -> dict[str, Any]:
        """The varied parameters of the load."""
        return {key: value for key, value in self.values.items() if key.startswith(LOAD)}


@dataclass(frozen=True)
class Summary:
    """The results of a sweep.

    `keys` says for each varied parameter whether it is numeric. `wanted` is the number of planned
    runs, `failed` has the rows of failed runs.
    """

    name: str
    profile: str
    keys: Mapping[str, bool]
    wanted: int
    done: int
    failed: tuple[dict[str, Any], ...]
    points: tuple[Point, ...]
    effects: tuple[Effect, ...]

    @property
    def is_complete(self) -> bool:
        """Whether all planned runs have ended."""
        return self.done + len(self.failed) >= self.wanted

    @property
    def varying(self) -> list[str]:
        """The results that differ between points."""
        return [name for name in NUMBERS if self._varies(name)]

    def _varies(self, name: str) -> bool:
        values = [point.means[name] for point in self.points if name in point.means]
        return bool(values) and _gain(max(values), min(values)) > MARGIN

    @property
    def verdict(self) -> str:
        """The results in one sentence or several."""
        progress = f"{self.done} of {self.wanted} runs done"
        if self.failed:
            progress += f", {len(self.failed)} failed"
        best = sum(point.best for point in self.points)
        if not self.points:
            return f"{progress}: no results yet."
        optimal = f"{best} of {len(self.points)} points are Pareto-optimal under their load"
        if not self.is_complete:
            return (
                f"{progress}. So far, {optimal}. The runs left may change this, and what explains "
                "the results is not judged before all are done; the same command runs them."
            )
        strongest = [_strongest(self.effects, number) for number in GOALS if number != "cost"]
        return f"{progress}. {'; '.join([optimal, *filter(None, strongest)])}."


def summarise(
    name: str,
    profile: str,
    keys: Mapping[str, bool],
    wanted: int,
    rows: Sequence[Mapping[str, Any]],
) -> Summary:
    """The summary of a sweep of `wanted` runs, from the rows of those that have ended."""
    done = [row for row in rows if row["status"] == "done"]
    failed = tuple(dict(row) for row in rows if row["status"] == "failed")
    numbers = [number for number in NUMBERS if number != "cost"]
    found = tuple(effects(done, keys, numbers))
    return Summary(name, profile, keys, wanted, len(done), failed, _points(done, keys), found)


def _points(rows: Sequence[Mapping[str, Any]], keys: Mapping[str, bool]) -> tuple[Point, ...]:
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["point"], []).append(row)
    points = []
    for number, repeats in sorted(groups.items()):
        columns = {name: [row[name] for row in repeats] for name in NUMBERS}
        means = {name: fmean(column) for name, column in columns.items() if None not in column}
        values = {key: repeats[0][key] for key in keys}
        points.append(Point(number, values, means, len(repeats)))
    return tuple(replace(point, best=not _is_dominated(point, points)) for point in points)


def _is_dominated(point: Point, others: Sequence[Point]) -> bool:
    """Whether another point with the same load is as good in all goals and better in one.

    Points with different loads are not compared, because the user does not choose the load.
    """
    if any(goal not in point.means for goal in GOALS):
        return True
    for other in others:
        if any(goal not in other.means for goal in GOALS) or other.load != point.load:
            continue
        gains = [_gain(other.means[goal], point.means[goal]) * GOALS[goal] for goal in GOALS]
        if max(gains) > MARGIN and min(gains) >= -MARGIN:
            return True
    return False


def _gain(value: float, reference: float) -> float:
    """The difference between two values, relative to the larger one."""
    largest = max(abs(value), abs(reference))
    return (value - reference) / largest if largest else 0.0


def _strongest(found: Sequence[Effect], number: str) -> str:
    """The parameter with the largest share of a result's variance.

    "" if all shares are small, or may be zero.
    """
    candidates = [
        effect
        for effect in found
        if effect.number == number and effect.share >= SHARE_MIN and not effect.may_be_zero
    ]
    if not candidates:
        return ""
    most = max(candidates, key=lambda effect: effect.share)
    return f"{most.key} explains {most.share:.0%} of the variance of {_WORDS[number]}"

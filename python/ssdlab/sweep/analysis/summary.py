"""`Summary`: a sweep's points, which of them are Pareto-optimal, and the main effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from ssdlab.sweep.analysis.sensitivity import Effect, effects

GOALS: Final = {"read_mib_per_s": 1, "waf": -1, "latency_us_p99": -1, "cost": -1}
"""The results to maximise (1) or minimise (-1)."""
NUMBERS: Final = (
    *("read_mib_per_s", "write_iops", "waf", "latency_us_p50", "latency_us_p99", "cost"),
)
LOAD: Final = "workload."
SHARE_MIN: Final = 0.1
"""The verdict mentions effects from this share on."""


@dataclass(frozen=True)
class Point:
    """A point's parameters and the means of its repeats.

    `best`: Pareto-optimal among the points with the same load.
    """

    number: int
    values: dict[str, Any]
    means: dict[str, float]
    runs: int
    best: bool = False


@dataclass(frozen=True)
class Summary:
    """The results of a sweep.

    `keys` are the varied parameters (True: numeric), `wanted` is the number of runs, `failed` the
    rows of failed ones.
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
    def verdict(self) -> str:
        """One sentence, or several."""
        progress = f"{self.done} of {self.wanted} runs done"
        if self.failed:
            progress += f", {len(self.failed)} failed"
        best = sum(point.best for point in self.points)
        if not self.points:
            return f"{progress}: no results yet."
        strongest = [_strongest(self.effects, number) for number in GOALS if number != "cost"]
        optimal = f"{best} of {len(self.points)} points are Pareto-optimal under their load"
        return f"{progress}. {'; '.join([optimal, *filter(None, strongest)])}."


def summarise(
    name: str,
    profile: str,
    keys: Mapping[str, bool],
    wanted: int,
    rows: Sequence[Mapping[str, Any]],
) -> Summary:
    """The summary of a sweep with `wanted` runs, from the rows of those that ended."""
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

    The load is not a choice, so points with different loads are not compared.
    """
    if any(goal not in point.means for goal in GOALS):
        return True
    own = [sign * point.means[goal] for goal, sign in GOALS.items()]
    for other in others:
        if any(goal not in other.means for goal in GOALS) or _load(other) != _load(point):
            continue
        theirs = [sign * other.means[goal] for goal, sign in GOALS.items()]
        if theirs != own and all(a >= b for a, b in zip(theirs, own, strict=True)):
            return True
    return False


def _load(point: Point) -> dict[str, Any]:
    return {key: value for key, value in point.values.items() if key.startswith(LOAD)}


def _strongest(found: Sequence[Effect], number: str) -> str:
    """The parameter with the largest share of a result's variance; "" if all are small."""
    candidates = [
        effect for effect in found if effect.number == number and effect.share >= SHARE_MIN
    ]
    if not candidates:
        return ""
    most = max(candidates, key=lambda effect: effect.share)
    return f"{most.key} explains {most.share:.0%} of the variance of {number}"

"""`Summary`: what a sweep found: its points, which of them none beats, and what decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from ssdlab.sweep.analysis.sensitivity import Effect, effects

GOALS: Final = {"read_mib_per_s": 1, "waf": -1, "latency_us_p99": -1, "cost": -1}
"""What is wanted: more (1) or less (-1)."""
NUMBERS: Final = (
    *("read_mib_per_s", "write_iops", "waf", "latency_us_p50", "latency_us_p99", "cost"),
)
LOAD: Final = "workload."
_DECIDES: Final = 0.1


@dataclass(frozen=True)
class Point:
    """A point's values and the means of its repeats; `best`: none under the same load beats it."""

    number: int
    values: dict[str, Any]
    means: dict[str, float]
    runs: int
    best: bool = False


@dataclass(frozen=True)
class Summary:
    """A sweep: how many runs were wanted, the rows of those that failed, points, effects."""

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
        """In one sentence."""
        ended = f"{self.done} of {self.wanted} runs done"
        if self.failed:
            ended += f", {len(self.failed)} failed"
        best = sum(point.best for point in self.points)
        if not self.points:
            return f"{ended}: nothing to tell yet."
        deciding = [_most(self.effects, number) for number in GOALS if number != "cost"]
        told = "; ".join(each for each in deciding if each)
        beaten = f"{best} of {len(self.points)} points are beaten by none under their load"
        return f"{ended}. {beaten}{'; ' if told else ''}{told}."


def summary(
    of: tuple[str, str], keys: Mapping[str, bool], wanted: int, rows: Sequence[Mapping[str, Any]]
) -> Summary:
    """Of a sweep's (name, profile), what varied, how many runs it has, and the rows of them."""
    done = [row for row in rows if row["status"] == "done"]
    failed = tuple(dict(row) for row in rows if row["status"] == "failed")
    points = _points(done, keys)
    found = tuple(effects(done, keys, [name for name in NUMBERS if name != "cost"]))
    return Summary(*of, keys, wanted, len(done), failed, points, found)


def _points(rows: Sequence[Mapping[str, Any]], keys: Mapping[str, bool]) -> tuple[Point, ...]:
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["point"], []).append(row)
    found = []
    for number, members in sorted(groups.items()):
        listed = {name: [row[name] for row in members] for name in NUMBERS}
        means = {name: fmean(each) for name, each in listed.items() if None not in each}
        values = {key: members[0][key] for key in keys}
        found.append(Point(number, values, means, len(members)))
    return tuple(
        Point(each.number, each.values, each.means, each.runs, not _beaten(each, found))
        for each in found
    )


def _beaten(point: Point, others: Sequence[Point]) -> bool:
    """Whether another under the same load is as good in all goals and better in one.

    A load is no choice: what is easier to bear beats nothing.
    """
    if any(goal not in point.means for goal in GOALS):
        return True
    mine = [sign * point.means[goal] for goal, sign in GOALS.items()]
    for other in others:
        if any(goal not in other.means for goal in GOALS) or _load(other) != _load(point):
            continue
        theirs = [sign * other.means[goal] for goal, sign in GOALS.items()]
        if theirs != mine and all(a >= b for a, b in zip(theirs, mine, strict=True)):
            return True
    return False


def _load(point: Point) -> dict[str, Any]:
    return {key: value for key, value in point.values.items() if key.startswith(LOAD)}


def _most(found: Sequence[Effect], number: str) -> str:
    """Which parameter decides most of a number, if any does of a tenth."""
    mine = [each for each in found if each.number == number and each.share >= _DECIDES]
    if not mine:
        return ""
    most = max(mine, key=lambda each: each.share)
    return f"{most.key} decides {most.share:.0%} of {number}"

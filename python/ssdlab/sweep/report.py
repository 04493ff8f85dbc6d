"""`SweepPage`: a sweep's sensitivity and its best points, as tables, words and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.charts import Axis, Chart, dots
from ssdlab.sweep.analysis import NUMBERS, Effect, Point, Summary
from ssdlab.view import Column, Picture, Table, drawn
from ssdlab.wording import NOTHING, given, label, number, plain, unit_of

SHOWN: Final = 40
"""Points of a table at most."""
_LABELS: Final = {
    "read_mib_per_s": "Read",
    "write_iops": "Writes",
    "waf": "WAF",
    "latency_us_p50": "p50",
    "latency_us_p99": "p99",
    "cost": "Cost",
}
_PAIRS: Final = (("cost", "read_mib_per_s"), ("waf", "latency_us_p99"), ("cost", "waf"))
_AXES: Final = {
    "cost": "cost, flash bought / usable",
    "read_mib_per_s": "reads in order, MiB/s",
    "waf": "write amplification",
    "latency_us_p99": "p99 of single reads, us",
}


@dataclass(frozen=True)
class SweepPage:
    """A sweep for people."""

    summary: Summary

    @property
    def title(self) -> str:
        """Its name."""
        return f"Sweep {plain(self.summary.name)} of {plain(self.summary.profile)}"

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """What decides, then the points that none beats."""
        found = []
        if self.summary.effects:
            found.append(("What decides, share of the variance", self._effects()))
        best = [point for point in self.summary.points if point.best]
        if best:
            left = len(best) - SHOWN
            more = f", {left} more not shown" if left > 0 else ""
            found.append((f"Beaten by none{more}", self._points(best[:SHOWN])))
        return found

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """One sentence."""
        return [(plain(self.summary.name), plain(self.summary.verdict))]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """How to read it, and which runs failed."""
        found = []
        if self.summary.effects:
            sentence = (
                "A share is a parameter's own part of the variance (of logarithms) with its 95 % "
                "interval; what several do only together is in none."
            )
            found.append(("shares", sentence))
        if self.summary.points:
            sentence = (
                "Beaten by none: no other point under the same load reads as fast, writes as "
                "little to the flash, answers as soon (p99) and costs as little flash, and is "
                "better in one of them."
            )
            found.append(("points", sentence))
        for row in self.summary.failed:
            where = ", ".join(f"{key}={_shown(row[key])}" for key in self.summary.keys)
            sentence = f"{where}, seed {row['seed']}: {row['reason']}"
            found.append(("failed", plain(sentence)))
        return found

    @property
    def pictures(self) -> list[Picture]:
        """The points over pairs of what is wanted."""
        return [
            picture
            for across, up in _PAIRS
            for picture in drawn(
                f"{_AXES[up]} against {_AXES[across]}",
                "Each spot is a point of the sweep, the mean of its repeats.",
                self._chart(across, up).svg,
            )
        ]

    def _effects(self) -> Table:
        have = {each.number for each in self.summary.effects}
        numbers = [name for name in NUMBERS if name in have]
        by_place = {(each.key, each.number): each for each in self.summary.effects}
        columns = (Column("", numeric=False), *(Column(_LABELS[name]) for name in numbers))
        rows = tuple(
            (plain(key), *(_share(by_place.get((key, name))) for name in numbers))
            for key in self.summary.keys
        )
        return Table(columns, rows)

    def _points(self, points: list[Point]) -> Table:
        keys = list(self.summary.keys)
        columns = [Column(plain(key), numeric=self.summary.keys[key]) for key in keys]
        columns += [Column(_LABELS[name], unit_of(f"x_{name}")) for name in NUMBERS]
        rows = [
            (
                *(_shown(point.values[key]) for key in keys),
                *(number(point.means[n]) if n in point.means else NOTHING for n in NUMBERS),
            )
            for point in points
        ]
        return Table(tuple(columns), tuple(rows))

    def _chart(self, across: str, up: str) -> Chart:
        """The points; those that are Pareto-optimal stand out."""
        points = [
            point
            for point in self.summary.points
            if all(math.isfinite(point.means.get(name, math.nan)) for name in (across, up))
        ]
        groups = [(False, "muted", "others"), (True, "run1", "Pareto-optimal")]
        marks = []
        for is_best, role, legend in groups:
            places = [(p.means[across], p.means[up]) for p in points if p.best == is_best]
            if places:
                marks.append(dots(places, role, legend, "large" if is_best else "faint"))
        best = "; ".join(
            f"{_told(p)}: {given(p.means[across])}, {given(p.means[up])}" for p in points if p.best
        )
        title = f"{_AXES[up]} against {_AXES[across]}; Pareto-optimal: {best}"
        x, y = (Axis(_AXES[n], limits=_limits([p.means[n] for p in points])) for n in (across, up))
        return Chart(f"sweep-{across}-{up}", x, y, marks, title, height=252, grid="both")


def _limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    room = 0.06 * (high - low) or 0.05 * high or 1.0
    return low - room, high + room


def _share(effect: Effect | None) -> str:
    if effect is None:
        return NOTHING
    return f"{effect.share:.0%} ({effect.low:.0%} to {effect.high:.0%})"


def _told(point: Point) -> str:
    return ", ".join(f"{label(key)} {_shown(value)}" for key, value in point.values.items())


def _shown(value: Any) -> str:
    return given(value) if isinstance(value, int | float) else plain(value)

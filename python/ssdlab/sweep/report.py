"""The report of a sweep: sensitivity and Pareto-optimal points as tables, sentences and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.charts import Axis, Chart, dots
from ssdlab.sweep.analysis import NUMBERS, Effect, Point, Summary
from ssdlab.view import Column, Picture, Table, draw_figure
from ssdlab.wording import NOTHING, format_number, label, number, plain, unit_of

POINTS_MAX: Final = 40
"""Largest number of rows in the table of points."""
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
    "cost": "cost, physical / usable flash",
    "read_mib_per_s": "sequential reads, MiB/s",
    "waf": "write amplification",
    "latency_us_p99": "p99 of single reads, us",
}
_SHARES: Final = (
    "A share is the part of the variance (of logarithms) that a parameter causes alone, with its "
    "95 % interval. Effects of combinations of parameters are not included."
)
_PARETO: Final = (
    "Pareto-optimal: no other point under the same load has a read speed, WAF, p99 latency and "
    "cost that are all at least as good and one of them better."
)


@dataclass(frozen=True)
class SweepPage:
    """The report of a sweep, for the terminal and for HTML."""

    summary: Summary

    @property
    def title(self) -> str:
        """The name of the sweep and the name of its profile."""
        return f"Sweep {plain(self.summary.name)} of {plain(self.summary.profile)}"

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """Two titled tables: the effect of each parameter, and the Pareto-optimal points."""
        tables = []
        if self.summary.effects:
            tables.append(("Effect of each parameter, share of the variance", self._effects()))
        best = [point for point in self.summary.points if point.best]
        if best:
            left = len(best) - POINTS_MAX
            more = f", {left} more not shown" if left > 0 else ""
            tables.append((f"Pareto-optimal points{more}", self._points(best[:POINTS_MAX])))
        return tables

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """The name of the sweep and its verdict."""
        return [(plain(self.summary.name), plain(self.summary.verdict))]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Notes on how to read the tables, and on failed runs."""
        notes = [("shares", _SHARES)] if self.summary.effects else []
        if self.summary.points:
            notes.append(("points", _PARETO))
        for row in self.summary.failed:
            where = ", ".join(f"{key}={_format(row[key])}" for key in self.summary.keys)
            notes.append(("failed", plain(f"{where}, seed {row['seed']}: {row['reason']}")))
        return notes

    @property
    def pictures(self) -> list[Picture]:
        """Scatter plots of the points, each of two results."""
        return [
            picture
            for across, up in _PAIRS
            for picture in draw_figure(
                f"{_AXES[up]} against {_AXES[across]}",
                "Each dot is a point of the sweep, the mean of its repeats.",
                self._chart(across, up).svg,
            )
        ]

    def _effects(self) -> Table:
        effects = {(effect.key, effect.number): effect for effect in self.summary.effects}
        numbers = [name for name in NUMBERS if any(name == number for _, number in effects)]
        columns = (Column("", numeric=False), *(Column(_LABELS[name]) for name in numbers))
        rows = tuple(
            (plain(key), *(_share(effects.get((key, name))) for name in numbers))
            for key in self.summary.keys
        )
        return Table(columns, rows)

    def _points(self, points: list[Point]) -> Table:
        return Table.of_columns(
            *(
                (
                    Column(plain(key), numeric=is_numeric),
                    [_format(point.values[key]) for point in points],
                )
                for key, is_numeric in self.summary.keys.items()
            ),
            *(
                (
                    Column(_LABELS[name], unit_of(f"x_{name}")),
                    [number(p.means[name]) if name in p.means else NOTHING for p in points],
                )
                for name in NUMBERS
            ),
        )

    def _chart(self, across: str, up: str) -> Chart:
        """A scatter plot of all points, with the Pareto-optimal ones in colour."""
        points = [
            point
            for point in self.summary.points
            if all(math.isfinite(point.means.get(name, math.nan)) for name in (across, up))
        ]
        marks = []
        for is_best, role, legend in ((False, "muted", "others"), (True, "run1", "Pareto-optimal")):
            places = [(p.means[across], p.means[up]) for p in points if p.best == is_best]
            if places:
                marks.append(dots(places, role, legend, "large" if is_best else "faint"))
        best = "; ".join(
            f"{_describe(p)}: {format_number(p.means[across])}, {format_number(p.means[up])}"
            for p in points
            if p.best
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


def _describe(point: Point) -> str:
    return ", ".join(f"{label(key)} {_format(value)}" for key, value in point.values.items())


def _format(value: Any) -> str:
    return format_number(value) if isinstance(value, int | float) else plain(value)

"""`SweepPage`: a sweep's effects and Pareto-optimal points, as tables, notes and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab import charts as figure
from ssdlab.charts import Spot
from ssdlab.sweep.analysis.sensitivity import Effect
from ssdlab.sweep.analysis.summary import NUMBERS, Point, Summary
from ssdlab.view import Column, Picture, Table, drawn
from ssdlab.wording import NOTHING, given, label, number, plain, unit_of

ROWS_MAX: Final = 40
"""Rows of the table of points."""
_LABELS: Final = {
    "read_mib_per_s": "Read",
    "write_iops": "Writes",
    "waf": "WAF",
    "latency_us_p50": "p50",
    "latency_us_p99": "p99",
    "cost": "Cost",
}
_PAIRS: Final = (("cost", "read_mib_per_s"), ("waf", "latency_us_p99"), ("cost", "waf"))
"""The x and y axes of the figures."""
_AXES: Final = {
    "cost": "cost, flash / usable capacity",
    "read_mib_per_s": "sequential reads, MiB/s",
    "waf": "write amplification",
    "latency_us_p99": "p99 of single reads, us",
}


@dataclass(frozen=True)
class SweepPage:
    """A sweep's summary in the form that the report renders."""

    summary: Summary

    @property
    def title(self) -> str:
        """The sweep's name and profile."""
        return f"Sweep {plain(self.summary.name)} of {plain(self.summary.profile)}"

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """The main effects, then the Pareto-optimal points."""
        tables = []
        if self.summary.effects:
            tables.append(("Main effects, share of the variance", self._effects_table()))
        best = [point for point in self.summary.points if point.best]
        if best:
            hidden = len(best) - ROWS_MAX
            more = f", {hidden} more not shown" if hidden > 0 else ""
            table = self._points_table(best[:ROWS_MAX])
            tables.append((f"Pareto-optimal points{more}", table))
        return tables

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """The verdict, under the sweep's name."""
        return [(plain(self.summary.name), plain(self.summary.verdict))]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """How to read the tables, and which runs failed."""
        notes = []
        if self.summary.effects:
            sentence = (
                "A share is the part of the variance (of logarithms) that a parameter explains by "
                "itself, with its 95 % interval; interactions between parameters are in none."
            )
            notes.append(("shares", sentence))
        if self.summary.points:
            sentence = (
                "A point is Pareto-optimal if no other point under the same load is at least as "
                "good in read rate, write amplification, p99 and cost, and better in one of them."
            )
            notes.append(("points", sentence))
        for row in self.summary.failed:
            where = ", ".join(f"{key}={_format(row[key])}" for key in self.summary.keys)
            sentence = f"{where}, seed {row['seed']}: {row['reason']}"
            notes.append(("failed", plain(sentence)))
        return notes

    @property
    def pictures(self) -> list[Picture]:
        """Scatter plots of the points over pairs of goals."""
        return [
            picture
            for across, up in _PAIRS
            for picture in drawn(
                f"{_AXES[up]} against {_AXES[across]}",
                "Each spot is a point of the sweep, the mean of its repeats.",
                lambda size, a=across, u=up: figure.scatter(  # type: ignore[misc]
                    f"sweep-{a}-{u}", (_AXES[a], _AXES[u]), self._spots(a, u), size
                ),
            )
        ]

    def _effects_table(self) -> Table:
        have = {effect.number for effect in self.summary.effects}
        numbers = [name for name in NUMBERS if name in have]
        effects = {(effect.key, effect.number): effect for effect in self.summary.effects}
        columns = (Column("", numeric=False), *(Column(_LABELS[name]) for name in numbers))
        rows = tuple(
            (plain(key), *(_share(effects.get((key, name))) for name in numbers))
            for key in self.summary.keys
        )
        return Table(columns, rows)

    def _points_table(self, points: list[Point]) -> Table:
        keys = list(self.summary.keys)
        columns = [Column(plain(key), numeric=self.summary.keys[key]) for key in keys]
        columns += [Column(_LABELS[name], unit_of(f"x_{name}")) for name in NUMBERS]
        rows = [
            (
                *(_format(point.values[key]) for key in keys),
                *(number(point.means[n]) if n in point.means else NOTHING for n in NUMBERS),
            )
            for point in points
        ]
        return Table(tuple(columns), tuple(rows))

    def _spots(self, across: str, up: str) -> list[Spot]:
        return [
            Spot(point.means[across], point.means[up], point.best, _point_label(point))
            for point in self.summary.points
            if across in point.means and up in point.means
        ]


def _share(effect: Effect | None) -> str:
    if effect is None:
        return NOTHING
    return f"{effect.share:.0%} ({effect.low:.0%} to {effect.high:.0%})"


def _point_label(point: Point) -> str:
    return ", ".join(f"{label(key)} {_format(value)}" for key, value in point.values.items())


def _format(value: Any) -> str:
    return given(value) if isinstance(value, int | float) else plain(value)

"""The report of a sweep: sensitivity and Pareto-optimal points as tables and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.sweep.analysis import GOALS, MARGIN, SHARE_ZERO, Effect, Point, Summary
from ssdlab.sweep.figures import figures
from ssdlab.view import Column, Picture, Table
from ssdlab.wording import NOTHING, format_number, number, plain, unit_of

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
_UNITS: Final = {"write_iops": "/s"}
_GOALS: Final = {
    "read_mib_per_s": "read speed",
    "waf": "WAF",
    "latency_us_p99": "p99 latency",
    "cost": "cost",
}
_SHARES: Final = (
    "A share is the part of the variance (of logarithms) that a parameter causes alone, with its "
    '95 % interval; "under" gives the upper bound of a share that may be zero. Effects of '
    "combinations of parameters are not included."
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
        if self.summary.effects and self.summary.is_complete:
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
        notes = []
        if self.summary.effects and self.summary.is_complete:
            notes.append(("shares", _SHARES))
        if self.summary.points:
            notes.append(("Pareto-optimal", self._pareto()))
        if same := self._same():
            notes.append(("the same", same))
        for row in self.summary.failed:
            where = ", ".join(f"{key}={_format(row[key])}" for key in self.summary.keys)
            notes.append(("failed", plain(f"{where}, seed {row['seed']}: {row['reason']}")))
        return notes

    @property
    def pictures(self) -> list[Picture]:
        """Results along a parameter, and one result against another; a panel for each load."""
        return figures(self.summary)

    def _pareto(self) -> str:
        goals = [_GOALS[goal] for goal in GOALS if goal in self.summary.varying]
        *others, last = goals or ["result"]
        names = f"{', '.join(others)} and {last}" if others else last
        better = " that are all at least as good and one of them better" if others else " is better"
        whose = f"has a {names}{better}" if others else f"has a better {names}"
        return (
            f"No other point under the same load {whose}. Differences up to {MARGIN:.0%} count as "
            "none."
        )

    def _same(self) -> str:
        """The results that are the same at all points, with their values."""
        first = self.summary.points[0] if self.summary.points else None
        if first is None or len(self.summary.points) < 2:
            return ""
        names = [name for name in first.means if name not in self.summary.varying]
        return ", ".join(
            f"{_LABELS[name]} {number(first.means[name])} {_unit(name)}".rstrip() for name in names
        )

    def _effects(self) -> Table:
        effects = {(effect.key, effect.number): effect for effect in self.summary.effects}
        numbers = [name for name in self.summary.varying if any(name == n for _, n in effects)]
        columns = (
            Column("Parameter", numeric=False),
            *(Column(_LABELS[name]) for name in numbers),
        )
        rows = tuple(
            (plain(key), *(_share(effects.get((key, name))) for name in numbers))
            for key in self.summary.keys
        )
        return Table(columns, rows)

    def _points(self, points: list[Point]) -> Table:
        several = len(self.summary.points) > 1
        numbers = self.summary.varying if several else list(self.summary.points[0].means)
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
                    Column(_LABELS[name], _unit(name)),
                    [number(p.means[name]) if name in p.means else NOTHING for p in points],
                )
                for name in numbers
            ),
        )


def _unit(name: str) -> str:
    return _UNITS.get(name) or unit_of(name)


def _share(effect: Effect | None) -> str:
    if effect is None:
        return NOTHING
    if effect.may_be_zero:
        return f"under {max(effect.high, SHARE_ZERO):.0%}"
    return f"{effect.share:.0%} ({effect.low:.0%} to {effect.high:.0%})"


def _format(value: Any) -> str:
    return format_number(value) if isinstance(value, int | float) else plain(value)

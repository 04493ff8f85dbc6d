"""`SweepPage`: a sweep's sensitivity and its best points, as tables, words and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab import charts as figure
from ssdlab.charts import Spot
from ssdlab.sweep.analysis.sensitivity import Effect
from ssdlab.sweep.analysis.summary import NUMBERS, Point, Summary
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
                lambda size, a=across, u=up: figure.scatter(  # type: ignore[misc]
                    f"sweep-{a}-{u}", (_AXES[a], _AXES[u]), self._spots(a, u), size
                ),
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

    def _spots(self, across: str, up: str) -> list[Spot]:
        return [
            Spot(each.means[across], each.means[up], each.best, _told(each))
            for each in self.summary.points
            if across in each.means and up in each.means
        ]


def _share(effect: Effect | None) -> str:
    if effect is None:
        return NOTHING
    return f"{effect.share:.0%} ({effect.low:.0%} to {effect.high:.0%})"


def _told(point: Point) -> str:
    return ", ".join(f"{label(key)} {_shown(value)}" for key, value in point.values.items())


def _shown(value: Any) -> str:
    return given(value) if isinstance(value, int | float) else plain(value)

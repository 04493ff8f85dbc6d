"""Charts of values or ratios, with a row for each case and a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ssdlab.charts.chart import Axis, Chart, Row
from ssdlab.charts.marks import Kind, Mark, Named, dots, rule, stroke
from ssdlab.charts.svg import run_colour
from ssdlab.wording import format_number, plain


@dataclass(frozen=True)
class Value:
    """A value of a series. A line extends from it to `until`; `repeats` are faint points."""

    series: str
    value: float
    until: float | None = None
    repeats: Sequence[float] = ()


@dataclass(frozen=True)
class Case:
    """A row with its values; hollow values must not be compared with those of other rows."""

    label: str
    values: Sequence[Value]
    hollow: bool = False


def values_by_case(name: str, across: str, cases: Sequence[Case]) -> Chart:
    """A row for each case and a colour for each series; the axis spans at least a decade."""
    rows = [(case, [value for value in case.values if _is_drawable(value)]) for case in cases]
    rows = [(case, values) for case, values in rows if values]
    series = list(dict.fromkeys(plain(value.series) for _, values in rows for value in values))
    marks: list[Mark] = []
    for y, (case, values) in enumerate(rows):
        for value in values:
            label = plain(value.series)
            colour = run_colour(series.index(label) + 1)
            if value.until and math.isfinite(value.until):
                marks.append(stroke([(value.value, y), (value.until, y)], colour))
            words = ", ".join(filter(None, (plain(case.label), label)))
            repeats = [Named((x, y), words, format_number(x)) for x in value.repeats]
            marks.append(dots([(x, y) for x in value.repeats], colour, named=repeats))
            legend = label * (len(series) > 1)
            kind: Kind = "hollow" if case.hollow else "large"
            point = (value.value, y)
            named = [Named(point, words, format_number(value.value))]
            marks.append(dots([point], colour, legend, kind, named))
    title = "; ".join(
        f"{case.label} "
        + ", ".join(f"{format_number(value.value)} ({value.series})" for value in values)
        for case, values in rows
    )
    names = [Row(case.label, case.hollow) for case, _ in rows]
    x = Axis(across, log=True, least=10)
    return Chart(name, x, Axis(), marks, f"{across}: {title}", names, grid="both")


def _is_drawable(value: Value) -> bool:
    return all(math.isfinite(x) and x > 0 for x in (value.value, *value.repeats))


@dataclass(frozen=True)
class Ratio:
    """A ratio with optional bounds; `shown` means that it differs significantly from 1."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    shown: bool = False


def forest(name: str, across: str, ratios: Sequence[Ratio]) -> Chart:
    """Ratios as rows around a line at 1; the axis extends at least 5 % to both sides."""
    kept = [ratio for ratio in ratios if math.isfinite(ratio.value) and ratio.value > 0]
    marks: list[Mark] = [rule(x=1, dash=(1, 0))]
    words, ends = [], [1 / 1.05, 1.05]
    for y, ratio in enumerate(kept):
        colour = "run1" if ratio.shown else "muted"
        bounds = ""
        if ratio.low and ratio.high:
            marks.append(stroke([(ratio.low, y), (ratio.high, y)], colour))
            bounds = f" ({format_number(ratio.low)} to {format_number(ratio.high)})"
            ends += [ratio.low, ratio.high]
        value = f"{format_number(ratio.value)}{bounds}"
        named = [Named((ratio.value, y), plain(ratio.label), value)]
        marks.append(dots([(ratio.value, y)], colour, kind="large", named=named))
        ends.append(ratio.value)
        words.append(f"{plain(ratio.label)} {value}")
    room = (max(ends) / min(ends)) ** 0.06
    x = Axis(across, log=True, limits=(min(ends) / room, max(ends) * room))
    rows = [Row(ratio.label, not ratio.shown) for ratio in kept]
    return Chart(name, x, Axis(), marks, f"{across}: {'; '.join(words)}", rows, grid="x")

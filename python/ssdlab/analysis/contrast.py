"""Compares two runs of one experiment: ratios, with an interval if both runs have one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ssdlab.analysis.cells import Cell, Columns, cells
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval


@dataclass(frozen=True)
class Contrast:
    """A finding or value of both runs; `ratio` is second / first, `low` to `high` its interval.

    `name` is the finding or the measured column, `case` the cell's case ("" for a finding). A value
    is None if its run does not have it. `ratio` is None for missing values, text and truth values.
    """

    name: str
    case: str
    unit: str
    first: Any
    second: Any
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def compare_findings(first: Mapping[str, Finding], second: Mapping[str, Finding]) -> list[Contrast]:
    """One row for each finding of either run, in order."""
    rows = []
    for name in dict.fromkeys([*first, *second]):
        pair = first.get(name), second.get(name)
        unit = next(finding.unit for finding in pair if finding is not None)
        one, other = (None if finding is None else finding.value for finding in pair)
        rows.append(Contrast(name, "", unit, one, other, *_ratio_of_findings(*pair)))
    return rows


def compare_measures(
    columns: Columns | None,
    first: Sequence[Mapping[str, Any]],
    second: Sequence[Mapping[str, Any]],
) -> list[Contrast]:
    """One row for each case that both runs measured, in the order of the first run."""
    others = {cell.key: cell for cell in cells(columns, second)}
    pairs = [(cell, others.get(cell.key)) for cell in cells(columns, first)]
    return [_compare_cells(one, other) for one, other in pairs if other is not None]


def _compare_cells(one: Cell, other: Cell) -> Contrast:
    if not one.value > 0 or not other.value > 0:
        return Contrast(one.name, one.description, one.unit, one.value, other.value)
    ratio = other.value / one.value
    is_positive = all(value > 0 for value in (*one.repeats, *other.repeats))
    bounds = ratio_interval(other.repeats, one.repeats) if is_positive else None
    low, high = (None, None) if bounds is None else (min(bounds[0], ratio), max(bounds[1], ratio))
    values = one.value, other.value
    return Contrast(one.name, one.description, one.unit, *values, ratio, low, high)


def _ratio_of_findings(
    one: Finding | None, other: Finding | None
) -> tuple[float | None, float | None, float | None]:
    """Ratio and its interval: half widths on a log scale are added in quadrature."""
    if one is None or other is None:
        return None, None, None
    first, second = _positive_number(one.value), _positive_number(other.value)
    if first is None or second is None:
        return None, None, None
    ratio, first_widths, second_widths = second / first, _half_widths(one), _half_widths(other)
    if first_widths is None or second_widths is None:
        return ratio, None, None
    down = math.hypot(second_widths[0], first_widths[1])
    up = math.hypot(second_widths[1], first_widths[0])
    return ratio, ratio * math.exp(-down), ratio * math.exp(up)


def _half_widths(finding: Finding) -> tuple[float, float] | None:
    """Half widths of the log interval below and above the value; None without positive bounds."""
    value, low, high = (_positive_number(x) for x in (finding.value, finding.low, finding.high))
    if value is None or low is None or high is None:
        return None
    return max(0.0, math.log(value / low)), max(0.0, math.log(high / value))


def _positive_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return float(value)

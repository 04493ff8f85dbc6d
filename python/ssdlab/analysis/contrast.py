"""Two runs of the same experiment side by side: ratios, with bounds where both runs have some."""

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
    """A finding or a cell of both runs; `ratio` is the second over the first, with its bounds.

    `name` is that of the finding or of the measured column, `case` that of the row, empty for a
    finding. A value is None where a run does not have it; then, and for words and truth values,
    there is no ratio.
    """

    name: str
    case: str
    unit: str
    first: Any
    second: Any
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def of_findings(first: Mapping[str, Finding], second: Mapping[str, Finding]) -> list[Contrast]:
    """A row for each finding of either run, in order."""
    found = []
    for name in dict.fromkeys([*first, *second]):
        one, other = first.get(name), second.get(name)
        unit = next(each.unit for each in (one, other) if each is not None)
        below, above = (None if each is None else each.value for each in (one, other))
        found.append(Contrast(name, "", unit, below, above, *_of_bounds(one, other)))
    return found


def of_measures(
    columns: Columns | None,
    first: Sequence[Mapping[str, Any]],
    second: Sequence[Mapping[str, Any]],
) -> list[Contrast]:
    """A row for each case that both runs measured, in the order of the first."""
    others = {cell.key: cell for cell in cells(columns, second)}
    pairs = [(cell, others.get(cell.key)) for cell in cells(columns, first)]
    return [_of_cells(one, other) for one, other in pairs if other is not None]


def _of_cells(one: Cell, other: Cell) -> Contrast:
    if not one.value > 0 or not other.value > 0:
        return Contrast(one.name, one.label, one.unit, one.value, other.value)
    ratio = other.value / one.value
    bounds = ratio_interval(other.repeats, one.repeats) if _positive(one, other) else None
    low, high = (None, None) if bounds is None else (min(bounds[0], ratio), max(bounds[1], ratio))
    return Contrast(one.name, one.label, one.unit, one.value, other.value, ratio, low, high)


def _positive(*several: Cell) -> bool:
    return all(value > 0 for cell in several for value in cell.repeats)


def _of_bounds(
    one: Finding | None, other: Finding | None
) -> tuple[float | None, float | None, float | None]:
    """Ratio and bounds: the logarithms' half widths add as the roots of their squares do."""
    if one is None or other is None:
        return None, None, None
    below, above = _positive_number(one.value), _positive_number(other.value)
    if below is None or above is None:
        return None, None, None
    ratio, widths = above / below, [_half_widths(one), _half_widths(other)]
    if widths[0] is None or widths[1] is None:
        return ratio, None, None
    down = math.hypot(widths[1][0], widths[0][1])
    up = math.hypot(widths[1][1], widths[0][0])
    return ratio, ratio * math.exp(-down), ratio * math.exp(up)


def _half_widths(finding: Finding) -> tuple[float, float] | None:
    """Of the logarithm, below and above the value; None where it has no bounds above zero."""
    value, low, high = (_positive_number(x) for x in (finding.value, finding.low, finding.high))
    if value is None or low is None or high is None:
        return None
    return max(0.0, math.log(value / low)), max(0.0, math.log(high / value))


def _positive_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return float(value)

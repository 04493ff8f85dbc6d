"""`Cell`: one value in the table of an experiment, with a key that is the same in other runs.

A row of an experiment's `measures` has columns that identify a case and columns with measured
values. `Columns` lists them, so that two runs, or a drive and its twin, can be compared by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One measured value; `repeats` are the individual measurements (may be empty).

    `case` has the values of the columns `Columns.case`. `name` is the measured column; `unit` is
    "" if the name ends in the unit. `description` is the case as text for readers: `4 KiB units,
    queue depth 1`.
    """

    case: tuple[str | float, ...]
    name: str
    value: float
    repeats: tuple[float, ...] = ()
    unit: str = ""
    description: str = ""

    @property
    def key(self) -> tuple[tuple[str | float, ...], str]:
        """Identifies the value when runs are compared."""
        return self.case, self.name

    @property
    def label(self) -> str:
        """The case as text without what its numbers are, as `--hold-out` takes it: `4, 1`."""
        return ", ".join(
            word if isinstance(word, str) else f"{word:.6g}" for word in self.case if word != ""
        )


@dataclass(frozen=True)
class Columns:
    """The columns of an experiment that identify a case, and those with measured values.

    `repeats` maps a measured column to the column with its individual measurements. `texts` says
    what the numbers of a case are: `{} MiB written`.
    """

    case: tuple[str, ...]
    measured: tuple[str, ...]
    repeats: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict)

    def describe(self, case: Sequence[str | float]) -> str:
        """The values of a case as text, to be read without the headings of the columns."""
        words = (
            value
            if isinstance(value, str)
            else self.texts.get(name, f"{name} {{}}").format(f"{value:.6g}")
            for name, value in zip(self.case, case, strict=True)
        )
        return ", ".join(filter(None, words))


def cells(columns: Columns | None, measures: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """The numbers measured in a run's `measures`, in order; other values are omitted.

    `columns` are `COLUMNS` of the experiment's module `analysis`. If None, its rows are points of a
    curve, not cases, and give no cells.
    """
    if columns is None:
        return []
    return [cell for row in measures for cell in _row_cells(row, columns)]


def _row_cells(row: Mapping[str, Any], columns: Columns) -> Iterator[Cell]:
    case = tuple(_case_value(row.get(name, "")) for name in columns.case)
    for name in columns.measured:
        value = row.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            repeats = row.get(columns.repeats.get(name, ""))
            unit = str(row.get("unit", ""))
            if unit == "us":  # access times of the suite
                repeats = row.get("us_all")
            own = tuple(map(float, repeats or ()))
            yield Cell(case, name, float(value), own, unit, columns.describe(case))


def _case_value(value: Any) -> str | float:
    return float(value) if isinstance(value, int | float) else str(value)

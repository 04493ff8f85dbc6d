"""`Cell`: one measured number of an experiment, named so that other runs have the same one.

An experiment's `measures` are rows: some columns identify the case, others are what was measured.
`Columns` says which is which, so that two runs, or a drive and its twin, are compared case by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A case, the name of what was measured of it, its value and its repeats (maybe none).

    `case` are the values of the columns that `Columns.case` names, in order. `unit` is that of the
    row, empty where the name ends in it.
    """

    case: tuple[str | float, ...]
    name: str
    value: float
    repeats: tuple[float, ...] = ()
    unit: str = ""

    @property
    def key(self) -> tuple[tuple[str | float, ...], str]:
        """What is the same in another run."""
        return self.case, self.name

    @property
    def label(self) -> str:
        """The case in words: `random 4k, read`."""
        return ", ".join(
            word if isinstance(word, str) else f"{word:.6g}" for word in self.case if word != ""
        )


@dataclass(frozen=True)
class Columns:
    """The columns of an experiment's rows: those of the case, and each of its measured ones.

    `repeats` names the column that lists the repeats of a measured one, where there is such.
    """

    case: tuple[str, ...]
    measured: tuple[str, ...]
    repeats: Mapping[str, str]


def cells(columns: Columns | None, measures: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """The cells of a run's `measures`, in order; values that are not numbers are left out.

    `columns` are those of the run's experiment (`COLUMNS` in its module `analysis`); None, and no
    cells, if its rows are points of a curve and its findings say it all.
    """
    if columns is None:
        return []
    return [cell for row in measures for cell in _of_row(row, columns)]


def _of_row(row: Mapping[str, Any], columns: Columns) -> Iterator[Cell]:
    case = tuple(_word(row.get(name, "")) for name in columns.case)
    for name in columns.measured:
        value = row.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            listed = row.get(columns.repeats.get(name, ""))
            unit = str(row.get("unit", ""))
            if unit == "us":  # a suite's access times
                listed = row.get("us_all")
            yield Cell(case, name, float(value), tuple(map(float, listed or ())), unit)


def _word(value: Any) -> str | float:
    return float(value) if isinstance(value, int | float) else str(value)

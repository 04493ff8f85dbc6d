"""`Cell`: one measured number of an experiment, named so that other runs have the same one.

An experiment's `measures` are rows: some columns say which case it is, others what was measured.
Which is which stands here, so that two runs, or a drive and its twin, are held against each other
case by case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Cell:
    """A case, the name of what was measured of it, its value and its repeats (maybe none).

    `case` are the values of the columns that `CASES` names, in their order. `unit` is that of the
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


CASES: Final = {
    "aging": Columns(("written_mib",), ("read_s",), {"read_s": "read_s_all"}),
    "fragments": Columns(("degree", "queue_depth"), ("read_ms",), {"read_ms": "read_ms_all"}),
    "fsync": Columns(
        ("mode", "in_flight"),
        ("read_mib_per_s", "write_mib_per_s", "sync_us_p50"),
        {"write_mib_per_s": "write_mib_per_s_all"},
    ),
    "split": Columns(("unit_kib", "queue_depth"), ("read_ms",), {"read_ms": "read_ms_all"}),
    "stripe": Columns(
        ("alignment_kib",), ("read_mib_per_s",), {"read_mib_per_s": "read_mib_per_s_all"}
    ),
    "suite": Columns(("test", "op"), ("mean",), {"mean": "mib_per_s_all"}),
    "workload": Columns(("job", "op"), ("iops",), {}),
}
"""Of the others the findings say it all: their rows are points of a curve."""


def cells(experiment: str, measures: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """The cells of a run's `measures`, in order; those without a number are left out."""
    columns = CASES.get(experiment)
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

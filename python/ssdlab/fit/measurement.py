"""`Measurement`: results of one experiment on one drive, from a run, a TOML or a CSV file."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ssdlab.analysis.cells import Cell
from ssdlab.errors import UsageError
from ssdlab.experiments.registry import EXPERIMENTS, cells_of
from ssdlab.input_files import read_text
from ssdlab.records import Finding
from ssdlab.units import parse_size


@dataclass(frozen=True)
class Measurement:
    """Results of one experiment.

    `model` is empty if the results do not name the drive. `where` is the file or folder, for error
    messages. `parameters` come from the run's manifest.
    """

    experiment: str
    model: str
    where: str
    cells: tuple[Cell, ...] = ()
    findings: Mapping[str, Finding] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str) -> float | None:
        """The value of a finding; None if it is absent or not a number."""
        value = self.findings[name].value if name in self.findings else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)

    def text(self, name: str) -> str | None:
        """The value of a finding; None if it is absent or not a string."""
        value = self.findings[name].value if name in self.findings else None
        return value if isinstance(value, str) else None


def measured_cells(name: str, measures: Sequence[Mapping[str, Any]]) -> tuple[Cell, ...]:
    """The values of a run that a fit uses: its cells, and the rates of the rounds of `steady`."""
    if name != "steady":
        return tuple(cells_of(name, measures))
    share = {row.get("spare_percent") for row in measures[:1]}
    rounds = [row for row in measures if row.get("spare_percent") in share]
    return tuple(Cell((row["round"],), "iops", row["iops"]) for row in rounds)


@dataclass(frozen=True)
class Limits:
    """A unit with its smallest and largest plausible number, to catch typing errors."""

    unit: str
    low: float
    high: float


_RATE: Final = Limits("MiB/s", 0.001, 1e5)
COLUMNS: Final = {
    "alignment_kib": Limits("KiB", 0.5, 1 << 30),
    "unit_kib": Limits("KiB", 0.5, 1 << 30),
    "in_flight": Limits("", 1, 65536),
    "queue_depth": Limits("", 1, 65536),
    "read_ms": Limits("ms", 0.001, 1e7),
    "sync_us_p50": Limits("us", 0, 1e8),
    "read_mib_per_s": _RATE,
    "write_mib_per_s": _RATE,
}
"""Limits of a table's columns, by column name."""
MEANS: Final = {"MiB/s": _RATE, "us": Limits("us", 0.1, 1e8)}
"""Limits of the column `mean` of a `suite` table, by its unit."""
LATENCY: Final = "access time"
"""The test of `suite` whose mean is a latency."""
TEXT_COLUMNS: Final = frozenset({"test", "op", "mode", "unit"})
CellKey = tuple[tuple[str | float, ...], str]
_NEEDED: Final = {"aging": ("file_mib", "written_mib", "read_s")}
_OPTIONAL: Final = frozenset({"read_mib_per_s", "sync_us_p50"})
_QUANTITY: Final = re.compile(r"\s*([0-9.]+)\s*(\S.*?)?\s*")
FINDINGS: Final = {
    "stripe": {
        "chunk_kib": Limits("KiB", 4, 1 << 20),
        "stripe_kib": Limits("KiB", 4, 1 << 30),
        "units": Limits("", 1, 65536),
        "chunks_per_unit": Limits("", 1, 65536),
        "chunk_distance_kib": Limits("KiB", 4, 1 << 30),
    },
    "steady": {
        "hidden_spare": Limits("%", 0.01, 90),
        "fresh_iops": Limits("requests/s", 1, 1e9),
        "iops": Limits("requests/s", 1, 1e9),
    },
    "cache": {
        "buffer_mib": Limits("MiB", 1 / 256, 1 << 20),
        "slc_mib": Limits("MiB", 0, 1 << 30),
        "buffered_mib_per_s": Limits("MiB/s", 0.1, 1e6),
        "cached_mib_per_s": Limits("MiB/s", 0.1, 1e6),
        "lasting_mib_per_s": Limits("MiB/s", 0.1, 1e6),
    },
    "fsync": {"flush_us": Limits("us", 0.1, 1e7)},
    "suite": {},
    "split": {},
}
"""The findings that a TOML table may contain; `[fsync]` may also have `class`.

Sizes may be given in any unit of bytes.
"""
CLASSES: Final = ("protected", "volatile", "ignores flush", "protected or ignores flush")


def columns_of(name: str) -> tuple[str, ...]:
    """The columns that a table of an experiment must have."""
    if name in _NEEDED:
        return _NEEDED[name]
    columns = EXPERIMENTS[name].columns
    assert columns is not None, name
    unit = ("unit",) if name == "suite" else ()  # other columns have the unit in their name
    return (
        *columns.case,
        *(column for column in columns.measured if column not in _OPTIONAL),
        *unit,
    )


def from_csv(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """The experiment that the column names identify, and the rows.

    Raises:
        UsageError: no rows, a missing column, or a value that is not a plausible number.
        OSError, ValueError: the file cannot be read.
    """
    lines = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    known = [name for name in ("aging", *FINDINGS) if EXPERIMENTS[name].columns]
    header = set(lines[0]) if lines else set()
    name = max(known, key=lambda each: len(header & set(columns_of(each))))
    if not lines:
        raise UsageError(
            f"{path} is empty; it must have a header such as {','.join(columns_of('aging'))}, and "
            "rows"
        )
    for column in columns_of(name):
        if column not in header:
            raise UsageError(
                f"{path}: no column '{column}'; a table of {name} must have "
                f"{','.join(columns_of(name))}"
            )
    rows = [_parse_line(line, f"{path}: row {n}") for n, line in enumerate(lines, start=2)]
    for n, row in enumerate(rows, start=2):
        _check_limits(row, f"{path}: row {n}:")
    return name, rows


def _parse_line(line: dict[str, Any], where: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if None in line or None in line.values():
        raise UsageError(f"{where}: must have as many values as the header")
    for column, text in line.items():
        if column in TEXT_COLUMNS:
            row[column] = text.strip()
        elif text.strip():
            row[column] = _parse_number(text, f"{where}: {column}")
    return row


def _parse_number(text: Any, where: str) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where} is {text!r}; it must be a number") from error
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"{where} is {text}; it must be a finite number, 0 or more")
    return value


def from_toml(name: str, table: Any, path: Path) -> Measurement:
    """The results in an experiment's TOML table: `hidden_spare = "5.6 %"`, `[[suite.row]]`.

    Raises:
        UsageError: an unknown key, a missing or wrong unit, or a number outside its limits.
    """
    where = f"{path}: [{name}]"
    if not isinstance(table, dict) or not table:
        raise UsageError(f"{where} is empty; it may have {_allowed_keys(name)}")
    findings: dict[str, Finding] = {}
    for key, value in table.items():
        if key == "class" and name == "fsync":
            findings[key] = _parse_class(value, where)
        elif key != "row":
            full = _full_name(name, key)
            if full is None:
                raise UsageError(f"{where} has {key}; it may have {_allowed_keys(name)}")
            findings[full] = _parse_finding(value, FINDINGS[name][full], f"{where} {key}")
    rows = [_split_unit(row, where) for row in _row_tables(table.get("row", []), name, where)]
    for row in rows:
        _check_row(name, row, where)
    return Measurement(name, "", str(path), tuple(cells_of(name, rows)), findings)


def _full_name(experiment: str, key: str) -> str | None:
    """The finding that a key names; the key may omit the unit: `buffer` is `buffer_mib`."""
    for name in FINDINGS[experiment]:
        if name in {key, f"{key}_mib"} or name.rpartition("_")[0] == key:
            return name
    return None


def _allowed_keys(name: str) -> str:
    rows = (
        [f"[[{name}.row]] with {', '.join(columns_of(name))}"] if EXPERIMENTS[name].columns else []
    )
    return ", ".join([*FINDINGS[name], *(["class"] if name == "fsync" else []), *rows])


def _parse_class(value: Any, where: str) -> Finding:
    if value not in CLASSES:
        raise UsageError(f"{where} class is {value!r}; it must be one of {', '.join(CLASSES)}")
    return Finding(value, "", None, None, "")


def _parse_finding(value: Any, limits: Limits, where: str) -> Finding:
    number = _parse_quantity(value, limits, where)
    check_number(number, limits, where)
    return Finding(number, limits.unit, None, None, "")


def _parse_quantity(value: Any, limits: Limits, where: str) -> float:
    match = _QUANTITY.fullmatch(str(value))
    unit = "" if match is None else match[2] or ""
    if match is not None and unit == limits.unit:
        return _parse_number(match[1], where)
    if limits.unit in {"KiB", "MiB"} and unit:
        scale = 1 << (10 if limits.unit == "KiB" else 20)
        return parse_size(str(value)) / scale
    example = f"{limits.low:g} {limits.unit}".strip()
    raise UsageError(
        f"{where} is {value!r}; it must be a number with its unit, such as {example!r}"
    )


def _row_tables(rows: Any, name: str, where: str) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{where} row must be a table; give [[{name}.row]]")
    return rows


def _check_row(name: str, row: dict[str, Any], where: str) -> None:
    for column in columns_of(name):
        if column not in row:
            raise UsageError(
                f"{where} row has no {column}; it must have {', '.join(columns_of(name))}"
            )
    for column, value in row.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not math.isfinite(value):
            raise UsageError(f"{where} row: {column} is {value}; it must be a finite number")
        if not is_number and (column in COLUMNS or column == "mean"):
            raise UsageError(f"{where} row: {column} is {value!r}; it must be a number")
    _check_limits(row, f"{where} row:")


def _check_limits(row: dict[str, Any], where: str) -> None:
    """Refuses numbers outside their limits, and a `suite` mean in the wrong unit for its test."""
    for column in row.keys() & COLUMNS.keys():
        check_number(row[column], COLUMNS[column], f"{where} {column}")
    if "mean" not in row:
        return
    test, unit = str(row.get("test", "")), row.get("unit", "")
    if unit != unit_of_mean(test):
        raise UsageError(f"{where} unit of {test} is {unit!r}; it must be {unit_of_mean(test)}")
    check_number(row["mean"], MEANS[unit], f"{where} mean of {test}")


def _split_unit(row: dict[str, Any], where: str) -> dict[str, Any]:
    """Splits the value of `mean = "47 MiB/s"` in a `suite` row into `mean` and `unit`."""
    if not isinstance(row.get("mean"), str):
        return row
    match = _QUANTITY.fullmatch(row["mean"])
    if match is None or match[2] not in MEANS:
        raise UsageError(f"{where} mean is {row['mean']!r}; it must be a number of MiB/s or us")
    return {**row, "mean": _parse_number(match[1], f"{where} mean"), "unit": match[2]}


def check_number(value: float, limits: Limits, where: str) -> None:
    """Refuses a number outside its limits; the error message starts with `where`.

    Raises:
        UsageError: the number is outside.
    """
    if not limits.low <= value <= limits.high:
        given = f"{value:g} {limits.unit}".rstrip()
        allowed = f"{limits.low:g} to {limits.high:g} {limits.unit}".rstrip()
        raise UsageError(f"{where} is {given}; it must be from {allowed}")


def unit_of_mean(test: str) -> str:
    """The unit of the mean of a test in `suite`."""
    return "us" if test.startswith(LATENCY) else "MiB/s"


def medians(cells: Sequence[Cell], measures: Sequence[Mapping[str, Any]]) -> dict[CellKey, float]:
    """The twin's median flush times: the drive's, if it is near the middle of the twin's flushes.

    Where about half of the flushes wait for flash, the median is that of either half by chance.
    """
    drive = {cell.key: cell.value for cell in cells if cell.name == "sync_us_p50"}
    near = {
        ((row["mode"], float(row["in_flight"])), "sync_us_p50"): (low, high)
        for row in (measures if drive else ())
        if (low := row["sync_us_p40"]) and (high := row["sync_us_p60"])
    }
    return {k: min(high, max(low, drive[k])) for k, (low, high) in near.items() if k in drive}

"""Small tables of results in CSV and TOML: columns and findings, with units and within bounds."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.experiments.registry import EXPERIMENTS, cells_of
from ssdlab.fit.input.plausible import COLUMNS, MEANS, Allowed, check_number, unit_of
from ssdlab.fit.measured import Measured
from ssdlab.input_files import read_text
from ssdlab.records import Finding
from ssdlab.units import parse_size

WORDS: Final = frozenset({"test", "op", "mode", "unit"})
"""Columns that are words and not numbers."""
_NEEDED: Final = {"aging": ("file_mib", "written_mib", "read_s")}
_OPTIONAL: Final = frozenset({"read_mib_per_s", "sync_us_p50"})
_QUANTITY: Final = re.compile(r"\s*([0-9.]+)\s*(\S.*?)?\s*")


FINDINGS: Final = {
    "stripe": {
        "chunk_kib": Allowed("KiB", 4, 1 << 20),
        "stripe_kib": Allowed("KiB", 4, 1 << 30),
        "units": Allowed("", 1, 65536),
    },
    "steady": {
        "hidden_spare": Allowed("%", 0.01, 90),
        "fresh_iops": Allowed("requests/s", 1, 1e9),
        "iops": Allowed("requests/s", 1, 1e9),
    },
    "cache": {
        "buffer_mib": Allowed("MiB", 1 / 256, 1 << 20),
        "slc_mib": Allowed("MiB", 1, 1 << 30),
        "lasting_mib_per_s": Allowed("MiB/s", 0.1, 1e6),
    },
    "fsync": {"flush_us": Allowed("us", 0.1, 1e7)},
    "suite": {},
    "split": {},
}
"""What a TOML table may have of each experiment, beside `class` of `fsync` and its rows.

Sizes take any unit of bytes and become MiB or KiB.
"""
CLASSES: Final = ("protected", "volatile", "ignores flush")


def columns_of(name: str) -> tuple[str, ...]:
    """The columns that a table of an experiment must have."""
    if name in _NEEDED:
        return _NEEDED[name]
    columns = EXPERIMENTS[name].columns
    assert columns is not None, name
    unit = ("unit",) if name == "suite" else ()  # of the others the columns' names end in it
    return (*columns.case, *(each for each in columns.measured if each not in _OPTIONAL), *unit)


def from_csv(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """The experiment that the columns belong to, and the rows.

    Raises:
        UsageError: no rows, columns of no experiment, or a number that is none.
        OSError, ValueError: the file cannot be read.
    """
    lines = list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    known = [name for name in ("aging", *FINDINGS) if EXPERIMENTS[name].columns]
    given = set(lines[0]) if lines else set()
    name = max(known, key=lambda each: len(given & set(columns_of(each))))
    if not lines:
        raise UsageError(
            f"{path}: is empty; a header such as {','.join(columns_of('aging'))} and "
            "rows may be there"
        )
    for column in columns_of(name):
        if column not in given:
            raise UsageError(
                f"{path}: has no column '{column}'; {','.join(columns_of(name))} it may have"
            )
    rows = [_row(line, f"{path}: row {n}") for n, line in enumerate(lines, start=2)]
    for n, row in enumerate(rows, start=2):
        _check_bounds(row, f"{path}: row {n}:")
    return name, rows


def _row(line: dict[str, Any], where: str) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if None in line or None in line.values():
        raise UsageError(f"{where}: has not as many values as the header")
    for column, text in line.items():
        if column in WORDS:
            row[column] = text.strip()
        elif text.strip():
            row[column] = _number(text, f"{where}: {column}")
    return row


def _number(text: Any, where: str) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where} is {text!r}; no results can be read there") from error
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"{where} is {text}; it may be a number from 0 on")
    return value


def from_toml(name: str, table: Any, path: Path) -> Measured:
    """An experiment's table: findings as `hidden_spare = "5.6 %"`, rows as `[[suite.row]]`.

    Raises:
        UsageError: an unknown key, no unit or a wrong one, a number out of its bounds.
    """
    where = f"{path}: [{name}]"
    if not isinstance(table, dict) or not table:
        raise UsageError(f"{where} is empty; it may have {_known(name)}")
    found: dict[str, Finding] = {}
    for key, value in table.items():
        if key == "class" and name == "fsync":
            found[key] = _class(value, where)
        elif key != "row":
            full = next(
                (
                    each
                    for each in FINDINGS[name]
                    if each in {key, f"{key}_mib"} or each.rpartition("_")[0] == key
                ),
                None,
            )
            if full is None:
                raise UsageError(f"{where} has {key}; it may have {_known(name)}")
            found[full] = _finding(value, FINDINGS[name][full], f"{where} {key}")
    rows = [_split_unit(row, where) for row in _tables(table.get("row", []), name, where)]
    for row in rows:
        _check_row(name, row, where)
    return Measured(name, "", str(path), tuple(cells_of(name, rows)), found)


def _known(name: str) -> str:
    rows = (
        [f"[[{name}.row]] with {', '.join(columns_of(name))}"] if EXPERIMENTS[name].columns else []
    )
    return ", ".join([*FINDINGS[name], *(["class"] if name == "fsync" else []), *rows])


def _class(value: Any, where: str) -> Finding:
    if value not in CLASSES:
        raise UsageError(f"{where} class is {value!r}; it may be {', '.join(CLASSES)}")
    return Finding(value, "", None, None, "")


def _finding(value: Any, allowed: Allowed, where: str) -> Finding:
    number = _quantity(value, allowed, where)
    check_number(number, allowed, where)
    return Finding(number, allowed.unit, None, None, "")


def _quantity(value: Any, allowed: Allowed, where: str) -> float:
    """The number in the finding's own unit."""
    match = _QUANTITY.fullmatch(str(value))
    unit = "" if match is None else match[2] or ""
    if match is not None and unit == allowed.unit:
        return _number(match[1], where)
    if allowed.unit in {"KiB", "MiB"} and unit:
        scale = 1 << (10 if allowed.unit == "KiB" else 20)
        return parse_size(str(value)) / scale
    example = f"{allowed.low:g} {allowed.unit}".strip()
    raise UsageError(f"{where} is {value!r}; it may be a number with its unit, such as {example!r}")


def _tables(rows: Any, name: str, where: str) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{where} row is no table; give [[{name}.row]]")
    return rows


def _check_row(name: str, row: dict[str, Any], where: str) -> None:
    for column in columns_of(name):
        if column not in row:
            raise UsageError(f"{where} row has no {column}; it may have {_known(name)}")
    for column, value in row.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and not math.isfinite(value):
            raise UsageError(f"{where} row: {column} is {value}; it may be a number")
        if not is_number and (column in COLUMNS or column == "mean"):
            raise UsageError(f"{where} row: {column} is {value!r}; it may be a number")
    _check_bounds(row, f"{where} row:")


def _check_bounds(row: dict[str, Any], where: str) -> None:
    """Each number of a row within what can be, a suite's mean in the unit of its test."""
    for column in row.keys() & COLUMNS.keys():
        check_number(row[column], COLUMNS[column], f"{where} {column}")
    if "mean" not in row:
        return
    test, unit = str(row.get("test", "")), row.get("unit", "")
    if unit != unit_of(test):
        raise UsageError(f"{where} unit of {test} is {unit!r}; it may be {unit_of(test)}")
    check_number(row["mean"], MEANS[unit], f"{where} mean of {test}")


def _split_unit(row: dict[str, Any], where: str) -> dict[str, Any]:
    """A suite's `mean = "47 MiB/s"` as number and unit."""
    if not isinstance(row.get("mean"), str):
        return row
    match = _QUANTITY.fullmatch(row["mean"])
    if match is None or match[2] not in MEANS:
        raise UsageError(f"{where} mean is {row['mean']!r}; it may be a number of MiB/s or us")
    return {**row, "mean": _number(match[1], f"{where} mean"), "unit": match[2]}

"""The rows of published tables: those that ship with ssdlab, and those of a reader's file.

A reader's file may have `[aging]` with `[[aging.drive]]`, `[[iocost]]`, and the kinds of rows of
`write_amplification.toml`. The first lines of the tables in `profiles/tables` describe their keys.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ssdlab import profiles
from ssdlab.errors import UsageError
from ssdlab.fit import ageing_rows
from ssdlab.fit.published import SOURCE_PHRASES, compare_row, is_fitted_to
from ssdlab.fit.validation import rates, write_amplification
from ssdlab.fit.validation.figure import Figure, Role
from ssdlab.input_files import read_text
from ssdlab.profiles.models import is_model

WAF: Final = write_amplification.TABLE
RATES: Final = rates.TABLE
TABLES: Final = (*SOURCE_PHRASES, WAF, RATES)
"""The names of all tables."""
IN_A_FILE: Final = ("aging", RATES, *write_amplification.KINDS)
"""What a reader's file may have."""


@dataclass(frozen=True)
class Row:
    """A drive in a table. `name` selects it; `model` is what a profile of it would name.

    `kind` is that of a table with several kinds of rows. `rows` are all rows of a table whose rows
    refer to each other.
    """

    table: str
    name: str
    model: str
    data: Mapping[str, Any]
    kind: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()

    @property
    def source(self) -> str:
        """Where the figures are from, if the row says so."""
        return str(self.data.get("source", ""))

    @property
    def drive(self) -> str:
        """The full name of the drive."""
        if "drive" in self.data:
            return str(self.data["drive"])
        if "twin" in self.data:
            model: str = tomllib.loads(profiles.load(self.data["twin"]))["drive"]["model"]
            return model
        return self.model

    def compare(self, profile: str | None = None) -> list[Figure]:
        """The figures, and those of the drive's twin, or of the twin of a profile's file.

        Raises:
            UsageError: the row is incomplete.
        """
        if self.table == WAF:
            data = self.data
            if profile is not None:
                data = write_amplification.with_spare_of(self.kind, data, profile)
            return write_amplification.compare_row(self.kind, data)
        if self.table == RATES:
            if profile is not None:
                return rates.compare_profile(self.data, profiles.load(profile))
            return rates.compare(self.data, self.rows)
        twin = profile or self.data["twin"]
        role: Role = "fitted" if is_fitted_to(twin, self.table) else "predicted"
        return [
            Figure(value.label, float(value.measured), float(value.twin), role)
            for value in compare_row(self.table, {**self.data, "twin": twin})
        ]


def shipped_rows() -> list[Row]:
    """The rows of all tables that ship with ssdlab."""
    rows: list[Row] = []
    for table in TABLES:
        path = profiles.tables() / f"{table}.toml"
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        drives = content.get("drive", [])
        rows += [Row(table, row["twin"], row["model"], row) for row in drives]
        rows += rows_of(content, path)
    return rows


def read_rows(path: Path) -> list[Row]:
    """The rows of a reader's file.

    Raises:
        UsageError: it cannot be read, has no rows, or an incomplete one.
    """
    try:
        content = tomllib.loads(read_text(path))
    except (OSError, ValueError) as error:  # tomllib's and UTF-8's errors are ValueErrors
        raise UsageError(
            f"{path}: cannot read a table ({error}); give a TOML file with {_allowed()}"
        ) from error
    unknown = next((name for name in content if name not in IN_A_FILE), None)
    if unknown is not None or not content:
        has = f"has {unknown!r}" if unknown else "is empty"
        raise UsageError(f"{path} {has}; it must be a profile, or a table with {_allowed()}")
    return rows_of(content, path)


def is_profile(content: Mapping[str, Any]) -> bool:
    """Whether the content of a TOML file is that of a profile, rather than a table."""
    return isinstance(content.get("drive"), dict) and "flash" in content


def of_model(rows: Sequence[Row], model: str) -> list[Row]:
    """The rows of drives that are of the model that a profile names."""
    return [row for row in rows if _is_of(row, model)]


def rows_of(content: Mapping[str, Any], path: Path) -> list[Row]:
    """The rows of a table that say what they are."""
    return [row for name, read in _READ.items() for row in read(content.get(name, ()), path)]


def _is_of(row: Row, model: str) -> bool:
    names = (row.model, row.drive)
    return any(is_model(model, name) or is_model(name, model) for name in names if name)


def _aging(table: Any, path: Path) -> Iterator[Row]:
    if table == ():
        return
    rows = ageing_rows.of_toml(table, path)
    for entry, row in zip(table.get("drive", [table]), rows, strict=True):
        twin = entry.get("twin")
        if twin is None:
            raise UsageError(f"{path}: [[aging.drive]] {row.model} has no twin; name its profile")
        yield Row("aging", str(twin), row.model, {"twin": twin, "row": row})


def _rates(table: Any, path: Path) -> Iterator[Row]:
    rows = tuple(_entries(table, RATES, path))
    for row in rows:
        rates.check(row)
        yield Row(RATES, row["name"], str(row.get("model", "")), row, rows=rows)


def _waf(kind: str) -> Callable[[Any, Path], Iterator[Row]]:
    def read(table: Any, path: Path) -> Iterator[Row]:
        for row in _entries(table, kind, path):
            write_amplification.check(kind, row)
            yield Row(WAF, row["name"], row["drive"], row, kind)

    return read


def _entries(table: Any, name: str, path: Path) -> Sequence[Mapping[str, Any]]:
    """The entries of an array of tables, each with a name."""
    if not isinstance(table, list | tuple) or not all(isinstance(row, dict) for row in table):
        raise UsageError(f"{path}: {name} must be a list of tables; give [[{name}]]")
    for row in table:
        for key in ("name", "drive"):
            if not isinstance(row.get(key), str):
                raise UsageError(f"{path}: an entry [[{name}]] has no {key}; give it a text")
    return table


def _allowed() -> str:
    return ", ".join(f"[{name}]" if name == "aging" else f"[[{name}]]" for name in IN_A_FILE)


_READ: Final[dict[str, Callable[[Any, Path], Iterator[Row]]]] = {
    "aging": _aging,
    RATES: _rates,
    **{kind: _waf(kind) for kind in write_amplification.KINDS},
}

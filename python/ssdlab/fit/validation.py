"""Errors of the shipped twins against the published tables of their drives.

Computing the errors takes minutes, so they are stored in `profiles/tables/held.toml`. After a
change to a profile or the model, run `python bench/twins/held.py --write`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Final

from ssdlab import profiles
from ssdlab.fit.published.tables import SOURCE_PHRASES, PublishedValue
from ssdlab.profiles.toml_edit import list_values

STORED: Final = "held.toml"
"""File in the folder of tables: mean and worst error of each twin in each table."""


@dataclass(frozen=True)
class TableErrors:
    """A twin's relative errors in one table: mean of the absolute values, and worst.

    `fitted`: a number of the profile was fitted to this table.
    """

    table: str
    mean_error: float
    worst_error: float
    fitted: bool


def stored_errors() -> dict[str, list[TableErrors]]:
    """The stored errors of each shipped twin, by the profile's name."""
    text = (profiles.tables() / STORED).read_text(encoding="utf-8")
    errors: dict[str, list[TableErrors]] = {name: [] for name in profiles.names()}
    for row in tomllib.loads(text)["held"]:
        name, table = row["twin"], row["table"]
        is_fitted = is_fitted_to(name, table)
        errors[name].append(TableErrors(table, row["mean_error"], row["worst_error"], is_fitted))
    return errors


def is_fitted_to(name: str, table: str) -> bool:
    """Whether the source of any number of a profile is a fit to this table."""
    phrase = SOURCE_PHRASES[table]
    entries = list_values(profiles.load(name))
    return any(entry["kind"] == "fitted" and phrase in entry["source"] for entry in entries)


def table_errors(table: str, name: str, values: list[PublishedValue]) -> TableErrors:
    """The errors of a twin's values in one table."""
    errors = [abs(value.error) for value in values]
    return TableErrors(table, sum(errors) / len(errors), max(errors), is_fitted_to(name, table))

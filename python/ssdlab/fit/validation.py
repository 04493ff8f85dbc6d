"""How well shipped twins are held up: each against the published tables that its drive is in.

The errors are stored (`profiles/tables/held.toml`), since to compute them takes minutes: `python
bench/twins/held.py --write` does, after a profile or the model has changed.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, Final

from ssdlab import profiles
from ssdlab.fit.published.figure import Figure
from ssdlab.fit.published.rows import PHRASES
from ssdlab.profiles.toml_edit import numbers

STORED: Final = "held.toml"
"""In the folder of tables: a mean and a worst error for each twin of each table."""


@dataclass(frozen=True)
class Held:
    """A twin against one table: relative errors, mean of absolute values and the worst.

    `fitted`: some number of the profile was fitted to this table.
    """

    table: str
    mean_error: float
    worst_error: float
    fitted: bool


def held_against() -> dict[str, list[Held]]:
    """The tables of each shipped twin, by the profile's name."""
    text = (profiles.tables() / STORED).read_text(encoding="utf-8")
    found: dict[str, list[Held]] = {name: [] for name in profiles.names()}
    for row in tomllib.loads(text)["held"]:
        name, table = row["twin"], row["table"]
        held = Held(table, row["mean_error"], row["worst_error"], fitted_to(name, table))
        found[name].append(held)
    return found


def fitted_to(name: str, table: str) -> bool:
    """Whether some number of a profile says that it was fitted to a table."""
    found: list[dict[str, Any]] = numbers(profiles.load(name))
    return any(each["kind"] == "fitted" and PHRASES[table] in each["source"] for each in found)


def summed_up(table: str, name: str, figures: list[Figure]) -> Held:
    """The errors of a twin's figures in one table."""
    off = [abs(figure.error) for figure in figures]
    return Held(table, sum(off) / len(off), max(off), fitted_to(name, table))

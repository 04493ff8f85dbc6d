"""What has a report: shown by a notebook, or written as a page of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdlab import records
from ssdlab.report import html_part, write_html
from ssdlab.report.several import Asked


class Shown(ABC):
    """Its report, as `ssdlab ... --html` writes it."""

    @abstractmethod
    def _reported(self) -> tuple[list[records.Run], Asked | None]:
        """The runs that the report is of, and what was asked of them together."""

    def _repr_html_(self) -> str:
        """The report within a notebook: what the page has, in the same looks."""
        return html_part(*self._reported())

    def save_html(self, path: Path | str) -> Path:
        """Writes the report as ONE HTML file that loads nothing; returns its path.

        Raises:
            UsageError: it cannot be written there.
        """
        runs, asked = self._reported()
        write_html(runs, Path(path), asked)
        return Path(path)


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table with a column for each name that any of them has; what is missing is null.

    A column of whole and broken numbers has broken ones; what cannot be one type is words.
    """
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return pa.table({name: _column([row.get(name) for row in listed]) for name in names})


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())

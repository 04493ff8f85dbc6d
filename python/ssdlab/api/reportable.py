"""`Reportable`: objects with an HTML report, for a notebook or a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdlab import records
from ssdlab.report import html_part, write_html
from ssdlab.report.group import GroupReport


class Reportable(ABC):
    """Has the report that `ssdlab ... --html` writes."""

    @abstractmethod
    def _report_content(self) -> tuple[list[records.Run], GroupReport | None]:
        """The runs of the report, and the report on them as a group."""

    def _repr_html_(self) -> str:
        """The report for a notebook, with the same content as the page."""
        return html_part(*self._report_content())

    def save_html(self, path: Path | str) -> Path:
        """Write the report as one self-contained HTML file; returns its path.

        Raises:
            UsageError: the file cannot be written.
        """
        runs, group = self._report_content()
        write_html(runs, Path(path), group)
        return Path(path)


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table with a column for each name in any row; missing values are null.

    Integers and floats together become float; other mixed types become strings.
    """
    listed = list(rows)
    names = dict.fromkeys(name for row in listed for name in row)
    return pa.table({name: _column([row.get(name) for row in listed]) for name in names})


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())

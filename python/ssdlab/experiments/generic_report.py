"""The report of an experiment without a report of its own: a table of all its measures."""

from __future__ import annotations

from typing import Any, Final

from ssdlab.records import Run
from ssdlab.view import Column, Method, Table, View, draw_throughput
from ssdlab.wording import NOTHING, label, number, plain, unit_of


def _table(run: Run) -> Table:
    rows = run.result.measures
    columns = []
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [row.get(key) for row in rows]
        is_numeric = not any(isinstance(value, str) for value in values)
        columns.append((Column(label(key), unit_of(key), is_numeric), [*map(_cell, values)]))
    return Table.of_columns(*columns) if columns else Table((), ())


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return " ".join(map(_cell, value))
    return plain(value)


def _method(run: Run) -> Method:
    return Method(
        f"This run is of the experiment {plain(run.manifest.experiment)}. The report lists its "
        "parameters and everything that it measured.",
        "Each finding states the evidence for it.",
        (),
    )


VIEW: Final = View("Measurement", _table, _method, draw_throughput, lambda _runs, _first: [])

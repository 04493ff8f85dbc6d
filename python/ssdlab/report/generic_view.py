"""How runs of an experiment are shown that has no words of its own yet: all it measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab import charts as figure
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import NOTHING, label, number, plain, unit_of


def _table(run: Run) -> Table:
    rows = run.result.measures
    keys = list(dict.fromkeys(key for row in rows for key in row))
    texts = [[_cell(row.get(key)) for key in keys] for row in rows]
    columns = [Column(label(key), unit_of(key), numeric=not _has_words(run, key)) for key in keys]
    return Table(tuple(columns), tuple(tuple(row) for row in texts))


def _has_words(run: Run, key: str) -> bool:
    return any(isinstance(row.get(key), str) for row in run.result.measures)


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return " ".join(_cell(item) for item in value)
    return plain(value)


def _method(run: Run) -> Method:
    return Method(
        f"This is a run of the experiment {plain(run.manifest.experiment)}; its parameters and "
        "all that it measured are below.",
        "Each finding says what it rests on.",
        (),
    )


def _no_overview(_runs: Sequence[Run], _first: int) -> list[Picture]:
    return []


def _pictures(run: Run, at: int) -> list[Picture]:
    return drawn(
        "Throughput through the run",
        "Everything the drive did, in order; dotted lines are rests.",
        lambda size: figure.over_time(run, at, size),
    )


VIEW: Final = View(
    title="Measurement",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_no_overview,
    finding_labels={},
    parameter_labels={},
)

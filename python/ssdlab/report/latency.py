"""Latency percentiles of a run: by step for the page, grouped for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ssdlab.analysis.latency import SHARES, Latencies, by_group, told
from ssdlab.records import Run
from ssdlab.view import Column, Table
from ssdlab.wording import NOTHING, column, given, plain

ROWS_ON_TERMINAL: Final = 12
ROWS_ON_PAGE: Final = 400
_KIB: Final = 1024


def by_kind(run: Run) -> tuple[Table, int]:
    """A row for each group of equal steps (phase, case, block, depth), and the rows left out.

    Rows without a percentile are dropped; the table is empty if the run's own table has latencies.
    """
    if any("us_p50" in key for row in run.result.measures for key in row):
        return _table([], []), 0

    def key(row: Mapping[str, Any]) -> tuple[str, ...]:
        return (_name(row), _block(row), str(row["queue_depth"] or NOTHING))

    headings = [Column("Latency of", numeric=False), Column("Block", "KiB"), Column("Depth")]
    rows = [row for row in _rows(run, key) if row[2].us.p50 is not None]
    return _cut(headings, rows, ROWS_ON_TERMINAL)


def by_step(run: Run) -> tuple[Table, int]:
    """A row for each step and kind of request, and the number of rows left out."""

    def key(row: Mapping[str, Any]) -> tuple[str, ...]:
        value = row.get("value")
        return (
            str(row["step"]),
            _name(row),
            NOTHING if value is None else given(value),
            _block(row),
            str(row["queue_depth"] or NOTHING),
        )

    headings = [Column("Step"), Column("What", numeric=False), Column("Value")]
    headings += [Column("Block", "KiB"), Column("Depth")]
    return _cut(headings, _rows(run, key), ROWS_ON_PAGE)


_Rows = list[tuple[tuple[str, ...], str, Latencies]]


def _rows(run: Run, key: Callable[[Mapping[str, Any]], tuple[str, ...]]) -> _Rows:
    steps = run.tables["steps"].to_pylist()
    keys = {row["step"]: key(row) for row in steps}
    order = list(dict.fromkeys(keys.values()))
    groups = {step: order.index(group) for step, group in keys.items()}
    latencies = by_group(run.tables, groups)
    return [(order[group], op, row) for (group, op), row in latencies.items()]


def _cut(headings: list[Column], rows: _Rows, limit: int) -> tuple[Table, int]:
    return _table(headings, rows[:limit]), max(0, len(rows) - limit)


def _table(headings: list[Column], rows: _Rows) -> Table:
    columns = [*headings, Column("Kind", numeric=False), Column("Requests")]
    columns += [Column(told(name), "us") for name in SHARES]
    texts = [column(getattr(row.us, name) for _, _, row in rows) for name in SHARES]
    cells = [
        (*key, op or "all", str(row.requests), *(text[at] for text in texts))
        for at, (key, op, row) in enumerate(rows)
    ]
    return Table(tuple(columns), tuple(cells))


def _name(row: Mapping[str, Any]) -> str:
    return plain(f"{row['phase']} {row.get('case') or ''}".strip())


def _block(row: Mapping[str, Any]) -> str:
    return given(row["block_bytes"] / _KIB) if row["block_bytes"] else NOTHING

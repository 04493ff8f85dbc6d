"""Latency percentiles of a run: per step on the HTML page, per group on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ssdlab.analysis.latency import SHARES, Latencies, latencies_by_group, percentile_label
from ssdlab.records import Run
from ssdlab.view import Column, Table
from ssdlab.wording import NOTHING, column, format_number, plain

ROWS_ON_TERMINAL: Final = 12
ROWS_ON_PAGE: Final = 400
_KIB: Final = 1024


def by_kind(run: Run) -> tuple[Table, int]:
    """A row per group of equal steps (phase, case, block, depth), and the number left out.

    Groups without percentiles are dropped. The table is empty if the run's measures have latencies.
    """
    if any("us_p50" in key for row in run.result.measures for key in row):
        return _table([], []), 0

    def key(row: Mapping[str, Any]) -> tuple[str, ...]:
        return (_name(row), _block(row), str(row["queue_depth"] or NOTHING))

    heads = [Column("Latency of", numeric=False)]
    heads += [Column("Block", "KiB", minor=True), Column("Depth", minor=True)]
    rows = [row for row in _rows(run, key) if row[2].us.p50 is not None]
    return _cut(heads, rows, ROWS_ON_TERMINAL)


def by_step(run: Run) -> tuple[Table, int]:
    """A row for each step and request type (such as read), and the number of rows left out."""

    def key(row: Mapping[str, Any]) -> tuple[str, ...]:
        value = row.get("value")
        which = (_name(row), NOTHING if value is None else format_number(value))
        return (str(row["step"]), *which, _block(row), str(row["queue_depth"] or NOTHING))

    heads = [Column("Step"), Column("What", numeric=False), Column("Value")]
    heads += [Column("Block", "KiB"), Column("Depth")]
    return _cut(heads, _rows(run, key), ROWS_ON_PAGE)


_Rows = list[tuple[tuple[str, ...], str, Latencies]]


def _rows(run: Run, key: Callable[[Mapping[str, Any]], tuple[str, ...]]) -> _Rows:
    steps = run.tables["steps"].to_pylist()
    keys = {row["step"]: key(row) for row in steps}
    order = list(dict.fromkeys(keys.values()))
    groups = {step: order.index(each) for step, each in keys.items()}
    found = latencies_by_group(run.tables, groups)
    return [(order[group], op, each) for (group, op), each in found.items()]


def _cut(heads: list[Column], rows: _Rows, most: int) -> tuple[Table, int]:
    return _table(heads, rows[:most]), max(0, len(rows) - most)


def _table(heads: list[Column], rows: _Rows) -> Table:
    columns = [*heads, Column("Kind", numeric=False), Column("Requests", minor=True)]
    columns += [Column(percentile_label(name), "us", minor=len(name) > 3) for name in SHARES]
    texts = [column(getattr(each.us, name) for _, _, each in rows) for name in SHARES]
    cells = [
        (*key, op or "all", str(each.requests), *(text[at] for text in texts))
        for at, (key, op, each) in enumerate(rows)
    ]
    return Table(tuple(columns), tuple(cells))


def _name(row: Mapping[str, Any]) -> str:
    return plain(f"{row['phase']} {row.get('case') or ''}".strip())


def _block(row: Mapping[str, Any]) -> str:
    return format_number(row["block_bytes"] / _KIB) if row["block_bytes"] else NOTHING

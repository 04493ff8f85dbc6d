"""The figures of the fragments experiment: time against pieces, a figure a depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab import charts as figure
from ssdlab.charts import Chart, Line
from ssdlab.records import Run
from ssdlab.view import Picture, drawn
from ssdlab.wording import positive

GAPS: Final = {"worst": "even gaps", "random": "random gaps"}
"""In words."""
_ACROSS: Final = "pieces of the file"
_KEYS: Final = frozenset({"gap", "queue_depth", "degree", "read_ms", "read_ms_all"})


def measures(run: Run) -> list[dict[str, Any]]:
    """The rows; without those that lack what all of them have."""
    return [row for row in run.result.measures if row.keys() >= _KEYS]


def _rows(run: Run, gap: str, depth: int) -> list[dict[str, Any]]:
    return [row for row in measures(run) if (row["gap"], row["queue_depth"]) == (gap, depth)]


def _lines(run: Run, depth: int) -> list[Line]:
    """What was read at a depth: by gap, then the same commands in order, then the host alone."""
    gaps = list(dict.fromkeys(row["gap"] for row in measures(run)))
    found = [
        Line(
            GAPS.get(gap, gap),
            [(row["degree"], row["read_ms"]) for row in _rows(run, gap, depth)],
            [
                (row["degree"], each)
                for row in _rows(run, gap, depth)
                for each in row["read_ms_all"]
            ],
        )
        for gap in gaps
    ]
    for name, key in (("in order", "in_order_ms"), ("host alone", "host_ms")):
        beside = [
            (row["degree"], value)
            for row in _rows(run, gaps[0], depth)
            if (value := positive(row.get(key))) is not None
        ]
        found.append(Line(name, beside))
    return found


def _depths(run: Run) -> list[int]:
    return list(dict.fromkeys(row["queue_depth"] for row in measures(run)))


def pictures(run: Run, at: int) -> list[Picture]:
    """One run, with its number."""
    if not measures(run):
        return []
    found: list[Picture] = []
    for depth in _depths(run):
        found += _picture(run, at, depth)
    return found + drawn(
        "Throughput through the run",
        "Everything the drive did, in order.",
        lambda size: figure.over_time(run, at, size),
    )


def _picture(run: Run, at: int, depth: int) -> list[Picture]:
    chart = Chart(f"fragments-{at}-{depth}", _ACROSS, "time for 8 MiB, ms", True, True)
    lines = _lines(run, depth)
    return drawn(
        f"Time to read a file in pieces, {_at_a_time(depth)}",
        _caption(depth),
        lambda size: figure.lines(chart, lines, size),
    )


def _at_a_time(depth: int) -> str:
    return "one command at a time" if depth == 1 else f"{depth} commands at a time"


def _caption(depth: int) -> str:
    if depth == 1:
        return (
            "The line is the median of the repeats, faint points are all of them. One command has "
            "no other to conflict with: what rises here rises for the file in order too."
        )
    return (
        "What rises for the file in order too is the price of splitting. What rises with even gaps "
        "alone is the drive's: pieces on one die wait for each other."
    )


def overview(runs: Sequence[Run], first: int) -> list[Picture]:
    """Runs side by side; the first has the number `first`."""
    depths = dict.fromkeys(depth for run in runs for depth in _depths(run))
    return [picture for depth in depths for picture in _side_by_side(runs, first, depth)]


def _side_by_side(runs: Sequence[Run], first: int, depth: int) -> list[Picture]:
    chart = Chart(f"slowed-{first}-{depth}", _ACROSS, "times as long as in one piece", True, True)
    lines = [_slowdowns(run, number, depth) for number, run in enumerate(runs, first)]
    return drawn(
        f"What pieces cost, {_at_a_time(depth)}",
        "The time to read a file in pieces over that in one piece, with even gaps where they were "
        "measured; a line a run.",
        lambda size: figure.lines(chart, lines, size),
    )


def _slowdowns(run: Run, number: int, depth: int) -> Line:
    """In turn with each layout the file was read in one piece: over that."""
    gap = next((row["gap"] for row in measures(run)), "")
    points = [
        (row["degree"], row["read_ms"] / whole)
        for row in _rows(run, gap, depth)
        if (whole := positive(row.get("whole_ms"))) is not None
    ]
    return Line(f"{number}: {run.result.target.removeprefix('twin:')}", points)

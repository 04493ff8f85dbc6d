"""How runs of the split experiment are shown: their table, figure and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.charts import Axis, Chart, Line, over_time
from ssdlab.experiments.split.parameters import Split
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import column, format_number, positive, quantity


def _table(run: Run) -> Table:
    rows = run.result.measures
    columns = (
        Column("Command", "KiB"),
        Column("Queue depth"),
        Column("Read, median", "ms"),
        Column("Commands"),
    )
    window_kib = 1024 * (positive(run.result.parameters.get("window_mib")) or 0)
    times = column(row["read_ms"] for row in rows)
    cells = (
        (
            format_number(row["unit_kib"]),
            format_number(row["queue_depth"]),
            time,
            format_number(window_kib / row["unit_kib"]),
        )
        for row, time in zip(rows, times, strict=True)
    )
    return Table(columns, tuple(cells))


def _lines(run: Run, prefix: str = "") -> list[Line]:
    depths = list(dict.fromkeys(row["queue_depth"] for row in run.result.measures))
    return [
        Line(
            f"{prefix}{depth} at a time",
            [(row["unit_kib"], row["read_ms"]) for row in _at(run, depth)],
            [(row["unit_kib"], each) for row in _at(run, depth) for each in row["read_ms_all"]],
        )
        for depth in depths
    ]


def _at(run: Run, depth: int) -> list[dict[str, Any]]:
    return [row for row in run.result.measures if row["queue_depth"] == depth]


def _chart(name: str, lines: Sequence[Line]) -> Chart:
    x = Axis("size of a command, KiB", log=True)
    return Chart(name, x, Axis("time for the same bytes, ms", log=True), lines)


def _pictures(run: Run, at: int) -> list[Picture]:
    return [
        *drawn(
            "Time to read the same bytes by smaller and smaller commands",
            "The line is the median of the repeats, faint points are all of them. Where it is "
            "level, splitting is free.",
            _chart(f"split-{at}", _lines(run)).svg,
        ),
        *drawn(
            "Throughput through the run",
            "Everything the drive did, in order.",
            over_time(run, at).svg,
        ),
    ]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = [line for at, run in enumerate(runs, first) for line in _lines(run, f"{at}: ")]
    return drawn(
        "What splitting costs",
        "The same bytes read by smaller and smaller commands; a pair of lines a run.",
        _chart(f"splits-{first}", lines).svg,
    )


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    done = (
        f"A region of {quantity('size_mib', asked.get('size_mib'))} was written in order. Windows "
        f"of {quantity('window_mib', asked.get('window_mib'))} of it were read by commands of "
        f"{quantity('units_kib', asked.get('units_kib', []))}, at queue depths "
        f"{quantity('', asked.get('queue_depths', []))}, {asked.get('repeats')} times each; the "
        "sizes took turns."
    )
    meaning = (
        "The split penalty is the time with the smallest commands over that with the largest, one "
        "at a time: what a file in many pieces pays for the number of its pieces alone."
    )
    pitfalls = (
        "Above the largest request that the device takes the kernel splits: the curve is level.",
        "A drive that reads ahead hides the price of small commands in order.",
    )
    return Method(done, meaning, pitfalls)


VIEW: Final = View(
    title="The price of splitting a read",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={"split_penalty": "Split penalty"},
    parameter_labels={
        **Split.labels(),
        "window_mib": "Read at once",
        "units_kib": "Command sizes",
        "queue_depths": "Queue depths",
        "repeats": "Repeats",
    },
)

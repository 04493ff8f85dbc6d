"""The report of the split experiment: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ssdlab import view
from ssdlab.charts import Axis, Chart, Line
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import format_number, positive


def _table(run: Run) -> Table:
    rows = run.result.measures
    window_kib = 1024 * (positive(run.result.parameters.get("window_mib")) or 0)
    return Table.of_columns(
        (Column("Command", "KiB"), [format_number(row["unit_kib"]) for row in rows]),
        (Column("Queue depth"), [format_number(row["queue_depth"]) for row in rows]),
        view.number_column(rows, "read_ms", "Read, median", "ms"),
        (Column("Commands"), [format_number(window_kib / row["unit_kib"]) for row in rows]),
    )


def _lines(run: Run, prefix: str = "") -> list[Line]:
    lines = []
    for depth in dict.fromkeys(row["queue_depth"] for row in run.result.measures):
        rows = [row for row in run.result.measures if row["queue_depth"] == depth]
        medians = [(row["unit_kib"], row["read_ms"]) for row in rows]
        repeats = [(row["unit_kib"], time) for row in rows for time in row["read_ms_all"]]
        lines.append(Line(f"{prefix}depth {depth}", medians, repeats))
    return lines


def _chart(name: str, lines: Sequence[Line]) -> Chart:
    x = Axis("size of a command, KiB", log=True)
    return Chart(name, x, Axis("time for the same bytes, ms", log=True), lines)


def _pictures(run: Run, number: int) -> list[Picture]:
    return view.draw_figure(
        "Time to read the same bytes, by command size",
        "The line is the median of the repeats, faint points are all repeats. Where the line is "
        "level, splitting costs nothing.",
        _chart(f"split-{number}", _lines(run)).svg,
    ) + view.draw_throughput(run, number)


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    return view.draw_figure(
        "Cost of splitting",
        "Time to read the same bytes by smaller and smaller commands; one line for each run and "
        "queue depth.",
        _chart(f"splits-{first}", view.lines_of_runs(runs, first, _lines)).svg,
    )


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    rested = run.manifest.parameters.get("settle_s") is not None
    rest = f"; then the drive rested for {text('settle_s')}" if rested else ""
    done = (
        f"A region of {text('size_mib')} was written sequentially{rest}. Windows of "
        f"{text('window_mib')} of it were read by commands of {text('units_kib')}, at queue depths "
        f"{text('queue_depths')}, {text('repeats')} times each; the sizes took turns."
    )
    meaning = (
        "The split penalty is the time with the smallest commands divided by the time with the "
        "largest, at queue depth 1. It is the part of a fragmented file's slowdown that comes from "
        "the number of commands alone."
    )
    pitfalls = (
        "The kernel splits commands larger than the device accepts: the curve is level there.",
        "A drive that reads ahead hides the cost of small sequential commands.",
        "An SLC cache may still hold the data, and be read faster than the flash of older data.",
    )
    return Method(done, meaning, pitfalls)


_PARAMETERS: Final = {
    "window_mib": "Read at once",
    "units_kib": "Command sizes",
    "settle_s": "Idle before reading",
}
VIEW: Final = View(
    "Cost of splitting a read", _table, _method, _pictures, _overview, {}, _PARAMETERS
)

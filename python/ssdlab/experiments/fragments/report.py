"""The report of the fragments experiment: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab import view
from ssdlab.charts import Axis, Chart, Line
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import column, format_number, positive

_GAPS: Final = {"worst": "even gaps", "random": "random gaps"}
_PIECES: Final = Axis("pieces of the file", log=True)
_KEYS: Final = frozenset({"gap", "queue_depth", "degree", "read_ms", "read_ms_all"})
_ORDERS: Final = {
    "address": "The whole region was written sequentially, including the gaps, so that the pieces "
    "are as far apart in write order as in their addresses.",
    "file": "Only the pieces were written, in the order of the file, so that the drive received "
    "them as one stream whatever their addresses.",
}
_WORST: Final = (
    "Even gaps that are a multiple of the drive's stripe put all pieces on few dies. This is the "
    "worst case, created on purpose; with random gaps, as on file systems in use, the slowdown is "
    "far smaller."
)
_WRITTEN: Final = (
    "Only the write order determines where flash stores the pieces. A file that was written in one "
    "pass and fragmented later by its file system may be contiguous in flash."
)
_TWIN: Final = (
    "A twin has no host, so the CPU time of a published host is added. At queue depth 1 it adds to "
    "each command; at larger depths most of it overlaps with the drive's work. --no-host leaves it "
    "out."
)
_MEMORY: Final = (
    "The host alone is measured on a loop device in memory. Its kernel thread is included, so the "
    "result is an upper bound."
)


def _measures(run: Run) -> list[dict[str, Any]]:
    """The complete rows."""
    return [row for row in run.result.measures if row.keys() >= _KEYS]


def _values(run: Run, key: str) -> list[Any]:
    """The distinct values of a column, in order of first appearance."""
    return list(dict.fromkeys(row[key] for row in _measures(run)))


def _rows(run: Run, gap: str, depth: int) -> list[dict[str, Any]]:
    return [row for row in _measures(run) if (row["gap"], row["queue_depth"]) == (gap, depth)]


def _table(run: Run) -> Table:
    """A row for each depth and degree, a column for each gap; control reads for the first gap."""
    gaps = _values(run, "gap")
    rows = {(row["queue_depth"], row["degree"], row["gap"]): row for row in _measures(run)}
    places = sorted({(depth, degree) for depth, degree, _ in rows})

    def times(key: str, gap: str) -> list[str]:
        return column(rows.get((*place, gap), {}).get(key) for place in places)

    first = gaps[0] if gaps else ""
    return Table.of_columns(
        (Column("Queue depth"), [format_number(depth) for depth, _ in places]),
        (Column("Pieces"), [format_number(degree) for _, degree in places]),
        *((Column(_GAPS.get(g, g).capitalize(), "ms"), times("read_ms", g)) for g in gaps),
        (Column("In order, same commands", "ms"), times("in_order_ms", first)),
        (Column("Host alone", "ms"), times("host_ms", first)),
    )


def _lines(run: Run, depth: int) -> list[Line]:
    """Read times at a depth: a line per gap, one for the commands in order, one for the host."""
    gaps = _values(run, "gap")
    lines = []
    for gap in gaps:
        rows = _rows(run, gap, depth)
        medians = [(row["degree"], row["read_ms"]) for row in rows]
        repeats = [(row["degree"], time) for row in rows for time in row["read_ms_all"]]
        lines.append(Line(_GAPS.get(gap, gap), medians, repeats))
    for name, key in (("in order", "in_order_ms"), ("host alone", "host_ms")):
        times = [(row["degree"], positive(row.get(key))) for row in _rows(run, gaps[0], depth)]
        lines.append(Line(name, [(degree, time) for degree, time in times if time is not None]))
    return lines


def _pictures(run: Run, number: int) -> list[Picture]:
    time = Axis("time for 8 MiB, ms", log=True)
    pictures = []
    for depth in _values(run, "queue_depth"):
        caption = (
            "The line is the median of the repeats, faint points are all repeats. A single command "
            "cannot conflict with another one, so what slows the fragmented file here also slows "
            "the file in order."
            if depth == 1
            else "A rise that the file in order shares is the cost of request splitting. A rise "
            "with even gaps only comes from the drive: pieces on one die wait for each other."
        )
        name = f"fragments-{number}-{depth}"
        chart = Chart(name, _PIECES, time, _lines(run, depth))
        title = f"Time to read a fragmented file at queue depth {depth}"
        pictures += view.draw_figure(title, caption, chart.svg)
    return pictures + view.draw_throughput(run, number) if pictures else []


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    ratio = Axis("slowdown, compared with one piece", log=True)
    pictures = []
    for depth in dict.fromkeys(depth for run in runs for depth in _values(run, "queue_depth")):
        lines = [_slowdowns(run, name, depth) for name, run in view.short_names(runs, first)]
        pictures += view.draw_figure(
            f"Slowdown of a fragmented file at queue depth {depth}",
            "The time to read a file in pieces divided by the time to read it in one piece, with "
            "even gaps if they were measured; one line for each run.",
            Chart(f"slowed-{first}-{depth}", _PIECES, ratio, lines).svg,
        )
    return pictures


def _slowdowns(run: Run, name: str, depth: int) -> Line:
    """Slowdowns with the first gap, relative to a file in one piece that was read in turn."""
    gap = next(iter(_values(run, "gap")), "")
    times = [(row, positive(row.get("whole_ms"))) for row in _rows(run, gap, depth)]
    return Line(name, [(row["degree"], row["read_ms"] / whole) for row, whole in times if whole])


def _method(run: Run) -> Method:
    text, parameters = view.parameter_texts(run), run.manifest.parameters
    gaps = " and ".join(_GAPS.get(gap, gap) for gap in parameters.get("gaps", []))
    done = (
        f"A file of {text('window_mib')} in {text('degrees')} pieces, {text('distance_bytes')} "
        f"apart ({gaps}), was read by commands of up to {text('command_kib')} at queue depths "
        f"{text('queue_depths')}, {text('repeats')} times each. In turns with it, the same "
        "commands read a contiguous file from its end to its start, so that read-ahead does not "
        f"help. {_ORDERS.get(str(parameters.get('order')), '')}"
    )
    meaning = (
        "A slowdown is the time with the largest number of pieces divided by the time with one "
        "piece. The part that the same commands also show on a contiguous file is request "
        "splitting; the rest is die conflicts."
    )
    pitfalls = (_WORST, _WRITTEN, _TWIN if run.manifest.virtual else _MEMORY)
    return Method(done.rstrip(), meaning, pitfalls)


_FINDINGS: Final = {
    "slowdown_depth_1": "Slowdown, depth 1",
    "slowdown_depth_32": "Slowdown, depth 32",
    "slowdown_depth_1_random": "Slowdown, depth 1, random gaps",
    "slowdown_depth_32_random": "Slowdown, depth 32, random gaps",
    "cause_depth_1": "Cause, depth 1",
    "cause_depth_32": "Cause, depth 32",
    "host_share_depth_1": "The host's share, depth 1",
    "host_share_depth_32": "The host's share, depth 32",
    "splitting_measured_by": "Splitting measured on",
}
_PARAMETERS: Final = {
    "window_mib": "File",
    "command_kib": "Largest command",
    "degrees": "Pieces",
    "order": "Write order",
    "size_mib": "Region",
    "twin_host_per_command_us": "Host time added to a twin, per command",
    "twin_host_per_kib_us": "Per KiB, depth 1",
    "twin_host_deep_per_kib_us": "Per KiB, depth above 1",
    "twin_host_deep_first_us": "Before the first command, depth above 1",
}
VIEW: Final = View(
    "Cost of fragmentation", _table, _method, _pictures, _overview, _FINDINGS, _PARAMETERS
)

"""How runs of the fragments experiment are shown: their table, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.charts import Axis, Chart, Line, over_time
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, draw_figure
from ssdlab.wording import column, format_number, positive, quantity

_GAPS: Final = {"worst": "even gaps", "random": "random gaps"}
_PIECES: Final = Axis("pieces of the file", log=True)
_KEYS: Final = frozenset({"gap", "queue_depth", "degree", "read_ms", "read_ms_all"})
_ORDERS: Final = {
    "address": "all of the region in order of address, gaps and all, so that the pieces are as far "
    "apart in the drive's order of writing as in addresses",
    "file": "the pieces alone, in the order of the file, so that the drive has them in one stream "
    "wherever they lie in addresses",
}
_WORST: Final = (
    "Even gaps that are a multiple of the drive's stripe put all pieces on few dies: the worst "
    "case, made so on purpose. With random gaps, as files get them in use, the loss is far smaller."
)
_WRITTEN: Final = (
    "Only the order of writing decides where flash has the pieces. A file that was written in one "
    "go and divided later by its file system may be in order there."
)
_TWIN: Final = (
    "A twin has no host. The time of the study's host is added: one command at a time it comes on "
    "top, many at a time most of it passes while the drive works (--no-host leaves it out)."
)
_MEMORY: Final = (
    "The host alone is measured on a loop device over memory. Its own thread is part of that, so "
    "it is an upper bound."
)


def _measures(run: Run) -> list[dict[str, Any]]:
    """The rows; without those that lack what all of them have."""
    return [row for row in run.result.measures if row.keys() >= _KEYS]


def _table(run: Run) -> Table:
    """A row a depth and degree, a column a gap; what else was read is that of the first gap."""
    gaps = list(dict.fromkeys(row["gap"] for row in _measures(run)))
    columns = [Column("At a time"), Column("Pieces")]
    columns += [Column(_GAPS.get(gap, gap).capitalize(), "ms") for gap in gaps]
    columns += [Column("In order, same commands", "ms"), Column("Host alone", "ms")]
    places = sorted({(row["queue_depth"], row["degree"]) for row in _measures(run)})
    kept = [("read_ms", gap) for gap in gaps] + [("in_order_ms", gap) for gap in gaps[:1]]
    kept += [("host_ms", gap) for gap in gaps[:1]]
    texts = [column(_at(run, place, gap).get(key) for place in places) for key, gap in kept]
    rows = [(format_number(depth), format_number(degree)) for depth, degree in places]
    cells = (row + tuple(each) for row, each in zip(rows, zip(*texts, strict=True), strict=True))
    return Table(tuple(columns), tuple(cells))


def _at(run: Run, place: tuple[int, int], gap: str) -> dict[str, Any]:
    """The row of a depth and degree; empty where an interrupted run has none."""
    for row in _measures(run):
        if (row["queue_depth"], row["degree"], row["gap"]) == (*place, gap):
            return row
    return {}


def _rows(run: Run, gap: str, depth: int) -> list[dict[str, Any]]:
    return [row for row in _measures(run) if (row["gap"], row["queue_depth"]) == (gap, depth)]


def _lines(run: Run, depth: int) -> list[Line]:
    """What was read at a depth: by gap, then the same commands in order, then the host alone."""
    gaps = list(dict.fromkeys(row["gap"] for row in _measures(run)))
    found = [
        Line(
            _GAPS.get(gap, gap),
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
    return list(dict.fromkeys(row["queue_depth"] for row in _measures(run)))


def _pictures(run: Run, at: int) -> list[Picture]:
    """One run, with its number."""
    if not _measures(run):
        return []
    found: list[Picture] = []
    for depth in _depths(run):
        found += _picture(run, at, depth)
    return found + draw_figure(
        "Throughput through the run",
        "Everything the drive did, in order.",
        over_time(run, at).svg,
    )


def _picture(run: Run, at: int, depth: int) -> list[Picture]:
    time = Axis("time for 8 MiB, ms", log=True)
    return draw_figure(
        f"Time to read a file in pieces, {_at_a_time(depth)}",
        _caption(depth),
        Chart(f"fragments-{at}-{depth}", _PIECES, time, _lines(run, depth)).svg,
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


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    """Runs side by side; the first has the number `first`."""
    depths = dict.fromkeys(depth for run in runs for depth in _depths(run))
    return [picture for depth in depths for picture in _side_by_side(runs, first, depth)]


def _side_by_side(runs: Sequence[Run], first: int, depth: int) -> list[Picture]:
    ratio = Axis("times as long as in one piece", log=True)
    lines = [_slowdowns(run, number, depth) for number, run in enumerate(runs, first)]
    return draw_figure(
        f"What pieces cost, {_at_a_time(depth)}",
        "The time to read a file in pieces over that in one piece, with even gaps where they were "
        "measured; a line a run.",
        Chart(f"slowed-{first}-{depth}", _PIECES, ratio, lines).svg,
    )


def _slowdowns(run: Run, number: int, depth: int) -> Line:
    """In turn with each layout the file was read in one piece: over that."""
    gap = next((row["gap"] for row in _measures(run)), "")
    points = [
        (row["degree"], row["read_ms"] / whole)
        for row in _rows(run, gap, depth)
        if (whole := positive(row.get("whole_ms"))) is not None
    ]
    return Line(f"{number}: {run.result.target.removeprefix('twin:')}", points)


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    done = (
        f"A file of {quantity('window_mib', asked.get('window_mib'))} in "
        f"{quantity('', asked.get('degrees', []))} pieces, "
        f"{quantity('distance_bytes', asked.get('distance_bytes'))} from one to the next "
        f"({' and '.join(_GAPS.get(gap, gap) for gap in asked.get('gaps', []))}), was read by "
        "commands of up to "
        f"{quantity('command_kib', asked.get('command_kib'))}, "
        f"{quantity('', asked.get('queue_depths', []))} at a time, {asked.get('repeats')} times "
        "each. In turn with it the same commands read a file that lies in order, from its end to "
        "its start, so that nothing is read ahead. "
        f"Written was {_ORDERS.get(str(asked.get('order')), 'as the parameters say')}."
    )
    meaning = (
        "A slowdown is the time in the largest number of pieces over that in one. What the same "
        "commands take in order beyond it is request splitting; what the pieces take beyond that "
        "is die conflicts."
    )
    return Method(done, meaning, (_WORST, _WRITTEN, _TWIN if run.manifest.virtual else _MEMORY))


VIEW: Final = View(
    title="What a file in pieces costs to read",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={
        "slowdown_depth_1": "Slowdown, one at a time",
        "slowdown_depth_32": "Slowdown, 32 at a time",
        "slowdown_depth_1_random": "Slowdown, one at a time, random gaps",
        "slowdown_depth_32_random": "Slowdown, 32 at a time, random gaps",
        "cause": "Cause",
        "cause_depth_1": "Cause, one at a time",
        "cause_depth_32": "Cause, 32 at a time",
        "host_share_depth_1": "The host's share, one at a time",
        "host_share_depth_32": "The host's share, 32 at a time",
        "splitting_measured_by": "Splitting measured on",
    },
    parameter_labels={
        "window_mib": "File",
        "command_kib": "Largest command",
        "degrees": "Pieces",
        "gaps": "Gaps",
        "distance_bytes": "Distance",
        "order": "Order of writing",
        "size_mib": "Region",
        "queue_depths": "Queue depths",
        "repeats": "Repeats",
        "twin_host_per_command_us": "A twin's host, a command",
        "twin_host_per_kib_us": "A twin's host, a KiB, one at a time",
        "twin_host_deep_per_kib_us": "A twin's host, a KiB, many at a time",
        "twin_host_deep_first_us": "A twin's host before the first command, many at a time",
    },
)

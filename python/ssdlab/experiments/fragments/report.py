"""How runs of the fragments experiment are shown: their table, figures and words."""

from __future__ import annotations

from typing import Any, Final

from ssdlab.experiments.fragments.report_figures import GAPS, measures, overview, pictures
from ssdlab.records import Run
from ssdlab.view import Column, Method, Table, View
from ssdlab.wording import column, given, quantity

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


def _table(run: Run) -> Table:
    """A row a depth and degree, a column a gap; what else was read is that of the first gap."""
    gaps = list(dict.fromkeys(row["gap"] for row in measures(run)))
    columns = [Column("At a time"), Column("Pieces")]
    columns += [Column(GAPS.get(gap, gap).capitalize(), "ms") for gap in gaps]
    columns += [Column("In order, same commands", "ms"), Column("Host alone", "ms")]
    places = sorted({(row["queue_depth"], row["degree"]) for row in measures(run)})
    kept = [("read_ms", gap) for gap in gaps] + [("in_order_ms", gap) for gap in gaps[:1]]
    kept += [("host_ms", gap) for gap in gaps[:1]]
    texts = [column(_at(run, place, gap).get(key) for place in places) for key, gap in kept]
    rows = [(given(depth), given(degree)) for depth, degree in places]
    cells = (row + tuple(each) for row, each in zip(rows, zip(*texts, strict=True), strict=True))
    return Table(tuple(columns), tuple(cells))


def _at(run: Run, place: tuple[int, int], gap: str) -> dict[str, Any]:
    """The row of a depth and degree; empty where an interrupted run has none."""
    for row in measures(run):
        if (row["queue_depth"], row["degree"], row["gap"]) == (*place, gap):
            return row
    return {}


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    done = (
        f"A file of {quantity('window_mib', asked.get('window_mib'))} in "
        f"{quantity('', asked.get('degrees', []))} pieces, "
        f"{quantity('distance_bytes', asked.get('distance_bytes'))} from one to the next "
        f"({' and '.join(GAPS.get(gap, gap) for gap in asked.get('gaps', []))}), was read by "
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
    pictures=pictures,
    overview=overview,
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

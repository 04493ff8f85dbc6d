"""How runs of the fsync experiment are shown: their table, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.charts import Case, Value, over_time, values_by_case
from ssdlab.experiments.fsync.parameters import Fsync
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import NOTHING, format_number, number, plain, positive, quantity

_TRAP: Final = "sysbench trap"
_SHOWN: Final = "write, MiB/s"


def _table(run: Run) -> Table:
    rows = run.result.measures
    columns = (
        Column("Mode", numeric=False),
        Column("In flight"),
        Column("Read", "MiB/s"),
        Column("Write", "MiB/s"),
        Column("Kept", "MiB/s"),
        Column("Sync p50", "us"),
        Column("Sync p99", "us"),
        Column("Cached", "%"),
        Column("Of", numeric=False),
    )
    speeds = [
        [_speed(row.get(key)) for row in rows]
        for key in ("read_mib_per_s", "write_mib_per_s", "kept_mib_per_s")
    ]
    cells = [
        (
            plain(row.get("mode")),
            format_number(row.get("in_flight") or 0),
            *(each[at] for each in speeds),
            _latency(row.get("sync_us_p50")),
            _latency(row.get("sync_us_p99")),
            _cached(row),
            _measured(row),
        )
        for at, row in enumerate(rows)
    ]
    return Table(columns, tuple(cells))


def _speed(value: Any) -> str:
    found = positive(value)
    return NOTHING if found is None else f"{found:.1f}"


def _latency(value: Any) -> str:
    found = positive(value)
    return NOTHING if found is None else number(float(f"{found:.3g}"))


def _cached(row: dict[str, Any]) -> str:
    share = positive(row.get("cached_percent"), zero=True)
    return NOTHING if share is None else f"{share:.0f}"


def _measured(row: dict[str, Any]) -> str:
    """What the numbers of a row are numbers of."""
    if row.get("mode") == _TRAP:
        return "no drive"
    if not row.get("of_the_drive"):
        return "memory"
    return "drive" if row.get("cached_percent") is None else "both"


def _rows(run: Run) -> list[dict[str, Any]]:
    return [row for row in run.result.measures if positive(row.get("write_mib_per_s"))]


def _speeds(runs: Sequence[tuple[str, Run]]) -> list[Case]:
    found: dict[str, list[Value]] = {}
    for prefix, run in runs:
        for row in _rows(run):
            series = prefix or f"{row['in_flight']} in flight"
            faint = row.get("write_mib_per_s_all") or ()
            if not prefix or row["in_flight"] == 1:
                dot = Value(series, row["write_mib_per_s"], None, faint)
                found.setdefault(row["mode"], []).append(dot)
    return [Case(mode, dots, mode == _TRAP) for mode, dots in found.items()]


def _syncs(run: Run) -> list[Case]:
    found: dict[str, list[Value]] = {}
    for row in _rows(run):
        middle, late = (positive(row.get(key)) for key in ("sync_us_p50", "sync_us_p99"))
        if middle is not None:
            series = f"{row['in_flight']} in flight"
            found.setdefault(row["mode"], []).append(Value(series, middle, late))
    return [Case(mode, dots) for mode, dots in found.items()]


def _pictures(run: Run, at: int) -> list[Picture]:
    hollow = " The hollow dots are not to be believed." if _has_trap(run) else ""
    return [
        *drawn(
            "Writing with nothing, fsync, fdatasync or O_DSYNC after each write",
            "Large dots are medians, faint ones all repeats; the further left, the more each "
            f"write waits.{hollow}",
            values_by_case(f"fsync-speed-{at}", _SHOWN, _speeds([("", run)])).svg,
        ),
        *drawn(
            "How long a sync took",
            "From the median (dot) to the one in a hundred that took longest (end of the line).",
            values_by_case(f"fsync-sync-{at}", "time of a sync, us", _syncs(run)).svg,
        ),
        *drawn(
            "Throughput through the run",
            "Everything that was asked, in order; what lies higher than the drive's link was "
            "answered from memory.",
            over_time(run, at).svg,
        ),
    ]


def _has_trap(run: Run) -> bool:
    return any(row.get("mode") == _TRAP for row in run.result.measures)


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    named = [(f"{at}: {run.manifest.target}", run) for at, run in enumerate(runs, first)]
    return drawn(
        "What it costs to have each write kept",
        "One request after the other: the distance from none to the others is the penalty.",
        values_by_case(f"fsyncs-{first}", _SHOWN, _speeds(named)).svg,
    )


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    done = (
        f"A file of {quantity('size_mib', asked.get('size_mib'))} was written in order. Then reads "
        f"({quantity('share_percent', asked.get('read_share_percent'))}) and writes of "
        f"{quantity('block_kib', asked.get('block_kib'))} went over it at random for "
        f"{quantity('step_s', asked.get('step_s'))} or the size of the file, whichever was first, "
        f"{asked.get('repeats')} times in each mode and with "
        f"{quantity('', asked.get('in_flight', []))} in flight; the modes took turns. Before, "
        "flushes of nothing and flushes right after one write were timed."
    )
    meaning = (
        "The penalty is the writing past the page cache, one request after the other, over that "
        "with fsync after each write. The class says what a flush does: it waits for flash "
        "(volatile), it has no need to (protected: so the drive's maker says), or it is answered "
        "at once by a drive not known to be protected (ignores flush: a suspicion)."
    )
    own = () if run.manifest.virtual else (_MEMORY, _ZEROS, _JOURNAL)
    return Method(done, meaning, (_FAST, _SLOW, *own))


_FAST: Final = (
    "A fast flush proves nothing: capacitors and a lie take the same time. Only a power cut tells: "
    "ssdlab witness."
)
_SLOW: Final = (
    "Some drives with capacitors empty their cache at each flush all the same, and are classed "
    "volatile; their write cache switched off (hdparm -W 0) may make them much faster."
)
_MEMORY: Final = (
    "Buffered modes measure memory too: unsynced writes are done when they are in the page cache "
    "(Kept has the flush at the end in the time), and reads find what is there (Cached: the "
    "share of the file that was in memory after a step)."
)
_ZEROS: Final = (
    "The sysbench trap is what sysbench's fileio test does unless told not to: zeros through the "
    "page cache. Its numbers may exceed what the link can carry."
)
_JOURNAL: Final = (
    "In a directory fsync also writes the file system's journal; fdatasync often need not."
)


VIEW: Final = View(
    title="The price of having writes kept",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={
        "penalty": "Penalty of fsync",
        "class": "Write cache",
        "flush_us": "A flush after a write",
    },
    parameter_labels={
        **Fsync.labels(),
        "block_kib": "Requests",
        "read_share_percent": "Reads",
        "in_flight": "In flight",
        "step_s": "Longest step",
        "repeats": "Repeats",
    },
)

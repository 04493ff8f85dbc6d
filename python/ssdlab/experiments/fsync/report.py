"""The report of the fsync experiment: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab import view
from ssdlab.charts import Case, Value, values_by_case
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import NOTHING, format_number, number, positive

_TRAP: Final = "sysbench trap"
_WRITE_SPEED: Final = "write, MiB/s"
_FAST: Final = (
    "A fast flush proves nothing: a drive with power-loss protection and a drive that ignores the "
    "flush both answer at once. Only a power cut shows the difference; see ssdlab witness."
)
_SLOW: Final = (
    "Some drives with power-loss protection still empty their cache at each flush and are "
    "classified as volatile. Turning their write cache off (hdparm -W 0) may make them much faster."
)
_MEMORY: Final = (
    "Buffered modes measure memory too. Writes without a sync complete when they are in the page "
    "cache; the time in column Kept includes the flush at the end. Reads are answered from the "
    "page cache; column Cached is the share of the file in memory after a step."
)
_ZEROS: Final = (
    "The sysbench trap is what sysbench's fileio test does by default: it writes zeros through the "
    "page cache. Its numbers may exceed the bandwidth of the link."
)
_JOURNAL: Final = (
    "In a directory fsync also writes the file system's journal; fdatasync often does not need to."
)


def _table(run: Run) -> Table:
    rows = run.result.measures

    def speeds(key: str, label: str) -> tuple[Column, list[str]]:
        values = [positive(row.get(key)) for row in rows]
        return Column(label, "MiB/s"), [NOTHING if v is None else f"{v:.1f}" for v in values]

    def latencies(key: str, label: str) -> tuple[Column, list[str]]:
        values = [positive(row.get(key)) for row in rows]
        texts = [NOTHING if v is None else number(float(f"{v:.3g}")) for v in values]
        return Column(label, "us"), texts

    cached = [positive(row.get("cached_percent"), zero=True) for row in rows]
    return Table.of_columns(
        view.text_column(rows, "mode", "Mode"),
        (Column("In flight"), [format_number(row.get("in_flight") or 0) for row in rows]),
        speeds("read_mib_per_s", "Read"),
        speeds("write_mib_per_s", "Write"),
        speeds("kept_mib_per_s", "Kept"),
        latencies("sync_us_p50", "Sync p50"),
        latencies("sync_us_p99", "Sync p99"),
        (Column("Cached", "%"), [NOTHING if v is None else f"{v:.0f}" for v in cached]),
        (Column("Measures", numeric=False), [_measured(row) for row in rows]),
    )


def _measured(row: dict[str, Any]) -> str:
    """Whether the numbers of a row are those of the drive, of memory, or of both."""
    if row.get("mode") == _TRAP:
        return "no drive"
    if not row.get("of_the_drive"):
        return "memory"
    return "drive" if row.get("cached_percent") is None else "both"


def _rows(run: Run) -> list[dict[str, Any]]:
    return [row for row in run.result.measures if positive(row.get("write_mib_per_s"))]


def _speeds(runs: Sequence[tuple[str, Run]]) -> list[Case]:
    """Write speeds by mode, a series per queue depth, or per run at queue depth 1."""
    cases: dict[str, list[Value]] = {}
    for name, run in runs:
        for row in _rows(run):
            if not name or row["in_flight"] == 1:
                series = name or f"{row['in_flight']} in flight"
                repeats = row.get("write_mib_per_s_all") or ()
                value = Value(series, row["write_mib_per_s"], None, repeats)
                cases.setdefault(row["mode"], []).append(value)
    return [Case(mode, values, mode == _TRAP) for mode, values in cases.items()]


def _syncs(run: Run) -> list[Case]:
    cases: dict[str, list[Value]] = {}
    for row in _rows(run):
        median, p99 = (positive(row.get(key)) for key in ("sync_us_p50", "sync_us_p99"))
        if median is not None:
            value = Value(f"{row['in_flight']} in flight", median, p99)
            cases.setdefault(row["mode"], []).append(value)
    return [Case(mode, values) for mode, values in cases.items()]


def _pictures(run: Run, number: int) -> list[Picture]:
    has_trap = any(row.get("mode") == _TRAP for row in run.result.measures)
    hollow = " Hollow dots do not measure the drive." if has_trap else ""
    return [
        *view.draw_figure(
            "Write speed without sync, and with fsync, fdatasync or O_DSYNC for each write",
            "Large dots are medians, faint dots all repeats. Further left means that each write "
            f"waits longer.{hollow}",
            values_by_case(f"fsync-speed-{number}", _WRITE_SPEED, _speeds([("", run)])).svg,
        ),
        *view.draw_figure(
            "Sync latency",
            "From the median (dot) to the 99th percentile (end of the line).",
            values_by_case(f"fsync-sync-{number}", "latency of a sync, us", _syncs(run)).svg,
        ),
        *view.draw_throughput(
            run, number, "Throughput above the link's bandwidth comes from memory."
        ),
    ]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    named = [(f"{at}: {run.manifest.target}", run) for at, run in enumerate(runs, first)]
    return view.draw_figure(
        "Cost of making each write durable",
        "One request at a time. The ratio of none to the other modes is the penalty.",
        values_by_case(f"fsyncs-{first}", _WRITE_SPEED, _speeds(named)).svg,
    )


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    done = (
        f"A file of {text('size_mib')} was written sequentially. Then reads "
        f"({text('read_share_percent')}) and writes of {text('block_kib')} were sent to random "
        f"offsets, for {text('step_s')} or until the size of the file was transferred, "
        f"{text('repeats')} times in each mode and with {text('in_flight')} in flight; the modes "
        "took turns. Before that, flushes with nothing to flush and flushes directly after a write "
        "were timed."
    )
    meaning = (
        "The penalty is the speed of direct writes, one at a time, divided by the speed with "
        "fsync after each write. The class says what a flush does. Volatile: it waits for the "
        "flash. Protected: it need not wait, because the drive has power-loss protection, "
        "according to its maker. Ignores flush: it is answered at once by a drive whose cache is "
        "stated to be volatile, which is a suspicion. Protected or ignores flush: it is answered "
        "at once, and nothing states whether the drive is protected."
    )
    own = () if run.manifest.virtual else (_MEMORY, _ZEROS, _JOURNAL)
    return Method(done, meaning, (_FAST, _SLOW, *own))


_FINDINGS: Final = {
    "penalty": "Penalty of fsync",
    "class": "Write cache",
    "flush_us": "A flush after a write",
}
_PARAMETERS: Final = {
    "block_kib": "Requests",
    "read_share_percent": "Reads",
    "step_s": "Longest step",
}
VIEW: Final = View(
    "Cost of durable writes", _table, _method, _pictures, _overview, _FINDINGS, _PARAMETERS
)

"""The report of the cache experiment: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab import view
from ssdlab.charts import Axis, Chart, Line, Mark, rule
from ssdlab.records import Run
from ssdlab.units import format_duration
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import column

_ROWS_PER_CURVE: Final = 5
"""Rows of a curve in the table; the figure and the JSON have all of them."""


def _curves(run: Run) -> dict[str, list[dict[str, Any]]]:
    """The rows of each pass by its name; passes are sorted by the idle time before them."""
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(run.result.measures, key=lambda row: row.get("rest_s") or 0.0):
        case = str(row.get("case", ""))
        name = {"first": "fresh", "flushed": "after a flush"}.get(case, case)
        if rest_s := row.get("rest_s"):
            name = f"after {format_duration(rest_s)}"
        curves.setdefault(name, []).append(row)
    return curves


def _table(run: Run) -> Table:
    rows = []
    for name, curve in _curves(run).items():
        step = max(1, len(curve) // _ROWS_PER_CURVE)
        chosen = curve[step - 1 :: step]
        speeds = column(row["write_mib_per_s"] for row in chosen)
        written = column(row["written_mib"] for row in chosen)
        rows += [(name, *cells) for cells in zip(written, speeds, strict=True)]
    heads = (Column("Writes", numeric=False), Column("Written", "MiB"), Column("Speed", "MiB/s"))
    return Table(heads, tuple(rows))


def _lines(run: Run, prefix: str = "") -> list[Line]:
    return [
        Line(prefix + name, [(row["written_mib"], row["write_mib_per_s"]) for row in curve])
        for name, curve in _curves(run).items()
    ]


def _finding(run: Run, name: str) -> float | None:
    finding = run.result.findings.get(name)
    return finding.value if finding is not None and isinstance(finding.value, float) else None


def _rules(run: Run) -> list[Mark]:
    """Lines at the bytes where the buffer and the SLC cache are full."""
    buffer, cache = _finding(run, "buffer_mib"), _finding(run, "slc_mib")
    rules = [] if buffer is None else [rule(buffer, label="buffer")]
    return rules if cache is None else [*rules, rule(cache + (buffer or 0.0), label="SLC cache")]


def _speeds(name: str, marks: Sequence[Line | Mark]) -> Chart:
    return Chart(name, Axis("written, MiB", log=True), Axis("speed, MiB/s", log=True), marks)


def _pictures(run: Run, number: int) -> list[Picture]:
    return [
        *view.draw_figure(
            "Write speed by amount written",
            "One line for each series of writes. Each step down means that something is full: "
            "first the buffer, then the SLC cache. The longer the idle time before, the further "
            "right the last step is.",
            _speeds(f"cache-{number}", [*_lines(run), *_rules(run)]).svg,
        ),
        *_refilled(run, number),
        *view.draw_throughput(run, number),
    ]


def _refilled(run: Run, number: int) -> list[Picture]:
    """The MiB written before the speed fell to the sustained speed, by idle time."""
    sustained = _finding(run, "lasting_mib_per_s")
    if sustained is None:
        return []
    fast: dict[float, float] = {}
    for row in run.result.measures:
        # Halfway, on a logarithmic scale, between the sustained speed and twice this speed.
        if (rest_s := row.get("rest_s")) and row["write_mib_per_s"] > 1.4 * sustained:
            fast[rest_s] = max(fast.get(rest_s, 0.0), row["written_mib"])
    x, y = Axis("idle time before, s", log=True), Axis("written fast, MiB")
    return view.draw_figure(
        "Cache available after idle time",
        "The amount that the drive accepted before it fell to its sustained speed.",
        Chart(f"cache-rest-{number}", x, y, [Line("written fast", list(fast.items()))]).svg,
    )


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = view.lines_of_runs(runs, first, lambda run, prefix: _lines(run, prefix)[:1])
    return view.draw_figure(
        "Write speed by amount written, first series",
        "One line for each run, on the drive as it was at the start.",
        _speeds(f"caches-{first}", lines).svg,
    )


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    done = (
        f"After an idle time of {text('settle_s')}, a region of {text('size_mib')} was written "
        f"sequentially by requests of {text('write_block_kib')} at queue depth "
        f"{text('write_queue_depth')}. Where the speed fell, a cache was full. Then a little more "
        "than that was written again, directly after a flush and after other idle times."
    )
    meaning = (
        "The buffer is memory: the amount accepted faster than the flash can store it. Pages that "
        "are being programmed still occupy it, so its size is known within an interval. The SLC "
        "cache is flash that stores one bit per cell: the rest of what was accepted before the "
        "last fall of the speed. Refill is the shortest idle time after which the whole cache is "
        "available again."
    )
    pitfalls = (
        "A cache that uses free flash is smaller on a full drive; the size is that during the run.",
        "Thermal throttling and the I/O budget of a virtual disk look just like a full cache.",
        "The refill time is known only as an interval between two of the idle times.",
    )
    return Method(done, meaning, pitfalls)


_FINDINGS: Final = {
    "slc_mib": "SLC cache",
    "refill_s": "Refilled by an idle time of",
    "buffered_mib_per_s": "Speed until the buffer is full",
    "cached_mib_per_s": "Speed until the cache is full",
    "lasting_mib_per_s": "Sustained speed",
}
_PARAMETERS: Final = {
    "write_block_kib": "Requests",
    "write_queue_depth": "Queue depth",
    "settle_s": "Idle before the first series",
    "rest_most_s": "Longest idle time",
}
VIEW: Final = View(
    "Write buffer and SLC cache", _table, _method, _pictures, _overview, _FINDINGS, _PARAMETERS
)

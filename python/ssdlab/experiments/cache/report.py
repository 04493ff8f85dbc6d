"""How runs of the cache experiment are shown: their table, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.charts import Axis, Chart, Line, Mark, over_time, rule
from ssdlab.experiments.cache.parameters import Cache
from ssdlab.records import Run
from ssdlab.units import format_duration
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import column, quantity

_SHOWN: Final = 5  # rows of a curve in the table
_NAMES: Final = {"first": "fresh", "flushed": "after a flush"}


def _curves(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Rows of each writing by its name, in the order of the run but rests by their length."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(run.result.measures, key=lambda row: row.get("rest_s") or 0.0):
        found.setdefault(_named(row), []).append(row)
    return found


def _named(row: dict[str, Any]) -> str:
    rest_s = row.get("rest_s")
    if rest_s:
        return f"after {format_duration(rest_s)}"
    return _NAMES.get(row.get("case", ""), str(row.get("case", "")))


def _table(run: Run) -> Table:
    """Some points of each curve: they are finer in the figure and in the JSON."""
    rows = []
    for name, curve in _curves(run).items():
        step = max(1, len(curve) // _SHOWN)
        chosen = curve[step - 1 :: step]
        speeds = column(row["write_mib_per_s"] for row in chosen)
        places = column(row["written_mib"] for row in chosen)
        rows += [(name, *cells) for cells in zip(places, speeds, strict=True)]
    heads = (Column("Writing", "", numeric=False), Column("Written", "MiB"))
    return Table((*heads, Column("Speed", "MiB/s")), tuple(rows))


def _lines(run: Run, prefix: str = "") -> list[Line]:
    return [
        Line(prefix + name, [(row["written_mib"], row["write_mib_per_s"]) for row in curve])
        for name, curve in _curves(run).items()
    ]


def _rules(run: Run) -> list[Mark]:
    found = run.result.findings
    buffer, cache = (
        found[name].value if name in found else None for name in ("buffer_mib", "slc_mib")
    )
    rules = [rule(buffer, label="buffer")] if isinstance(buffer, float) else []
    if isinstance(cache, float):
        held = buffer if isinstance(buffer, float) else 0.0
        rules.append(rule(cache + held, label="SLC cache"))
    return rules


def _speeds(name: str, marks: Sequence[Line | Mark]) -> Chart:
    return Chart(name, Axis("written, MiB", log=True), Axis("speed, MiB/s", log=True), marks)


def _pictures(run: Run, at: int) -> list[Picture]:
    return [
        *drawn(
            "Speed while more and more is written",
            "A line a writing. Where a line steps down, something is full: first the buffer, then "
            "the SLC cache. The rest before a writing decides how far right its last step is.",
            _speeds(f"cache-{at}", [*_lines(run), *_rules(run)]).svg,
        ),
        *_given_back(run, at),
        *drawn(
            "Throughput through the run",
            "Everything the drive did, in order; dotted lines are rests.",
            over_time(run, at).svg,
        ),
    ]


def _given_back(run: Run, at: int) -> list[Picture]:
    """How much was fast after each rest: the last place at twice the lasting speed or more."""
    lasting = run.result.findings.get("lasting_mib_per_s")
    if lasting is None or not isinstance(lasting.value, float):
        return []
    points = [
        (row["rest_s"], row["written_mib"])
        for row in run.result.measures
        if row.get("rest_s") and row["write_mib_per_s"] > 1.4 * lasting.value
    ]
    last = {rest_s: max(mib for each, mib in points if each == rest_s) for rest_s, _ in points}
    x, y = Axis("rest before, s", log=True), Axis("taken at speed, MiB")
    chart = Chart(f"cache-rest-{at}", x, y, [Line("taken", list(last.items()))])
    return drawn(
        "What a rest gives back",
        "How much the drive took before its lasting speed, after rests of that length.",
        chart.svg,
    )


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = [line for at, run in enumerate(runs, first) for line in _lines(run, f"{at}: ")[:1]]
    return drawn(
        "How much each takes at speed",
        "The first writing of each run.",
        _speeds(f"caches-{first}", lines).svg,
    )


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    block, depth = (
        quantity("write_block_kib", asked.get("write_block_kib")),
        quantity("", asked.get("write_queue_depth")),
    )
    done = (
        f"A region of {quantity('size_mib', asked.get('size_mib'))} was written in order by "
        f"requests of {block}, {depth} at a time, after a rest of "
        f"{quantity('settle_s', asked.get('settle_s'))}. Where the speed fell something was full. "
        "Then as much and some more was written again, right after a flush and after rests of "
        "other lengths."
    )
    meaning = (
        "The buffer is memory: what goes in beyond the flash's own rate right after a flush. The "
        "SLC cache is flash that keeps one bit a cell for a while: what else goes in before the "
        "last fall. Refill is the shortest rest after which all of it is there again."
    )
    pitfalls = (
        "A cache that borrows free flash is smaller on a full drive; this is what it was now.",
        "What throttles by heat, or by a budget of a virtual disk, falls just like a cache.",
        "Refill is told within the factor between two rests, as its bounds say.",
    )
    return Method(done, meaning, pitfalls)


VIEW: Final = View(
    title="Write buffer and SLC cache",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={
        "buffer_mib": "Buffer",
        "slc_mib": "SLC cache",
        "refill_s": "Refilled by a rest of",
        "lasting_mib_per_s": "Speed behind them",
    },
    parameter_labels={
        **Cache.labels(),
        "write_block_kib": "Requests",
        "write_queue_depth": "Queue depth",
        "settle_s": "Rest before the first writing",
        "rest_most_s": "Longest rest tried",
    },
)

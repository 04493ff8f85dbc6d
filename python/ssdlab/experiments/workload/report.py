"""How runs of a workload are shown: their table, figure and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.charts import Axis, Chart, Line, over_time
from ssdlab.experiments.workload.parameters import Workload
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import NOTHING, column, plain, quantity

_BEYOND: Final = {"p50": 2, "p99": 100, "p999": 1000, "p9999": 10_000}
"""One request in so many takes longer than the percentile."""


def _table(run: Run) -> Table:
    rows = run.result.measures
    names = [("iops", "IOPS", "/s"), ("mib_per_s", "Speed", "MiB/s")]
    names += [(f"latency_us_{part}", part, "us") for part in _BEYOND]
    columns = [Column("Job", numeric=False), Column("Kind", numeric=False)]
    columns += [Column(_named(head), unit) for _, head, unit in names]
    columns += [Column("Errors"), Column("Unserved")]
    texts = [column(row.get(key) for row in rows) for key, _, _ in names]
    cells = []
    for at, row in enumerate(rows):
        counts = (_count(row.get("errors")), _count(row.get("unserved")))
        cells.append((plain(row["job"]), row["op"], *(text[at] for text in texts), *counts))
    return Table(tuple(columns), tuple(cells))


def _named(part: str) -> str:
    return {"p999": "p99.9", "p9999": "p99.99"}.get(part, part)


def _count(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _lines(rows: Sequence[dict[str, Any]], prefix: str = "") -> list[Line]:
    found = []
    for row in rows:
        told = [(beyond, row.get(f"latency_us_{part}")) for part, beyond in _BEYOND.items()]
        points = [(float(beyond), us) for beyond, us in told if us is not None]
        found.append(Line(f"{prefix}{row['job']} {row['op']}", points))
    return found


def _chart(name: str, lines: Sequence[Line]) -> Chart:
    x = Axis("one request in so many takes longer", log=True)
    return Chart(name, x, Axis("latency, us", log=True), lines)


def _pictures(run: Run, at: int) -> list[Picture]:
    return [
        *drawn(
            "How long requests took",
            "Half of them took longer than the first point of a line, one in a hundred longer "
            "than the second, and so on as far as the number of requests supports it.",
            _chart(f"workload-{at}", _lines(run.result.measures)).svg,
        ),
        *drawn(
            "Throughput through the run",
            "Everything the drive did, in order: first the region was written where it is read.",
            over_time(run, at).svg,
        ),
    ]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    together = [
        line
        for number, run in enumerate(runs, first)
        for line in _lines(run.result.measures, f"{number}: ")
    ]
    return drawn(
        "How long requests took",
        "The percentiles of each job and kind of request, all runs together.",
        _chart(f"workloads-{first}", together).svg,
    )


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    jobs = plain(", ".join(map(str, asked.get("jobs", []))))
    done = (
        f"The jobs of the fio job file {plain(asked.get('fio'))} ({jobs}) ran one after the other "
        f"on the target, in its first {quantity('size_mib', asked.get('size_mib'))}. Where a job "
        "reads, and in a test file always, the whole of that was written first, in order, by "
        "requests of 1 MiB, and flushed."
    )
    meaning = (
        "A latency counts from when a request was due (with a rate) or put until it was done: what "
        "fio calls lat. A percentile is told where more than ten requests lie beyond it; a dash "
        "says that there were fewer. Unserved are requests of a rate that were due and never "
        "started: the rate was too high."
    )
    pitfalls = (
        "One run is one run: where the load is not steady, the next differs, of fio too.",
        "With direct=0 the page cache answers.",
        "A short job on a fresh drive tells of its cache, not of what it can do for long.",
    )
    return Method(done, meaning, pitfalls)


VIEW: Final = View(
    title="The jobs of a fio job file",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={
        "iops": "Requests",
        "mib_per_s": "Throughput",
        "latency_us_p50": "Latency, half of all",
        "latency_us_p99": "Latency, 99 % of all",
    },
    parameter_labels={**Workload.labels(), "jobs": "Jobs", "size_mib": "Region"},
)

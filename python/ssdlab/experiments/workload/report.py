"""The report of a workload: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ssdlab import view
from ssdlab.charts import Axis, Chart, Line
from ssdlab.experiments.workload.analysis import amplification_curve
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import NOTHING, plain

_PERCENTILES: Final = {"p50": 2, "p99": 100, "p999": 1000, "p9999": 10_000}
"""One in this number of requests is slower than the percentile."""


def _table(run: Run) -> Table:
    rows = run.result.measures
    labels = {"p999": "p99.9", "p9999": "p99.99"}
    counts = {"errors": "Errors", "unserved": "Unserved"}
    return Table.of_columns(
        view.text_column(rows, "job", "Job"),
        view.text_column(rows, "op", "Kind"),
        view.number_column(rows, "iops", "IOPS", "/s"),
        view.number_column(rows, "mib_per_s", "Speed", "MiB/s"),
        *(
            view.number_column(rows, f"latency_us_{name}", labels.get(name, name), "us")
            for name in _PERCENTILES
        ),
        *([view.number_column(rows, "waf", "WAF")] if _amplified(rows) else []),
        *(
            (
                Column(label, minor=not any(row.get(key) for row in rows)),
                [str(NOTHING if row.get(key) is None else row[key]) for row in rows],
            )
            for key, label in counts.items()
        ),
    )


def _amplified(rows: view.Rows) -> bool:
    return any(row.get("waf") is not None for row in rows)


def _amplification_chart(run: Run, number: int) -> Chart:
    steps = [row for row in run.tables["steps"].to_pylist() if row["phase"] == "job"]
    curves = [(step["case"], amplification_curve(run.tables, step)) for step in steps]
    lines = [Line(plain(case), curve) for case, curve in curves if curve]
    x, y = Axis("time since the start of the job, s"), Axis("write amplification", least=1.5)
    return Chart(f"workload-waf-{number}", x, y, lines)


def _lines(run: Run, prefix: str = "") -> list[Line]:
    lines = []
    for row in run.result.measures:
        latencies = [(n, row.get(f"latency_us_{name}")) for name, n in _PERCENTILES.items()]
        points = [(float(n), us) for n, us in latencies if us is not None]
        lines.append(Line(f"{prefix}{row['job']} {row['op']}", points))
    return lines


def _chart(name: str, lines: Sequence[Line]) -> Chart:
    x = Axis("one request in this many is slower", log=True)
    return Chart(name, x, Axis("latency, us", log=True), lines)


def _pictures(run: Run, number: int) -> list[Picture]:
    amplification = view.draw_figure(
        "Write amplification",
        "Bytes programmed to the flash for each byte that the host wrote, interval by interval. "
        "It rises when garbage collection starts.",
        _amplification_chart(run, number).svg,
    )
    return (
        amplification
        + view.draw_figure(
            "Request latency",
            "Half of the requests were slower than the first point of a line (p50), one in a "
            "hundred was slower than the second (p99), and so on as far as the number of requests "
            "allows.",
            _chart(f"workload-{number}", _lines(run)).svg,
        )
        + view.draw_throughput(run, number, "Regions that are read were written first.")
    )


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    return view.draw_figure(
        "Request latency",
        "Latency percentiles of each job and kind of request, in all runs.",
        _chart(f"workloads-{first}", view.lines_of_runs(runs, first, _lines)).svg,
    )


def _method(run: Run) -> Method:
    if "fio" in run.manifest.versions:
        return _method_of_fio()
    text = view.parameter_texts(run)
    done = (
        f"The jobs of the fio job file {text('fio')} ({text('jobs')}) ran one after the other in "
        f"the first {text('size_mib')} of the target. If a job reads, and always in a test file, "
        "this region was first written sequentially by requests of 1 MiB and flushed."
    )
    meaning = (
        "Latency is what fio calls lat: the time from submitting a request, or from the time it "
        "was due if the job has a rate, to its completion. A percentile is reported only if more "
        "than ten requests were slower; otherwise the table has a dash. Unserved requests were due "
        "but never started, because the rate was too high."
    )
    pitfalls = (
        "One run does not show how much results vary from run to run.",
        "With direct=0 the page cache answers requests.",
        "A short job on a fresh drive measures its cache, not its sustained speed.",
    )
    return Method(done, meaning, pitfalls)


def _method_of_fio() -> Method:
    done = (
        "fio measured this, and ssdlab read its results. The options of the jobs are those that "
        "fio recorded."
    )
    meaning = (
        "IOPS and percentiles are fio's: of lat if it recorded them (lat_percentiles=1), else of "
        "clat, which starts at submission. A percentile is reported only if more than ten requests "
        "were slower; otherwise the table has a dash."
    )
    pitfalls = (
        "fio does not check that what it reads was written: unwritten extents answer from memory.",
        "Nothing is known of the drive, its file system or its temperature.",
        "One run does not show how much results vary from run to run.",
    )
    return Method(done, meaning, pitfalls)


_FINDINGS: Final = {
    "iops": "Requests",
    "mib_per_s": "Throughput",
    "latency_us_p50": "Median latency",
    "latency_us_p99": "99th percentile of latency",
    "waf": "Write amplification",
}
_PARAMETERS: Final = {"size_mib": "Region"}
VIEW: Final = View("fio jobs", _table, _method, _pictures, _overview, _FINDINGS, _PARAMETERS)

"""The report of one side of an interleaved comparison: its turns and how they were run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ssdlab import view
from ssdlab.charts import Axis, Chart, Line
from ssdlab.experiments import generic_report as generic
from ssdlab.records import Run
from ssdlab.view import Method, Picture
from ssdlab.wording import plain


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    done = (
        f"The jobs {text('jobs')} ran {text('turns')} times, alternating with the other sides; the "
        "order of the sides within each turn was random. Before that, regions that jobs read, and "
        f"test files always, were written ({text('size_mib')}), and each side ran one turn that is "
        "not counted."
    )
    meaning = (
        "Each turn of one side is paired with the same turn of the other. The ratio is the "
        "Hodges-Lehmann estimate from the ratios of the pairs; its interval and p-value are those "
        "of the Wilcoxon signed-rank test. Two equal sides appear to differ in 5 % of comparisons."
    )
    pitfalls = (
        "Short turns measure caches and the effect of idle time; sustained load needs long turns.",
        "Two directories on one drive affect each other: one side waits for writes of the other.",
    )
    return Method(done, meaning, pitfalls)


def _lines(run: Run, prefix: str) -> list[Line]:
    points: dict[str, list[tuple[float, float]]] = {}
    for row in run.result.measures:
        if row["iops"]:
            job, op = plain(row["job"]), row["op"]
            label = prefix + (job if op in job else f"{job} {op}")
            points.setdefault(label, []).append((float(row["turn"] + 1), row["iops"]))
    return [Line(label, rates) for label, rates in points.items()]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = view.lines_of_runs(runs, first, _lines)
    return view.draw_figure(
        "Request rate by turn",
        "A change that all lines share comes from the machine, not from one side.",
        Chart(f"turns-{first}", Axis("turn", whole=True), Axis("requests/s", log=True), lines).svg,
    )


VIEW: Final = replace(
    generic.VIEW,
    title="Interleaved comparison",
    method=_method,
    overview=_overview,
    finding_labels={
        "iops": "Requests",
        "mib_per_s": "Throughput",
        "latency_us_p50": "Median latency",
        "latency_us_p99": "99th percentile of latency",
    },
    parameter_labels={"fio": "Job file"},
    # One side alone cannot be repeated.
    command=lambda run: f"ssdlab compare --interleave {plain(run.manifest.target)} ...",
)

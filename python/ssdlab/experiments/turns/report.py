"""How one side of a comparison in turns is shown: its turns, and how they were taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ssdlab.charts import Axis, Chart, Line
from ssdlab.experiments import generic_report as generic
from ssdlab.records import Run
from ssdlab.view import Method, Picture, drawn
from ssdlab.wording import plain, quantity


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    jobs = plain(", ".join(map(str, asked.get("jobs", []))))
    done = (
        f"The jobs {jobs} ran {asked.get('turns')} times, in turns with the other sides; chance "
        "chose who came first in each turn. What jobs read, and a test file always, was written "
        f"before ({quantity('size_mib', asked.get('size_mib'))}), and one turn of each ran that "
        "does not count."
    )
    meaning = (
        "Each turn of one side is a pair with the same turn of the other. The ratio is the middle "
        "of the pairs' ratios (Hodges and Lehmann), its bounds and its chance those of the pairs' "
        "signed ranks (Wilcoxon): whatever else happens on the machine, equal sides exceed them in "
        "5 % of comparisons."
    )
    pitfalls = (
        "A turn is short: it tells of caches and idle time; of lasting load only long turns do.",
        "Two directories of one drive share it: what one side writes, the other side waits for.",
    )
    return Method(done, meaning, pitfalls)


def _lines(rows: Sequence[dict[str, Any]], prefix: str = "") -> list[Line]:
    cases = dict.fromkeys((row["job"], row["op"]) for row in rows)
    return [
        Line(
            f"{prefix}{plain(job)} {op}",
            [
                (float(row["turn"] + 1), row["iops"])
                for row in rows
                if (row["job"], row["op"]) == (job, op) and row["iops"]
            ],
        )
        for job, op in cases
    ]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = [
        line
        for at, run in enumerate(runs, first)
        for line in _lines(run.result.measures, f"{at}: ")
    ]
    rate = Axis("requests a second", log=True)
    return drawn(
        "Turn by turn",
        "The rate of each turn. What moves all lines alike is the machine and not a side.",
        Chart(f"turns-{first}", Axis("turn"), rate, lines).svg,
    )


def _again(run: Run) -> str:
    """One side alone has no command of its own."""
    return f"ssdlab compare --interleave {plain(run.manifest.target)} ..."


VIEW: Final = replace(
    generic.VIEW,
    title="In turns",
    method=_method,
    overview=_overview,
    finding_labels={
        "iops": "Requests",
        "mib_per_s": "Throughput",
        "latency_us_p50": "Half within",
        "latency_us_p99": "99 % within",
    },
    parameter_labels={"fio": "Job file", "turns": "Turns", "session": "Session"},
    command=_again,
)

"""How runs of the suite are shown: its table, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.charts import Case, Value, over_time, values_by_case
from ssdlab.experiments.suite.parameters import Suite
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import NOTHING, column, plain, positive, quantity

_SHOWN: Final = "throughput, MiB/s"
_FRESH: Final = (
    "A quarter of the file is written at random at most: a drive whose cache of fast flash holds "
    "that is shown at its best. The steady experiment shows what is left after hours."
)
_ERROR: Final = (
    "The error is the mean absolute deviation of three runs, as such tables print it: about two "
    "thirds of a standard deviation, and no bound of anything."
)
_BUFFERED: Final = (
    "Buffered tests go through a page cache that was emptied of the file, as if memory were full: "
    "reading ahead and writing in pieces are the kernel's."
)
_BELOW: Final = (
    "A file system or a host that compresses makes zeros fast on any drive; see the warnings."
)


def _table(run: Run) -> Table:
    rows = run.result.measures
    columns = (
        Column("Test", numeric=False),
        Column("Op", numeric=False),
        Column("Runs"),
        Column("Mean"),
        Column("Error"),
        Column("Error", "%"),
        Column("Unit", numeric=False),
    )
    cells = [
        (
            plain(row.get("test")),
            plain(row.get("op")),
            " ".join(column(_all(row))) or NOTHING,
            *(column([positive(row.get(key), zero=True)])[0] for key in ("mean", "error")),
            f"{positive(row.get('error_percent'), zero=True) or 0:.1f}",
            plain(row.get("unit")),
        )
        for row in rows
    ]
    return Table(columns, tuple(cells))


def _all(row: dict[str, Any]) -> list[float]:
    """The runs of a row in its unit."""
    listed = row.get("us_all") or row.get("mib_per_s_all") or ()
    return [value for value in map(positive, listed) if value is not None]


def _rows(runs: Sequence[tuple[str, Run]], op: str | None = None) -> list[Case]:
    found: dict[str, list[Value]] = {}
    for prefix, run in runs:
        for row in run.result.measures:
            mean = positive(row.get("mean"))
            if mean is not None and row.get("unit") == "MiB/s" and op in {None, row["op"]}:
                dot = Value(prefix or row["op"], mean, None, _all(row))
                found.setdefault(row["test"], []).append(dot)
    return [Case(test, dots) for test, dots in found.items()]


def _pictures(run: Run, at: int) -> list[Picture]:
    return [
        *drawn(
            "The tests and their runs",
            "Large dots are means, faint ones the runs. Zeros stand apart from random data where "
            "the controller compresses.",
            values_by_case(f"suite-{at}", _SHOWN, _rows([("", run)])).svg,
        ),
        *drawn(
            "Throughput through the run",
            "Everything the drive did, in order.",
            over_time(run, at).svg,
        ),
    ]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    return [*_together(runs, first, "read"), *_together(runs, first, "write")]


def _together(runs: Sequence[Run], first: int, op: str) -> list[Picture]:
    named = [(f"{at}: {run.manifest.target}", run) for at, run in enumerate(runs, first)]
    return drawn(
        f"All runs, {op}",
        "The further right, the faster.",
        values_by_case(f"suites-{op}-{first}", _SHOWN, _rows(named, op)).svg,
    )


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    done = (
        f"A file of {quantity('size_mib', asked.get('size_mib'))} was written and read in order by "
        "1 MiB, 8 at a time, and at random by 4 KiB, one and 64 at a time; the access time is that "
        f"of single sectors. Random tests ended after {quantity('step_s', asked.get('step_s'))} "
        "or a quarter of the file. Then the same with zeros. The whole was done "
        f"{asked.get('runs')} times, all past the page cache but for the buffered tests; dsync is "
        "a write that is done when it is kept."
    )
    meaning = (
        "Content sensitive says whether some test is at least 1.1 times as fast with zeros as with "
        "random data, beyond the scatter of the runs: then the controller compresses or elides."
    )
    own = () if run.manifest.virtual else (_BUFFERED, _BELOW)
    return Method(done, meaning, (_FRESH, _ERROR, *own))


VIEW: Final = View(
    title="The table people know",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={"content_sensitive": "Faster with zeros"},
    parameter_labels={**Suite.labels(), "step_s": "Longest random test", "runs": "Runs"},
)

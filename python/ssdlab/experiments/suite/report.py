"""The report of the suite: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab import view
from ssdlab.charts import Case, Chart, Value, values_by_case
from ssdlab.experiments.suite.analysis import CRYSTALDISKMARK
from ssdlab.records import Run
from ssdlab.view import Column, KeyNumber, Method, Picture, Table, View
from ssdlab.wording import NOTHING, column, number, plain, positive

_SPEED: Final = "throughput, MiB/s"
_FRESH: Final = (
    "Random tests write at most a quarter of the file. A drive whose SLC cache holds that much "
    "shows its best speed; the steady experiment measures the sustained speed."
)
_ERROR: Final = (
    "The error is the mean absolute deviation of the runs, as such tables print it. For three runs "
    "it is about two thirds of the standard deviation; it is not a confidence interval."
)
_BUFFERED: Final = (
    "Buffered tests use the page cache, after the file was evicted from it. They include the "
    "kernel's read-ahead and its splitting of writes."
)
_COMPRESSION: Final = (
    "A file system or host that compresses makes zeros fast on any drive; see the warnings."
)


def _table(run: Run) -> Table:
    rows = run.result.measures
    statistics = [[positive(row.get(key), zero=True) for row in rows] for key in ("mean", "error")]
    means, errors = ([column([value])[0] for value in values] for values in statistics)
    percent = [positive(row.get("error_percent"), zero=True) or 0 for row in rows]
    return Table.of_columns(
        view.text_column(rows, "test", "Test"),
        view.text_column(rows, "op", "Op"),
        (
            Column("CrystalDiskMark", numeric=False, minor=True),
            [CRYSTALDISKMARK.get(row.get("test", ""), "") for row in rows],
        ),
        (Column("Runs", minor=True), [" ".join(column(_runs(row))) or NOTHING for row in rows]),
        (Column("Mean"), means),
        (Column("Error", minor=True), errors),
        (Column("Error", "%", minor=True), [f"{value:.1f}" for value in percent]),
        view.text_column(rows, "unit", "Unit"),
    )


def _runs(row: dict[str, Any]) -> list[float]:
    """The results of a test's runs, in the unit of the row."""
    results = row.get("us_all") or row.get("mib_per_s_all") or ()
    return [value for value in map(positive, results) if value is not None]


def _chart(name: str, runs: Sequence[tuple[str, Run]], ops: Sequence[str]) -> Chart:
    """Throughput by test, with a series for each named run or each kind of request."""
    cases: dict[str, list[Value]] = {}
    for series, run in runs:
        for row in run.result.measures:
            mean = positive(row.get("mean"))
            if mean is not None and row.get("unit") == "MiB/s" and row["op"] in ops:
                value = Value(series or row["op"], mean, None, _runs(row))
                cases.setdefault(row["test"], []).append(value)
    return values_by_case(name, _SPEED, [Case(test, values) for test, values in cases.items()])


def _pictures(run: Run, number: int) -> list[Picture]:
    return view.draw_figure(
        "Throughput by test",
        "Large dots are means, faint dots the runs. If zeros are faster than random data, the "
        "controller compresses.",
        _chart(f"suite-{number}", [("", run)], ("read", "write")).svg,
    ) + view.draw_throughput(run, number)


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    named = [(f"{at}: {run.manifest.target}", run) for at, run in enumerate(runs, first)]
    return [
        picture
        for op in ("read", "write")
        for picture in view.draw_figure(
            f"All runs, {op}",
            "Further right is faster.",
            _chart(f"suites-{op}-{first}", named, (op,)).svg,
        )
    ]


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    done = (
        f"A file of {text('size_mib')} was written and read sequentially by requests of 1 MiB at "
        "queue depths 1 and 8, and randomly by 4 KiB at queue depths 1, 32 and 64. The access time "
        "is that of "
        f"single sectors. Random tests ended after {text('step_s')} or a quarter of the file. Some "
        f"tests were repeated with zeros. The whole table was measured {text('runs')} times. All "
        "tests but the buffered ones bypass the page cache; dsync is a write with O_DSYNC, which "
        "completes when the data is durable."
    )
    meaning = (
        "Content sensitive means that at least one test is 1.1 times as fast with zeros as with "
        "random data, by more than the variation between runs: the controller compresses data or "
        "does not store zeros."
    )
    own = () if run.manifest.virtual else (_BUFFERED, _COMPRESSION)
    return Method(done, meaning, (_FRESH, _ERROR, *own))


def _key_number(run: Run, _: View) -> KeyNumber | None:
    """The mean of the sequential read."""
    for row in run.result.measures:
        mean = positive(row.get("mean"))
        if (row.get("test"), row.get("op")) == ("sequential", "read") and mean is not None:
            return KeyNumber("Sequential read", f"{number(mean)} {plain(row.get('unit', ''))}")
    return None


_FINDINGS: Final = {"content_sensitive": "Faster with zeros"}
_PARAMETERS: Final = {"step_s": "Longest random test"}
VIEW: Final = View(
    "Benchmark suite",
    _table,
    _method,
    _pictures,
    _overview,
    _FINDINGS,
    _PARAMETERS,
    key_number=_key_number,
)

"""Names of lines in figures of several runs, and the number that a list shows for each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ssdlab import view
from ssdlab.charts import Line
from ssdlab.experiments.registry import view_of
from ssdlab.records import Finding, Run


def _lines(*labels: str) -> Any:
    def lines_of(_run: Run, prefix: str) -> Sequence[Line]:
        return [Line(prefix + label, [(1.0, 1.0)]) for label in labels]

    return lines_of


def test_a_line_for_each_run_has_the_name_of_its_target(make_run: Any) -> None:
    runs = [make_run("a"), make_run("b", target="/srv/databases/production/mysql")]
    names = [line.label for line in view.lines_of_runs(runs, 3, _lines("all in use"))]
    assert names == ["3: toshiba-xg5", "4: …roduction/mysql"]
    several = [line.label for line in view.lines_of_runs(runs, 3, _lines("read", "write"))]
    assert several == ["3: read", "3: write", "4: read", "4: write"]


FINDINGS = {
    "steady": Finding(True, "", None, None, ""),
    "iops": Finding(20861.0, "requests/s", None, None, ""),
}


@pytest.mark.parametrize(
    ("experiment", "findings", "expected"),
    [
        ("aging", {"slowdown": Finding(3.58, "x", 3.4, 3.7, "")}, ("Slowdown", "3.58x")),
        ("aging", {"slowdown": Finding(2.5, "x", 0.4, 8.6, "")}, ("Slowdown", "not shown")),
        ("steady", FINDINGS, ("Steady rate", "20861 requests/s")),
        ("stripe", {"chunk_kib": Finding(None, "KiB", None, None, "")}, None),
    ],
)
def test_the_key_number_of_a_run(
    make_run: Any, experiment: str, findings: dict[str, Finding], expected: tuple[str, str] | None
) -> None:
    run = make_run(experiment=experiment, findings=findings)
    shown = view_of(run).key_number(run, view_of(run))
    assert (shown and (shown.label, shown.value)) == expected


def test_the_key_number_of_the_suite_is_its_sequential_read(make_run: Any) -> None:
    rows = [
        {"test": "random 4k", "op": "read", "mean": 47.4, "unit": "MiB/s"},
        {"test": "sequential", "op": "read", "mean": 2165.2, "unit": "MiB/s"},
    ]
    run = make_run(experiment="suite", measures=rows, findings=FINDINGS)
    shown = view_of(run).key_number(run, view_of(run))
    assert shown
    assert (shown.label, shown.value) == ("Sequential read", "2165 MiB/s")

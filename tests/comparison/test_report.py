"""The report on a comparison: verdict first, readable labels, each kind of warning once."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console

from ssdlab.comparison.method import make_side
from ssdlab.comparison.report import ComparisonReport
from ssdlab.comparison.verdict import compare
from ssdlab.records import Run
from ssdlab.report.group import render_group
from ssdlab.report.html import html_page
from ssdlab.warning import MeasurementWarning

MakeRun = Callable[..., Run]


def _in_turns(make_run: MakeRun, factor: float, jobs: tuple[str, ...], *warnings: str) -> Run:
    rows = [
        {
            "turn": turn,
            "job": job,
            "op": "read",
            "iops": factor * (1000 + turn),
            "latency_us_p50": 1e6 / factor / (1000 + turn),
        }
        for turn in range(12)
        for job in jobs
    ]
    found = [MeasurementWarning("few-samples", sentence) for sentence in warnings]
    session = {"session": "s"}
    return make_run(experiment="turns", parameters=session, measures=rows, warnings=found)


def _report(make_run: MakeRun, jobs: tuple[str, ...] = ("random read",)) -> ComparisonReport:
    one = _in_turns(make_run, 1.0, jobs, "p99 in 3 rows.")
    two = _in_turns(make_run, 1.5, jobs, "p99 in 4 rows.")
    return ComparisonReport(compare([make_side("a", [one]), make_side("b", [two])]))


def test_the_verdict_is_the_first_column_after_the_number(make_run: MakeRun) -> None:
    ((_, table),) = _report(make_run).tables
    assert [column.label for column in table.columns][:4] == [
        *("Number", "Verdict", "Ratio", "95 % interval"),
    ]
    assert [row[:2] for row in table.rows] == [
        ("Requests, /s", "faster"),
        ("Median latency, us", "faster"),
    ]


def test_a_case_that_all_numbers_share_is_in_the_title_only(make_run: MakeRun) -> None:
    report = _report(make_run)
    assert report.title == "b compared with a: turns, random read"
    assert [row[0] for row in report.tables[0][1].rows] == ["Requests, /s", "Median latency, us"]
    ((_, table),) = _report(make_run, ("random read", "sequential read")).tables
    assert table.rows[0][0] == "random read: requests, /s"
    assert table.rows[2][0] == "sequential read: requests, /s"


def test_the_table_of_two_long_names_shows_both_values_on_80_columns(make_run: MakeRun) -> None:
    runs = [_in_turns(make_run, factor, ("random read",)) for factor in (1.0, 1.01)]
    names = "twin:samsung-970-evo-plus-500", "/mnt/newcomer-data/results"
    sides = [make_side(name, [one]) for name, one in zip(names, runs, strict=True)]
    text = io.StringIO()
    render_group(ComparisonReport(compare(sides)), Console(file=text, width=80))
    assert "no difference" in text.getvalue()
    dropped = [line.strip() for line in text.getvalue().splitlines() if "too narrow" in line]
    assert dropped in ([], ["not shown, too narrow: p 1"])
    assert all(word in text.getvalue() for word in ("970-evo-", "newcomer", "95 % interval"))
    assert max(map(len, text.getvalue().splitlines())) <= 80


def test_warnings_of_one_kind_are_one_note(make_run: MakeRun) -> None:
    notes = [note for code, note in _report(make_run).notes if code == "few-samples"]
    assert notes == ["p99 in 3 rows. (1 more of this kind)"]


def test_the_page_begins_with_the_verdict(make_run: MakeRun) -> None:
    report = _report(make_run)
    page = html_page(report.runs, report)
    card = page.index('<p class="target">faster</p>')
    assert page.index("<h1>") < card < page.index("<svg") < page.index('class="measures"')

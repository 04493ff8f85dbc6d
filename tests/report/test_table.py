"""Tables on narrow terminals: unbroken numbers and words, never wider than the terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from ssdlab.report import render
from ssdlab.report.latency import by_kind
from ssdlab.report.run_list import RunList
from ssdlab.report.table import print_table
from ssdlab.view import Column, Table

NUMBERS = Table(
    (Column("Written over it", "MiB"), Column("All reads", "s"), Column("Case", numeric=False)),
    (("631.25", "0.888 0.888 0.888", "overwritten"),),
)


def printed(table: Table, width: int) -> str:
    text = io.StringIO()
    print_table(table, Console(file=text, width=width))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def test_a_table_that_fits_has_columns_with_unbroken_headings() -> None:
    assert printed(NUMBERS, 60).splitlines() == [
        " Written over it          All reads",
        "             MiB                  s  Case",
        "          631.25  0.888 0.888 0.888  overwritten",
    ]


def test_on_a_narrower_terminal_headings_are_wrapped() -> None:
    assert printed(NUMBERS, 45).splitlines() == [
        " Written",
        " over it          All reads",
        "     MiB                  s  Case",
        "  631.25  0.888 0.888 0.888  overwritten",
    ]


def test_on_the_narrowest_terminal_columns_are_dropped_and_named() -> None:
    assert printed(NUMBERS, 30).splitlines() == [
        " Written",
        " over it          All reads",
        "     MiB                  s",
        "  631.25  0.888 0.888 0.888",
        " not shown, too narrow: Case",
    ]


def test_names_in_headings_and_text_are_wrapped_before_columns_are_dropped() -> None:
    table = Table(
        (
            *(Column("Number", numeric=False, wrap=10), Column("Verdict", numeric=False, wrap=7)),
            *(Column("samsung-970-evo-plus", wrap=8), Column("/mnt/benchmark-1", wrap=8)),
        ),
        (("requests of all, /s", "not shown at all", "12128", "20251"),),
    )
    assert printed(table, 42).splitlines() == [
        "                      samsung-     /mnt/",
        "                      970-evo-  benchmar",
        " Number      Verdict      plus       k-1",
        " requests    not         12128     20251",
        " of all, /s  shown",
        "             at all",
    ]


def test_columns_without_information_are_dropped_first_then_minor_ones() -> None:
    table = Table(
        (
            *(Column("Case", numeric=False), Column("Requests", minor=True), Column("Depth")),
            *(Column("p50", "us"), Column("p99", "us")),
        ),
        (("read", "600", "4", "80", "-"), ("write", "60", "4", "20", "-")),
    )
    assert printed(table, 30).splitlines() == [
        "                  p50",
        " Case   Requests   us",
        " read        600   80",
        " write        60   20",
        " not shown, too narrow: p99,",
        " Depth 4",
    ]
    assert printed(table, 20).splitlines()[:2] == ["        p50", " Case    us"]


def test_a_sentence_that_does_not_fit_is_printed_below_its_row() -> None:
    columns = (Column("Layer", numeric=False), Column("Reads", "MiB"), Column("x", numeric=False))
    long = "the file system discards nothing that it did not"
    table = Table(columns, (("file system", "7.992", long), ("drive", "1", "")))
    assert printed(table, 30).splitlines() == [
        "              Reads",
        " Layer          MiB",
        " file system  7.992",
        "   the file system discards",
        "   nothing that it did not",
        " drive            1",
    ]


def test_of_several_sentences_the_last_one_leaves_the_row_first() -> None:
    columns = tuple(Column(name, numeric=False) for name in ("key", "value", "source"))
    row = ("flash.read", "45.3 us, 62.1 us, 78.9 us", "fitted to the table of the drive's tests")
    assert printed(Table(columns, (row,)), 60).splitlines() == [
        " key         value",
        " flash.read  45.3 us, 62.1 us, 78.9 us",
        "   fitted to the table of the drive's tests",
    ]


def test_a_narrow_list_of_latencies_keeps_the_median_and_p99(make_run: Any) -> None:
    table, _ = by_kind(make_run())
    kept = [column.label for column in table.columns if not column.minor]
    assert kept == ["Latency of", "Kind", "p50", "p99"]


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_run_is_readable_at_any_width(make_run: Any, width: int) -> None:
    run, text = make_run(), io.StringIO()
    render(run, Console(file=text, width=width))
    *lines, _folder = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    words = set(re.findall(r"\S+", text.getvalue()))
    for row in run.result.measures:
        assert {f"{row['read_s']:.2f}"} <= {word.rstrip(",") for word in words}


def test_a_list_of_runs_on_a_narrow_terminal_keeps_verdicts_in_one_piece(make_run: Any) -> None:
    run = make_run()
    text = printed(RunList([run]).table, 60)
    assert " ".join(text.split()).startswith("Started Experiment Target 2026-11-21 10:15 aging")
    assert " ".join(run.result.verdict.split()) in " ".join(text.split())


def test_dropped_columns_of_one_label_are_named_by_their_units() -> None:
    columns = (Column("Test", numeric=False), Column("Error"), Column("Error", "%"))
    table = Table(columns, (("sequential read", "1200", "10"), ("random", "9", "8")))
    assert "not shown, too narrow: Error %, Error" in printed(table, 17).replace("\n ", " ")

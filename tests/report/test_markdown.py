"""Runs as Markdown and as CSV: the same verdict, numbers and warnings as on the terminal."""

from __future__ import annotations

import csv
import io
from typing import Any

from ssdlab.records import Run
from ssdlab.report.markdown import as_markdown, measures_of, rows_as_csv


def test_a_run_as_markdown_has_its_verdict_before_its_tables(two_runs: list[Run]) -> None:
    text = as_markdown(two_runs)
    assert text.startswith("# Ageing by random writes: twin:toshiba-xg5\n\n**Random writing makes")
    assert text.index(two_runs[0].result.verdict) < text.index("| Random writes (MiB)")
    assert "| 250 | 6.1 | 6.80 | 602 | 6.80 6.80 6.85 |" in text
    assert "| Slowdown | 3.58x | 3.40 to 3.70x | best of 3 reads fresh 1.9 s" in text
    assert "- **noisy**: The reads differ by 48 %" in text
    assert "*Interrupted: the results cover only the part that was measured.*" in text
    assert "Run again: `ssdlab run aging twin:toshiba-xg5" in text


def test_all_rows_of_a_table_have_the_same_number_of_cells(make_run: Any) -> None:
    run = make_run(experiment="another", measures=[{"a|b": "x|y\n[z]", "c": 1.5, "d": None}])
    rows = [line for line in as_markdown([run]).splitlines() if line.startswith("|")]
    cells = [len(line.replace("\\|", "").split("|")) for line in rows if "Finding" not in line]
    assert len(set(cells[:3])) == 1
    assert "x\\|y" in rows[2]
    assert "\\[z\\]" in rows[2]


def test_names_from_outside_stay_text(make_run: Any) -> None:
    text = as_markdown([make_run(target="/mnt/`<b>`_x_", verdict="*no* <script>")])
    assert "/mnt/\\`\\<b\\>\\`\\_x\\_" in text
    assert "**\\*no\\* \\<script\\>**" in text


def test_csv_has_the_measures_of_all_runs_with_their_names(two_runs: list[Run]) -> None:
    rows = list(csv.DictReader(io.StringIO(rows_as_csv(measures_of(two_runs)))))
    assert [row["run"] for row in rows] == ["twin-run"] * 3 + ["disk-run"] * 2
    assert rows[2]["written_mib"] == "250.0"
    assert rows[2]["read_s_all"] == "6.8 6.8 6.85"
    assert rows[3]["target"] == "/mnt/data"


def test_rows_with_other_names_have_empty_cells() -> None:
    text = rows_as_csv([{"a": 1, "b": True}, {"c": "x,y", "a": None}])
    assert text == 'a,b,c\n1,true,\n,,"x,y"\n'

"""The report on the terminal: 80 columns, the same without colour, no control characters."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from ssdlab.records import Run
from ssdlab.report import render
from ssdlab.warning import MeasurementWarning


def rendered(run: Run, **options: Any) -> str:
    text = io.StringIO()
    render(run, Console(file=text, width=80, **options))
    return text.getvalue()


def lines_of(run: Run) -> list[str]:
    return [line.rstrip() for line in rendered(run).splitlines()]


def test_the_report_of_a_run_equals_the_snapshot(make_run: Any) -> None:
    run = make_run(
        warnings=[MeasurementWarning("noisy", "The reads differ by 48 %: run it again.")]
    )
    assert lines_of(run) == SNAPSHOT.format(folder=run.folder).splitlines()


SNAPSHOT = """
 aging  twin:toshiba-xg5  (twin, virtual time)
 Toshiba XG5 KXG50ZNV512G, nvme, 476.8 GiB, spare 6.9 %
 2026-11-21 10:15:00 UTC, took 6 min 3 s, seed 7

 Random writes  Share of the file  Best read  Read speed       All reads
           MiB                  %          s       MiB/s               s
             0                  0       1.90        2156  1.90 1.91 1.90
            50                1.2       2.90        1412  2.90 3.05 2.95
           250                6.1       6.80         602  6.80 6.80 6.85

             Block                            p50  p99  p99.9  p99.99
 Latency of    KiB  Depth  Kind  Requests      us   us     us      us
 read            -      1  all        600  900.00    -      -       -
 overwrite       -      1  all        160    6.00    -      -       -

 Slowdown            3.58x  3.40 to 3.70x  best of 3 reads fresh 1.9 s, after
                                           250 MiB 6.8 s
 Recovers when idle  no                    6.8 s after the first rest, 6.85 s
                                           after the last

 => Random writing makes reads 3.58 times slower; rest does not heal it.

 ! noisy: The reads differ by 48 %: run it again.

 {folder}
"""


def test_only_the_folder_may_be_wider_than_the_terminal(two_runs: list[Run]) -> None:
    for run in two_runs:
        *lines, folder = lines_of(run)
        assert max(map(len, lines)) <= 80
        assert folder == f" {run.folder}"


def test_a_long_folder_is_not_broken(make_run: Any) -> None:
    run = make_run("a-long-name-" * 9)
    assert lines_of(run)[-1] == f" {run.folder}"


def test_an_interrupted_run_has_a_note_and_its_warnings(two_runs: list[Run]) -> None:
    text = " ".join(rendered(two_runs[1]).split())
    assert "Interrupted: the results cover only the part that was measured" in text
    assert "=> Interrupted before the file was aged: nothing to tell." in text
    for warning in two_runs[1].result.warnings:
        assert f"! {warning.code}: {warning.sentence}" in text


def test_a_run_without_measures_has_no_empty_table(make_run: Any) -> None:
    text = rendered(make_run(measures=[], findings={}, verdict=""))
    assert "Best read" not in text
    assert "=> No verdict: too little was measured." in text


def test_colours_depend_on_the_terminal_and_no_color(
    two_runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = rendered(two_runs[1], force_terminal=True, color_system="truecolor")
    assert "\x1b[" in coloured
    assert "\x1b[" not in rendered(two_runs[1])
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in rendered(two_runs[1], force_terminal=True)


def test_markup_stays_text_and_control_characters_are_replaced(make_run: Any) -> None:
    run = make_run(
        target="/mnt/[red]x\x1b]0;title\x07",
        verdict="[bold]\x1b[2J",
        warnings=[MeasurementWarning("[blink]", "\x9b31m")],
        device={"model": "A[/]\x1b[31m"},
    )
    text = rendered(run)
    assert "\x1b" not in text
    assert "\x9b" not in text
    for kept in ("/mnt/[red]x", "=> [bold]", "! [blink]:", "A[/]"):
        assert kept in text


def test_an_unknown_experiment_shows_its_measures(make_run: Any) -> None:
    text = rendered(
        make_run(experiment="unheard-of", measures=[{"unit_kib": 4, "read_ms": 12.345}])
    )
    assert "Unit" in text
    assert "12.3" in text


def test_on_a_narrow_terminal_the_evidence_is_below_its_finding(make_run: Any) -> None:
    run, text = make_run(), io.StringIO()
    render(run, Console(file=text, width=60))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    at = lines.index(" Slowdown            3.58x  3.40 to 3.70x")
    assert lines[at + 1] == "   best of 3 reads fresh 1.9 s, after 250 MiB 6.8 s"

"""`ssdlab replay`: statistics of a trace, a run, and errors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program

LINES = "".join(f"{at * 1000} 0 {at * 8} 8 {at % 2}\n" for at in range(2000))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A gzip-compressed trace of 1000 reads and 1000 writes."""
    path = tmp_path / "small.trace.gz"
    path.write_bytes(gzip.compress(LINES.encode()))
    return path


def test_without_a_target_statistics_of_the_trace_are_printed(ssdlab: Program, trace: Path) -> None:
    done = ssdlab("replay", trace, "--json")
    assert done.returncode == 0, done.stderr
    statistics = json.loads(done.stdout)
    assert (statistics["format"], statistics["reads"], statistics["writes"]) == (
        "mqsim",
        1000,
        1000,
    )
    assert statistics["footprint_bytes"] == 2000 * 4096
    shown = ssdlab("replay", trace).stdout
    assert "Requests" in shown
    assert "hottest fifth" in shown


def test_a_run_reports_its_pace_and_the_command_that_repeats_it(
    ssdlab: Program, trace: Path, tmp_path: Path
) -> None:
    runs, page = tmp_path / "runs", tmp_path / "page.html"
    command = ("replay", trace, "twin:toshiba-xg5", "--capacity", "1GiB", "--speed", "1")
    done = ssdlab(*command, "--out", runs, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["experiment"] == "replay"
    assert {"iops", "mib_per_s", "pace_kept", "lag_us_max"} <= result["findings"].keys()
    assert ssdlab("report", runs, "--html", page).returncode == 0
    text = page.read_text()
    assert "Trace replay" in text
    assert f"ssdlab replay {trace} twin:toshiba-xg5 --speed 1.0 --capacity 1GiB" in text


def test_a_damaged_line_is_reported_with_its_number(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "bad.trace"
    path.write_text(LINES + "2000000 0 -8 8 1\n")
    line = refused("replay", path, "twin:toshiba-xg5")
    assert 'line 2001: block is "-8"; may be a whole number, 0 or more' in line


def test_a_missing_trace_is_refused_with_the_formats_to_give(refused: Callable[..., str]) -> None:
    line = refused("replay", "nope.trace", "twin:toshiba-xg5")
    assert "nope.trace: there is no such file; give a trace of one of the formats blktrace" in line


def test_reading_a_new_test_file_without_filling_it_is_refused(
    refused: Callable[..., str], trace: Path, tmp_path: Path
) -> None:
    line = refused("replay", trace, tmp_path, "--as-it-is")
    assert "is new, and the trace reads; leave it out" in line

"""`ssdlab run trim` for scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from forked import Program

from ssdlab.records import read_run


def test_trim_on_a_directory_prints_layers_steps_and_findings(
    ssdlab: Program, drive_directory: Path, tmp_path: Path
) -> None:
    done = ssdlab("run", "trim", drive_directory, "--quick", "--json", "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["findings"]) == {"reaches", "layer", "reads_back"}
    assert result["findings"]["reads_back"]["value"] in {"zeros", "old data", "other", None}
    assert {"step", "detail", "layer"} <= set(result["measures"][0])
    assert result["measures"][0]["layer"] == "schedule"
    assert list(drive_directory.iterdir()) == []
    assert read_run(Path(result["folder"])).result.verdict == result["verdict"]


def test_a_run_on_a_twin_has_an_html_report(ssdlab: Program, tmp_path: Path) -> None:
    done = ssdlab("run", "trim", "twin:toshiba-xg5", "--quick", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["findings"]["reaches"]["value"] is True
    page = tmp_path / "trim.html"
    assert ssdlab("report", result["folder"], "--html", page).returncode == 0
    assert "TRIM through the storage stack" in page.read_text()


def test_a_wrong_size_is_a_one_line_error(refused: Callable[..., str]) -> None:
    line = refused("run", "trim", "twin:toshiba-xg5", "--size", "1MiB")
    assert "it must be a multiple of 1 MiB, at least 4 MiB" in line

"""`ssdlab runs`: lists runs, filters them, reports those that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program

from ssdlab.records import read_parquet

TWIN = ("twin:toshiba-xg5", "--size", "16MiB", "--capacity", "256MiB", "--quiet", "--json")


@pytest.fixture
def results(ssdlab: Program, tmp_path: Path) -> Path:
    """A folder with a run of each of two experiments."""
    folder = tmp_path / "results"
    for experiment, label in (("aging", ("--label", "first try")), ("split", ())):
        assert ssdlab("run", *label, experiment, *TWIN, "--out", folder).returncode == 0
    return folder


def test_runs_are_listed_and_filtered_by_experiment(ssdlab: Program, results: Path) -> None:
    done = ssdlab("runs", results, env={"COLUMNS": "200", "PATH": "/usr/bin"})
    assert done.returncode == 0
    assert "aging" in done.stdout
    assert "split" in done.stdout
    selected = json.loads(ssdlab("runs", results, "--experiment", "split", "--json").stdout)
    assert [run["experiment"] for run in selected["runs"]] == ["split"]


def test_runs_are_filtered_by_target_verdict_day_and_label(
    ssdlab: Program, refused: Callable[..., str], results: Path
) -> None:
    def selected(*words: str) -> list[str]:
        done = ssdlab("runs", results, "--json", *words)
        assert done.returncode == 0, done.stderr
        return [run["experiment"] for run in json.loads(done.stdout)["runs"]]

    assert selected("--label", "FIRST") == ["aging"]
    assert selected("--target", "XG5") == ["aging", "split"]
    assert selected("--verdict", "with commands") == ["split"]
    assert selected("--since", "2020-01-01", "--until", "2999-12-31") == ["aging", "split"]
    assert "of that time" in refused("runs", results, "--until", "2020-01-01")
    assert "give a date" in refused("runs", results, "--since", "yesterday")


def test_parquet_has_a_row_for_each_run(ssdlab: Program, results: Path, tmp_path: Path) -> None:
    assert ssdlab("runs", results, "--parquet", tmp_path / "runs.parquet").returncode == 0
    aging, split = read_parquet(tmp_path / "runs.parquet").to_pylist()
    assert (aging["experiment"], aging["label"], split["label"]) == ("aging", "first try", "")
    assert aging["finding.slowdown"] > 1
    assert aging["finding.recovers"] in {0.0, 1.0}
    assert split["finding.slowdown"] is None


def test_a_damaged_run_does_not_hide_the_others(ssdlab: Program, results: Path) -> None:
    damaged = min(results.iterdir())
    (damaged / "result.json").write_text("{")
    done = ssdlab("runs", results)
    assert done.returncode == 0
    assert "left out" in done.stderr
    assert "split" in done.stdout


def test_a_filter_without_matches_and_an_empty_folder_are_one_line(
    refused: Callable[..., str], results: Path, tmp_path: Path
) -> None:
    assert "no run of 'nothing'" in refused("runs", results, "--experiment", "nothing")
    assert "none does not exist" in refused("runs", tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "holds no run" in refused("runs", tmp_path / "empty")

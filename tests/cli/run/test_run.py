"""`ssdlab run aging` for scripts: one JSON object, stable keys, exit status."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Program
from short_rests import shorten_rests

from ssdlab.records import read_run

Results = dict[str, dict[str, Any]]
# Scripts depend on these keys; `folder` has the records.
KEYS = {
    *("ssdlab", "experiment", "target", "virtual", "seed", "duration_s", "parameters"),
    *("measures", "findings", "verdict", "warnings", "folder"),
}
TWINS = ("toshiba-xg5", "intel-s3510-480")
SMALL = ("--size", "16MiB", "--capacity", "256MiB")


def _json(ssdlab: Program, *words: object) -> dict[str, Any]:
    done = ssdlab("run", "aging", *words, "--json")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("name", TWINS)
def test_stdout_is_one_json_object_with_the_documented_keys(
    full_size: dict[str, subprocess.CompletedProcess[str]], name: str
) -> None:
    done = full_size[name]
    assert done.returncode == 0
    assert done.stdout.startswith("{\n")
    assert done.stdout.endswith("\n}\n")
    result = json.loads(done.stdout)
    assert set(result) == KEYS
    assert (result["experiment"], result["target"]) == ("aging", f"twin:{name}")
    assert (result["virtual"], result["seed"]) == (True, 0)
    assert result["duration_s"] > 0
    assert result["parameters"]["size_mib"] == 4096
    for row in result["measures"]:
        assert set(row) == {"written_mib", "read_s", "read_s_all"}
        assert len(row["read_s_all"]) == 3
        assert row["read_s"] == min(row["read_s_all"])
    assert set(result["findings"]) == {"slowdown", "recovers"}
    for finding in result["findings"].values():
        assert set(finding) == {"value", "unit", "low", "high", "why"}
    assert result["verdict"].endswith(".")
    assert result["warnings"] == []


def test_progress_goes_to_stderr_unless_quiet(
    full_size: dict[str, subprocess.CompletedProcess[str]], ssdlab: Program
) -> None:
    assert f"aging twin:{TWINS[0]}: writing" in full_size[TWINS[0]].stderr
    done = ssdlab("run", "aging", f"twin:{TWINS[0]}", *SMALL, "--json", "--quiet")
    assert done.stderr == ""


def test_a_client_drive_reads_slower_after_each_amount(results: Results) -> None:
    result = results["toshiba-xg5"]
    assert 2.5 < result["findings"]["slowdown"]["value"] < 4.5
    reads = [row["read_s"] for row in result["measures"]]
    assert len(reads) == 5
    assert all(before < after for before, after in itertools.pairwise(reads))
    assert [row["written_mib"] for row in result["measures"]] == [0, 50, 250, 1050, 5050]
    assert "times slower" in result["verdict"]


def test_a_data_centre_drive_does_not_age(results: Results) -> None:
    assert results["intel-s3510-480"]["findings"]["slowdown"]["value"] < 1.05
    assert "do not slow" in results["intel-s3510-480"]["verdict"]


def test_the_slowdown_of_a_twin_has_no_interval(results: Results) -> None:
    for result in results.values():
        slowdown = result["findings"]["slowdown"]
        assert slowdown["low"] is slowdown["high"] is None


def test_the_seed_determines_the_measures(ssdlab: Program) -> None:
    target = (f"twin:{TWINS[0]}", *SMALL)
    first, second = (_json(ssdlab, *target, "--seed", 7) for _ in range(2))
    other = _json(ssdlab, *target, "--seed", 8)
    assert first["measures"] == second["measures"]
    assert first["findings"] == second["findings"]
    assert first["measures"] != other["measures"]
    assert (first["seed"], other["seed"]) == (7, 8)


def test_a_full_size_run_repeats_exactly(results: Results, ssdlab: Program) -> None:
    assert _json(ssdlab, f"twin:{TWINS[0]}")["measures"] == results[TWINS[0]]["measures"]


def test_the_run_folder_has_the_printed_result_and_its_provenance(results: Results) -> None:
    for name, result in results.items():
        run = read_run(Path(result["folder"]))
        assert run.result.measures == result["measures"]
        assert run.manifest.outcome == "complete"
        assert run.manifest.profile is not None
        assert f"{name}" in run.folder.name
        assert {"python", "kernel", "ssdlab", "numpy"} <= set(run.manifest.versions)
        assert run.manifest.host["cores"] >= 1
        assert run.manifest.device["capacity_bytes"] > 1e11
        assert run.manifest.started.endswith("+00:00")
        assert run.tables["steps"].num_rows == 25


def test_a_twin_of_a_profile_file_can_be_scaled(
    ssdlab: Program, tmp_path: Path, results: Results
) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(read_run(Path(results[TWINS[0]]["folder"])).manifest.profile or "")
    mine = _json(ssdlab, f"twin:{profile}", *SMALL)
    shipped = _json(ssdlab, f"twin:{TWINS[0]}", *SMALL)
    assert mine["target"] == f"twin:{profile}"
    assert mine["measures"] == shipped["measures"]
    run = read_run(
        Path(mine["folder"])
        if Path(mine["folder"]).is_absolute()
        else tmp_path / "working-directory" / mine["folder"]
    )
    assert run.manifest.device["capacity_bytes"] == 256 << 20


def test_several_targets_give_one_object_with_a_run_each(ssdlab: Program) -> None:
    both = _json(ssdlab, *(f"twin:{name}" for name in TWINS), *SMALL)
    assert [run["target"] for run in both["runs"]] == [f"twin:{name}" for name in TWINS]
    assert all(set(run) == KEYS for run in both["runs"])
    alone = _json(ssdlab, f"twin:{TWINS[1]}", *SMALL)
    assert both["runs"][1]["measures"] == alone["measures"]


def test_a_long_rest_adds_a_read_and_takes_a_twin_no_time(ssdlab: Program, tmp_path: Path) -> None:
    result = _json(ssdlab, f"twin:{TWINS[0]}", *SMALL, "--rest", "1h", "--out", tmp_path / "out")
    assert result["parameters"]["long_rest_s"] == 3600
    assert len(result["measures"]) == 5
    steps = read_run(Path(result["folder"])).tables["steps"]
    assert steps["rest_s"].to_pylist()[-1] == 3600


def test_without_json_the_result_is_on_stdout_and_progress_on_stderr(ssdlab: Program) -> None:
    quiet = ssdlab("run", "aging", f"twin:{TWINS[0]}", *SMALL, "--quiet")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert "times slower" in " ".join(quiet.stdout.split())
    loud = ssdlab("run", "aging", f"twin:{TWINS[0]}", *SMALL)
    assert "writing 16 MiB" in loud.stderr
    assert "writing 16 MiB" not in loud.stdout


def test_in_a_pipe_a_step_is_one_line_even_if_the_target_has_a_long_name(
    ssdlab: Program, tmp_path: Path, results: Results
) -> None:
    profile = tmp_path / ("a-long-name-" * 12) / "mine.toml"
    profile.parent.mkdir()
    profile.write_text(read_run(Path(results[TWINS[0]]["folder"])).manifest.profile or "")
    lines = ssdlab("run", "aging", f"twin:{profile}", *SMALL, "--json").stderr.splitlines()
    steps = [line for line in lines if line.startswith(f"aging twin:{profile}: ")]
    assert steps, lines
    assert steps[0].endswith("writing 16 MiB sequentially")
    assert all(line.startswith(("aging ", "to resume")) for line in lines), "no line is wrapped"


def test_runs_are_stored_in_the_working_directory_or_in_out(
    ssdlab: Program, tmp_path: Path
) -> None:
    _json(ssdlab, f"twin:{TWINS[0]}", *SMALL)
    _json(ssdlab, f"twin:{TWINS[0]}", *SMALL, "--out", tmp_path / "a" / "b")
    assert len(list((tmp_path / "working-directory" / "ssdlab-runs").iterdir())) == 1
    assert len(list((tmp_path / "a" / "b").iterdir())) == 1


def test_a_directory_and_a_block_device_with_consent_are_measured(
    ssdlab: Program, drive_directory: Path, loop_device: Callable[..., Path]
) -> None:
    words = ("--size", "16MiB", "--quick", "--json")
    targets = {str(drive_directory): (), str(loop_device(32)): ("--destroy-data",)}
    for target, more in targets.items():
        done = ssdlab("run", "aging", target, *words, *more, prepare=shorten_rests)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert set(result) == KEYS
        assert (result["target"], result["virtual"]) == (target, False)
        assert len(result["measures"]) == 5
        assert all(row["read_s"] > 0 for row in result["measures"])
    assert list(drive_directory.iterdir()) == []


@pytest.mark.parametrize("json_option", [(), ("--json",)])
def test_a_run_also_writes_its_page(
    ssdlab: Program, tmp_path: Path, json_option: tuple[str, ...]
) -> None:
    page = tmp_path / "page.html"
    twins = ("twin:toshiba-xg5", "twin:intel-s3510-480", "--capacity", "1GiB")
    done = ssdlab("run", "split", *twins, "--size", "16MiB", "--html", page, *json_option)
    assert done.returncode == 0, done.stderr
    assert "intel-s3510-480" in page.read_text(encoding="utf-8")
    if json_option:
        assert len(json.loads(done.stdout)["runs"]) == 2
    else:
        assert done.stdout.endswith(f"{page}\n")


def test_a_page_in_a_missing_directory_is_refused_before_the_run(
    ssdlab: Program, tmp_path: Path
) -> None:
    missing, out = tmp_path / "missing" / "page.html", tmp_path / "runs"
    words = ("run", "split", "twin:toshiba-xg5", "--quick", "--html", missing, "--out", out)
    done = ssdlab(*words)
    assert done.returncode == 2
    assert done.stderr.strip().endswith(
        f"--html is {missing}; give a file in an existing directory"
    )
    assert not out.exists()

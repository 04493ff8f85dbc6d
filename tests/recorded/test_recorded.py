"""What ssdlab does is what was recorded, and what version 0.1.0 left on disk is still read."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import behaviour
import pytest
from behaviour import FILES, RUNS, observed, program, recorded

from ssdlab.records import read_run


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folders of version 0.1.0: `runs/NAME`, `interrupted/(twin|directory)`."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(behaviour.HERE / "old-runs.tar.gz") as packed:
        if hasattr(tarfile, "data_filter"):  # since Python 3.11.4
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(folder)
    return folder


def _flat(value: Any, at: str = "") -> dict[str, Any]:
    """The leaves of a JSON value by their paths, so that a difference is short to read."""
    if isinstance(value, dict):
        return {k: v for key, each in value.items() for k, v in _flat(each, f"{at}/{key}").items()}
    return {at: value}


@pytest.mark.parametrize("name", FILES)
def test_what_is_observed_is_what_was_recorded(name: str) -> None:
    """A difference that is meant is recorded again: see `behaviour.py`."""
    now, then = _flat(observed()[name]), _flat(recorded(name))
    different = {
        path: {"recorded": then.get(path), "observed": now.get(path)}
        for path in [*then, *(new for new in now if new not in then)]
        if not _same(then.get(path), now.get(path))
    }
    assert not different, json.dumps(different, indent=1, ensure_ascii=False)


def _same(then: Any, now: Any) -> bool:
    if isinstance(then, list) and isinstance(now, list):
        return len(then) == len(now) and all(map(_same, then, now))
    if isinstance(then, float) and isinstance(now, float):
        return then == pytest.approx(now, rel=1e-5)
    return bool(then == now)


def test_every_experiment_is_recorded() -> None:
    from ssdlab.experiments.registry import EXPERIMENTS

    assert RUNS.keys() == EXPERIMENTS.keys() - {"turns"}  # a part of `compare --interleave`


def test_old_runs_are_reported(old: Path) -> None:
    done = program("report", "runs", "--json", cwd=old)
    assert done.returncode == 0, done.stderr
    names = _names(old)
    results = [json.loads((old / "runs" / name / "result.json").read_text()) for name in names]
    assert json.loads(done.stdout) == {"runs": results}
    shown = program("report", *(f"runs/{name}" for name in names), cwd=old)
    assert shown.returncode == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    assert [each["verdict"] for each in results if each["verdict"] not in words] == []
    page = program("report", "runs", "--html", "report.html", cwd=old)
    assert page.returncode == 0, page.stderr
    assert (old / "report.html").read_text(encoding="utf-8").count("<figure") >= len(names)


def _names(old: Path) -> list[str]:
    """The experiments of version 0.1.0, in the order of `RUNS`."""
    names = [name for name in RUNS if (old / "runs" / name).is_dir()]
    assert len(names) == len(list((old / "runs").iterdir()))
    return names


def test_old_steps_are_exported_as_a_fio_job_file(old: Path) -> None:
    done = program("report", "runs/workload", "--fio", cwd=old)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n[") >= 2


def test_old_runs_are_listed(old: Path) -> None:
    done = program("runs", "runs", "--json", cwd=old)
    assert done.returncode == 0, done.stderr
    listed = [each["experiment"] for each in json.loads(done.stdout)["runs"]]
    assert sorted(listed) == sorted(_names(old))


def _compared(old: Path, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """An old run of this experiment, compared with a new one in `folder`."""
    more = ("--seed", "7", "--quiet", "--json", "--out", str(folder))
    made = program(*RUNS[name], *more, cwd=old)
    assert made.returncode == 0, made.stderr
    return program("compare", f"runs/{name}", str(folder), "--json", cwd=old)


def test_an_old_run_that_did_not_rest_before_it_read_is_not_compared_with_a_new_one(
    old: Path, tmp_path: Path
) -> None:
    done = _compared(old, "split", tmp_path)
    assert done.returncode == 2
    assert "not measured with the same method (settle_s: none / 5)" in done.stderr


def test_old_runs_are_compared_with_new_ones(old: Path, tmp_path: Path) -> None:
    done = _compared(old, "stripe", tmp_path)
    assert done.returncode == 0, done.stderr
    compared = json.loads(done.stdout)
    assert {each["verdict"] for each in compared["verdicts"]} == {"no difference shown"}


@pytest.mark.parametrize("where", ["twin", "directory"])
def test_an_old_interrupted_run_is_gone_on_with(
    old: Path, where: str, drive_directory: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(old / "interrupted" / where, run)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["plan"]["long_rest_s"] = 0.0
    manifest["plan"]["rests_s"] = [0.1] * len(manifest["plan"]["rests_s"])
    if where == "directory":
        manifest["wish"]["target"] = str(drive_directory)
    (run / "manifest.json").write_text(json.dumps(manifest))
    before = len(_phases(run)) if where == "directory" else 0
    done = program("run", "resume", str(run), "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    resumed = read_run(run)
    assert resumed.manifest.outcome == "complete"
    assert len(resumed.tables["steps"]) > before
    assert "slowdown" in json.loads(done.stdout)["findings"]
    assert list(drive_directory.iterdir()) == []


def _phases(run: Path) -> list[str]:
    import pyarrow.parquet as pq

    phases: list[str] = pq.read_table(run / "steps.parquet")["phase"].to_pylist()
    return phases

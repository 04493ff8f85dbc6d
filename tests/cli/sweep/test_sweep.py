"""`ssdlab sweep`: runs, resumes, stops, reports, and refuses invalid specs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from forked import Program

from ssdlab.api import sweep as api_sweep
from ssdlab.cli import sweep as command
from ssdlab.sweep.execute import Outcome, execute
from ssdlab.sweep.spec import SweepRun

SPEC = """\
name = "few"
profile = "toshiba-xg5"
capacity = "{capacity}"
[vary]
"ftl.spare" = [0.1, 0.2, 0.3]
"workload.skew" = [0, 1.1]
[workload]
drive_writes = {drive_writes}
"""


def _spec(folder: Path, capacity: str = "128MiB", drive_writes: float = 0.5) -> Path:
    path = folder / "few.toml"
    path.write_text(SPEC.format(capacity=capacity, drive_writes=drive_writes), encoding="utf-8")
    return path


def _rows(folder: Path) -> list[dict[str, Any]]:
    table = pyarrow.dataset.dataset(folder / "runs", format="parquet").to_table()
    rows: list[dict[str, Any]] = table.drop_columns(["seconds"]).sort_by("key").to_pylist()
    return rows


def test_without_semaphores_a_sweep_is_refused(executable: str, tmp_path: Path) -> None:
    """In a mount namespace whose /dev/shm is read-only."""
    bare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    bare += ['mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"', "sh"]
    if subprocess.run([*bare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("cannot create a namespace with a read-only /dev/shm here")
    words = [*bare, executable, "sweep", str(_spec(tmp_path)), "--out", str(tmp_path / "few")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("ssdlab: cannot create a semaphore")
    assert "Traceback" not in done.stderr


def test_a_sweep_resumes_and_is_reported(ssdlab: Program, tmp_path: Path) -> None:
    spec, folder, page = _spec(tmp_path), tmp_path / "few", tmp_path / "few.html"
    result = ssdlab("sweep", spec, "--out", folder, "--json")
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert (output["runs"], output["done"], output["failed"]) == (6, 6, [])
    first = _rows(folder)
    lost = sorted((folder / "runs").iterdir())[2]
    kept = {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir() if path != lost}
    lost.unlink()
    again = ssdlab("sweep", spec, "--out", folder)
    assert "1 runs, 1 at a time" in again.stderr
    assert _rows(folder) == first
    assert all(path.stat().st_mtime_ns == was for path, was in kept.items())
    assert "Pareto-optimal points" in ssdlab("report", folder, "--html", page).stdout
    text = page.read_text(encoding="utf-8")
    assert text.index("6 of 6 runs done") < text.index("<svg")
    assert "Write amplification by spare" in text


def test_ctrl_c_keeps_the_finished_runs_and_leaves_no_process(
    executable: str, tmp_path: Path
) -> None:
    spec, folder = _spec(tmp_path, "16GiB", 1000), tmp_path / "few"  # would take hours
    command = [executable, "sweep", str(spec), "--out", str(folder), "--json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    end = time.monotonic() + 60
    while not any(map(_is_working, _workers(process.pid))):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no worker began"
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 3, stderr
    assert "Traceback" not in stderr
    assert json.loads(stdout)["runs"] == 6
    assert stderr.splitlines()[-1] == (
        "interrupted: 0 of 6 runs have ended; to run the rest, give the same command again"
    )
    for _ in range(600):
        if not _processes_in_group(process.pid):
            break
        time.sleep(0.1)
    assert _processes_in_group(process.pid) == []


def _workers(group: int) -> list[str]:
    return [pid for pid in _processes_in_group(group) if pid != str(group)]


def _is_working(pid: str) -> bool:
    """Whether a process has used more CPU time than starting one takes."""
    try:
        fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[11]) > 5 * os.sysconf("SC_CLK_TCK")


def _processes_in_group(group: int) -> list[str]:
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                pids.append(entry.name)
    return pids


def test_failed_runs_are_stored_with_their_reason_and_the_exit_status_is_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def all_but_one_fail(runs: list[SweepRun], _workers: int) -> Iterator[Outcome]:
        yield Outcome(runs[0], execute(runs[0]), "", 1)
        for run in runs[1:]:
            yield Outcome(run, None, "its worker was killed", 2)

    monkeypatch.setattr(api_sweep, "execute_locally", all_but_one_fail)
    words = ["--out", str(tmp_path / "few"), "--json", "--quiet"]
    status = command.app([str(_spec(tmp_path)), *words], standalone_mode=False)
    assert status == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["done"], len(output["failed"])) == (1, 5)
    assert {each["reason"] for each in output["failed"]} == {"its worker was killed"}
    monkeypatch.undo()
    status = command.app([str(_spec(tmp_path)), *words], standalone_mode=False)
    assert status == 0  # the same command retries them
    assert json.loads(capsys.readouterr().out)["done"] == 6


def test_a_dry_run_lists_the_runs_and_executes_none(ssdlab: Program, tmp_path: Path) -> None:
    result = ssdlab("sweep", _spec(tmp_path), "--dry-run", "--out", tmp_path / "few")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("seed 0") == 6
    assert "6 runs, up to" in result.stdout
    assert not (tmp_path / "few").exists()


def test_the_shipped_example_has_two_hundred_runs(ssdlab: Program) -> None:
    spec = Path(__file__).parents[3] / "examples" / "sweeps" / "spare.toml"
    assert len(json.loads(ssdlab("sweep", spec, "--dry-run", "--json").stdout)["runs"]) == 200


@pytest.mark.parametrize(
    ("words", "reason"),
    [(("--workers", 0), "it must be 1 or more"), (("--dask", "nowhere"), "no scheduler answers")],
)
def test_invalid_options_are_refused_with_one_line(
    refused: Callable[..., str], tmp_path: Path, words: tuple[object, ...], reason: str
) -> None:
    if "--dask" in words:
        pytest.importorskip("distributed")
    assert reason in refused("sweep", _spec(tmp_path), "--quiet", *words)

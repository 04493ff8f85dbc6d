"""`ssdlab sweep`: runs, goes on, stops, reports; wrong specs are one line."""

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

from ssdlab.api import sweep as swept
from ssdlab.cli.sweep import command
from ssdlab.sweep.design import Order
from ssdlab.sweep.here import Ended
from ssdlab.sweep.work import perform

Program = Callable[..., subprocess.CompletedProcess[str]]
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


def test_without_semaphores_a_sweep_is_refused_in_one_line(executable: str, tmp_path: Path) -> None:
    """In a mount namespace whose /dev/shm is read-only."""
    bare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    bare += ['mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"', "sh"]
    if subprocess.run([*bare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace in which /dev/shm is read-only can be made here")
    words = [*bare, executable, "sweep", str(_spec(tmp_path)), "--out", str(tmp_path / "few")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("ssdlab: no semaphore can be had here")
    assert "Traceback" not in done.stderr


def test_a_sweep_goes_on_where_it_was_and_is_reported(ssdlab: Program, tmp_path: Path) -> None:
    spec, folder, page = _spec(tmp_path), tmp_path / "few", tmp_path / "few.html"
    done = ssdlab("sweep", spec, "--out", folder, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["runs"], told["done"], told["failed"]) == (6, 6, [])
    first = _rows(folder)
    lost = sorted((folder / "runs").iterdir())[2]
    kept = {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir() if path != lost}
    lost.unlink()
    again = ssdlab("sweep", spec, "--out", folder)
    assert "1 runs, 1 at a time" in again.stderr
    assert _rows(folder) == first
    assert all(path.stat().st_mtime_ns == was for path, was in kept.items())
    assert "Beaten by none" in ssdlab("report", folder, "--html", page).stdout
    assert page.read_text(encoding="utf-8").count("<svg") == 6


def test_ctrl_c_ends_a_sweep_with_what_it_has_and_no_process_left(
    executable: str, tmp_path: Path
) -> None:
    spec, folder = _spec(tmp_path, "16GiB", 1000), tmp_path / "few"  # hours: a signal ends it
    command = [executable, "sweep", str(spec), "--out", str(folder), "--json", "--quiet"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, start_new_session=True, **pipes)
    while not any(_at_work(pid) for pid in _left_in_group(process.pid) if pid != str(process.pid)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers hear it, too
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 3, stderr
    assert "Traceback" not in stderr
    assert json.loads(stdout)["runs"] == 6
    for _ in range(600):
        if not _left_in_group(process.pid):
            break
        time.sleep(0.1)
    assert _left_in_group(process.pid) == []


def _at_work(pid: str) -> bool:
    """A process that has used the processor for longer than it takes to start one."""
    try:
        fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[11]) > 5 * os.sysconf("SC_CLK_TCK")


def _left_in_group(group: int) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(entry.name)
    return found


def test_failed_runs_are_kept_with_their_reason_and_the_status_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def all_but_one_fail(orders: list[Order], _workers: int) -> Iterator[Ended]:
        yield Ended(orders[0], perform(orders[0]), "", 1)
        for order in orders[1:]:
            yield Ended(order, None, "its worker was killed", 2)

    monkeypatch.setattr(swept, "perform_here", all_but_one_fail)
    words = ["--out", str(tmp_path / "few"), "--json", "--quiet"]
    status = command.app([str(_spec(tmp_path)), *words], standalone_mode=False)
    assert status == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["done"], len(told["failed"])) == (1, 5)
    assert {each["reason"] for each in told["failed"]} == {"its worker was killed"}
    monkeypatch.undo()
    status = command.app([str(_spec(tmp_path)), *words], standalone_mode=False)
    assert status == 0  # the next time they are tried again
    assert json.loads(capsys.readouterr().out)["done"] == 6


def test_a_dry_run_lists_the_runs_and_does_none(ssdlab: Program, tmp_path: Path) -> None:
    done = ssdlab("sweep", _spec(tmp_path), "--dry-run", "--out", tmp_path / "few")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("seed 0") == 6
    assert "6 runs, up to" in done.stdout
    assert not (tmp_path / "few").exists()


def test_the_shipped_example_is_two_hundred_runs(ssdlab: Program) -> None:
    spec = Path(__file__).parents[3] / "examples" / "sweeps" / "spare.toml"
    assert len(json.loads(ssdlab("sweep", spec, "--dry-run", "--json").stdout)["runs"]) == 200


@pytest.mark.parametrize(
    ("words", "reason"),
    [(("--workers", 0), "it may be 1 or more"), (("--dask", "nowhere"), "no scheduler answers")],
)
def test_a_wrong_wish_is_one_line(
    refused: Callable[..., str], tmp_path: Path, words: tuple[object, ...], reason: str
) -> None:
    if "--dask" in words:
        pytest.importorskip("distributed")
    assert reason in refused("sweep", _spec(tmp_path), "--quiet", *words)

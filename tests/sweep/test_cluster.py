"""A sweep on a Dask cluster of two workers gives the same rows, even if a worker is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ssdlab.errors import UsageError
from ssdlab.sweep import execute as cluster_module
from ssdlab.sweep.execute import execute, execute_on_cluster
from ssdlab.sweep.spec import SweepRun

Repeatable = Callable[[dict[str, Any] | None], dict[str, Any]]
Cluster = tuple[str, list[subprocess.Popen[bytes]]]
TIMEOUT_S = 60
CONNECTING = "distributed.comm.timeouts.connect"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The scheduler's address and the two workers, with timeouts for a busy machine."""
    pytest.importorskip("distributed")
    import dask

    monkeypatch.setattr(cluster_module, "TIMEOUT_S", TIMEOUT_S)
    file = tmp_path / "scheduler.json"
    paths = [entry for entry in sys.path if entry]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": ""}
    environment[f"DASK_{CONNECTING.upper().replace('.', '__')}"] = f"{TIMEOUT_S}s"
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, *words: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file"]
        pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen([*command, str(file), *words], env=environment, **pipes))

    start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    for _ in range(2):
        start("dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard")
    try:
        with dask.config.set({CONNECTING: f"{TIMEOUT_S}s"}):
            yield _scheduler_address(file, started), started[1:]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def _scheduler_address(file: Path, started: list[subprocess.Popen[bytes]]) -> str:
    """Waits for the scheduler and both workers; returns the address."""
    import distributed

    end = time.monotonic() + TIMEOUT_S
    while not (address := _read_address(file)):
        assert all(process.poll() is None for process in started), "a process exited"
        assert time.monotonic() < end, "the scheduler did not write its address"
        time.sleep(0.1)
    with distributed.Client(address, timeout=TIMEOUT_S, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=TIMEOUT_S)
    return address


def _read_address(file: Path) -> str:
    """The address in the scheduler's file; "" if the file is missing or incomplete."""
    try:
        address: str = json.loads(file.read_text())["address"]
    except (OSError, ValueError):
        return ""
    return address


def test_two_workers_give_the_rows_of_one_process_even_if_one_is_killed(
    cluster: Cluster, small: list[SweepRun], repeatable: Repeatable
) -> None:
    address, workers = cluster
    slow = [
        msgspec.structs.replace(run, plan={**run.plan, "drive_writes": 3.0}) for run in small[:6]
    ]
    outcomes = []
    for outcome in execute_on_cluster(address, slow):
        outcomes.append(outcome)
        if len(outcomes) == 2:
            workers[0].kill()
    assert Counter(each.run.key for each in outcomes) == Counter(run.key for run in slow)
    rows = {outcome.run.key: repeatable(outcome.row) for outcome in outcomes}
    assert rows == {run.key: repeatable(execute(run)) for run in slow}


def test_a_failed_run_has_its_reason(cluster: Cluster, small: list[SweepRun]) -> None:
    broken = msgspec.structs.replace(small[0], key="broken", profile="[drive]\n")
    runs = [broken, small[1]]
    outcomes = {each.run.key: each for each in execute_on_cluster(cluster[0], runs)}
    assert "TargetError" in outcomes["broken"].reason
    assert outcomes[small[1].key].row


def test_without_dask_an_error_says_what_to_install(
    small: list[SweepRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"ssdlab\[dask\]"):
        next(execute_on_cluster("tcp://127.0.0.1:1", small))

"""The same runs on a Dask cluster of two processes: the same rows, one worker lost or not."""

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
from ssdlab.sweep import cluster as on_cluster
from ssdlab.sweep.cluster import perform_on
from ssdlab.sweep.design import Order
from ssdlab.sweep.work import perform

Told = Callable[[dict[str, Any] | None], dict[str, Any]]
Cluster = tuple[str, list[subprocess.Popen[bytes]]]
PATIENCE_S = 600
CONNECTING = "distributed.comm.timeouts.connect"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Its address and its two workers; all have patience with a busy machine."""
    pytest.importorskip("distributed")
    import dask

    monkeypatch.setattr(on_cluster, "TIMEOUT_S", PATIENCE_S)
    file = tmp_path / "scheduler.json"
    paths = [entry for entry in sys.path if entry]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": ""}
    surroundings[f"DASK_{CONNECTING.upper().replace('.', '__')}"] = f"{PATIENCE_S}s"
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, *words: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file"]
        told_to: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen([*command, str(file), *words], env=surroundings, **told_to))

    start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    for _ in range(2):
        start("dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard")
    try:
        with dask.config.set({CONNECTING: f"{PATIENCE_S}s"}):
            yield _answering(file, started), started[1:]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def _answering(file: Path, started: list[subprocess.Popen[bytes]]) -> str:
    """The scheduler's address, once both workers are there."""
    import distributed

    end = time.monotonic() + PATIENCE_S
    while not (address := _address_in(file)):
        assert all(process.poll() is None for process in started), "one of them has ended"
        assert time.monotonic() < end, "the scheduler does not tell its address"
        time.sleep(0.1)
    with distributed.Client(address, timeout=PATIENCE_S, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE_S)
    return address


def _address_in(file: Path) -> str:
    """What the scheduler wrote; "" while that is not there, or a part of it."""
    try:
        address: str = json.loads(file.read_text())["address"]
    except (OSError, ValueError):
        return ""
    return address


def test_two_workers_give_what_one_process_gives_though_one_of_them_is_killed(
    cluster: Cluster, small: list[Order], told: Told
) -> None:
    address, workers = cluster
    slow = [
        msgspec.structs.replace(order, plan={**order.plan, "drive_writes": 3.0})
        for order in small[:6]
    ]
    ended = []
    for each in perform_on(address, slow):
        ended.append(each)
        if len(ended) == 2:
            workers[0].kill()
    assert Counter(each.order.key for each in ended) == Counter(order.key for order in slow)
    rows = {each.order.key: told(each.row) for each in ended}
    assert rows == {order.key: told(perform(order)) for order in slow}


def test_a_failed_run_is_told_with_its_reason(cluster: Cluster, small: list[Order]) -> None:
    broken = msgspec.structs.replace(small[0], key="broken", profile="[drive]\n")
    ended = {each.order.key: each for each in perform_on(cluster[0], [broken, small[1]])}
    assert "TargetError" in ended["broken"].reason
    assert ended[small[1].key].row


def test_without_dask_one_line_says_what_to_install(
    small: list[Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"ssdlab\[dask\]"):
        next(perform_on("tcp://127.0.0.1:1", small))

"""Runs on local cores: losing a worker, or a failure, affects only its own run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
import pytest

from ssdlab.errors import UsageError
from ssdlab.sweep.execute import Outcome, execute, execute_locally, memory_of, workers_for
from ssdlab.sweep.spec import SweepRun

Repeatable = Callable[[dict[str, Any] | None], dict[str, Any]]
ENDLESS = 1e8
"""Drive writes of a run that would take days."""
TIMEOUT_S = 60


def test_a_run_whose_worker_is_killed_is_retried_and_every_run_counts_once(
    small: list[SweepRun], repeatable: Repeatable
) -> None:
    # If a run ends before its worker is killed, the test is repeated with a longer run.
    longer = (_longer(small[1], drive_writes) for drive_writes in (30.0, 300.0, 3000.0, 30000.0))
    assert any(_is_killed_once([small[0], long, *small[2:6]], repeatable) for long in longer)


def _is_killed_once(runs: list[SweepRun], repeatable: Repeatable) -> bool:
    """Whether the worker of the second, long run was killed during that run."""
    outcomes = _kill_all_after_the_first(runs)
    assert Counter(each.run.key for each in outcomes) == Counter(run.key for run in runs)
    assert all(each.row is not None for each in outcomes)
    assert active_children() == []
    [again] = [each for each in outcomes if each.run is runs[1]]
    assert repeatable(again.row) == repeatable(execute(runs[1]))
    assert again.attempts <= 2
    return again.attempts == 2


def _kill_all_after_the_first(runs: list[SweepRun]) -> list[Outcome]:
    outcomes = []
    with closing(execute_locally(runs, 2)) as generator:
        for outcome in generator:
            outcomes.append(outcome)
            if len(outcomes) == 1:  # the long run is in progress
                for child in active_children():
                    child.kill()
    return outcomes


def _longer(run: SweepRun, drive_writes: float) -> SweepRun:
    return msgspec.structs.replace(run, plan={**run.plan, "drive_writes": drive_writes})


def test_a_failing_run_is_tried_twice_and_does_not_affect_the_others(small: list[SweepRun]) -> None:
    broken = msgspec.structs.replace(small[0], key="broken", profile="[drive]\n")
    outcomes = {each.run.key: each for each in execute_locally([broken, *small[1:4]], 2)}
    assert len(outcomes) == 4
    assert outcomes["broken"].row is None
    assert outcomes["broken"].attempts == 2
    assert "TargetError" in outcomes["broken"].reason
    assert all(each.row for key, each in outcomes.items() if key != "broken")


def test_a_run_whose_worker_is_killed_twice_fails_with_that_reason(
    small: list[SweepRun],
) -> None:
    over = Event()

    def kill_all() -> None:
        while not over.wait(0.2):
            for child in active_children():
                child.kill()

    killer = Thread(target=kill_all)
    killer.start()
    try:
        [outcome] = execute_locally([_longer(small[0], ENDLESS)], 1)
    finally:
        over.set()
        killer.join()
    assert (outcome.row, outcome.reason, outcome.attempts) == (None, "its worker was killed", 2)


def test_closing_the_generator_stops_the_remaining_runs(small: list[SweepRun]) -> None:
    generator = execute_locally([small[0], *(_longer(run, ENDLESS) for run in small[1:])], 2)
    assert next(generator).run is small[0]
    closing_thread = Thread(target=generator.close, daemon=True)
    closing_thread.start()
    closing_thread.join(TIMEOUT_S)
    left = active_children()
    for child in left:
        child.kill()
    assert left == []


def test_memory_limits_the_number_of_workers(small: list[SweepRun]) -> None:
    one = memory_of(small[0])
    assert workers_for(small, 8, available=3 * one) == 2
    assert workers_for(small, 1, available=100 * one) == 1
    assert workers_for(small[:1], 8, available=100 * one) == 1
    with pytest.raises(UsageError, match="smaller capacity"):
        workers_for(small, None, available=one)


def test_the_memory_estimate_exceeds_ten_bytes_for_each_4_kib(small: list[SweepRun]) -> None:
    large = msgspec.structs.replace(small[0], flash=512 << 30)
    assert memory_of(large) - memory_of(small[0]) > 10 * (500 << 30) // 4096


PARENT = """
import msgspec, sys
from ssdlab.sweep.execute import execute_locally
from ssdlab.sweep.spec import SweepRun

if __name__ == "__main__":
    runs = msgspec.json.decode(sys.argv[1], type=list[SweepRun])
    print("started", flush=True)
    list(execute_locally(runs, 2))
"""


def test_workers_end_with_a_parent_that_is_killed(small: list[SweepRun], tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    runs = msgspec.json.encode([_longer(small[0], ENDLESS)]).decode()
    with subprocess.Popen([sys.executable, program, runs], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        # Two workers, of which one is idle, and the process that cleans up semaphores.
        children = _wait_for(lambda: _children(parent.pid), lambda found: len(found) >= 3)
        busy = _wait_for(lambda: [each for each in children if _cpu_seconds(each) > 3], bool)
        parent.kill()
    assert busy
    left = _wait_for(
        lambda: [each for each in children if _is_alive(each)], lambda found: not found
    )
    for child in left:
        os.kill(child, signal.SIGKILL)
    assert left == []


def _wait_for(read: Callable[[], list[int]], is_enough: Callable[[list[int]], bool]) -> list[int]:
    end = time.monotonic() + TIMEOUT_S
    while not is_enough(found := read()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return int(fields[11]) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _is_alive(pid: int) -> bool:
    return _stat(pid)[:1] not in ([], ["Z"])

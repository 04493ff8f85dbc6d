"""A sweep of 200 twins by one process, two processes, and a Dask cluster of two workers.

Usage: python bench/sweep.py [--spec SPEC] [--every 1] [--turns 4] [--without-dask]

Twins of 8 GiB (spare x victim policy x skew): examples/sweeps/spare.toml. All methods must give the
same rows. The times include the start of processes and the workers' imports, but not the start of
the cluster. The runs are divided into parts; each part is run by every method in turn. `--every 4`
takes every fourth run. The output includes the load by other processes: a ratio of times is valid
only if processors were free. CPU seconds show the overhead of running in parallel: with two idle
processors the speed-up is at most twice the CPU seconds of one process over those of the method.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from ssdlab.sweep.execute import Outcome, execute_locally, execute_on_cluster
from ssdlab.sweep.spec import SweepRun, plan_runs, read_spec

Rows = dict[str, dict[str, Any]]


def rows_of(ends: Iterable[Outcome], every: int) -> Rows:
    """The rows by key, without their run times."""
    rows: Rows = {}
    for at, ended in enumerate(ends, 1):
        assert ended.row is not None, ended.reason
        assert ended.run.key not in rows, "a run came twice"
        kept = {name: value for name, value in ended.row.items() if name != "seconds"}
        rows[ended.run.key] = kept
        print(f"\r{at} of {every}", end="", file=sys.stderr)
    return rows


@dataclass(frozen=True)
class Timing:
    """Rows, wall-clock seconds, CPU seconds, and processors kept busy by other processes."""

    rows: Rows
    seconds: float
    cpu_s: float
    others: float


def timed(work: Callable[[], Rows]) -> Timing:
    """Runs and times one method."""
    before, own, began = psutil.cpu_times(), _cpu_seconds(), time.monotonic()
    rows = work()
    seconds = time.monotonic() - began
    after = psutil.cpu_times()
    busy = sum(after) - sum(before) - (after.idle - before.idle) - (after.iowait - before.iowait)
    used = _cpu_seconds() - own
    return Timing(rows, seconds, used, max(0.0, busy - used) / seconds)


def _cpu_seconds() -> float:
    """CPU seconds of this process and its descendants, including ended ones."""
    times = psutil.Process().cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in psutil.Process().children(recursive=True):
        own = child.cpu_times()
        total += own.user + own.system
    return float(total)


@contextmanager
def cluster() -> Iterator[str]:
    """Starts a scheduler and two workers with one thread each; yields its address."""
    import distributed

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        words = [["dask_scheduler", "--host", "127.0.0.1", "--port", "0"]]
        words += [["dask_worker", "--nthreads", "1", "--no-nanny"]] * 2
        where = ["--scheduler-file", str(file), "--no-dashboard"]
        started = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *where, *more], **quiet
            )
            for program, *more in words
        ]
        try:
            while not file.exists() or not file.stat().st_size:
                time.sleep(0.1)
            with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
                client.wait_for_workers(2, timeout=60)
                address = client.scheduler.address
            yield address
        finally:
            for process in reversed(started):
                process.kill()
                process.wait()


def by_processes(runs: list[SweepRun], workers: int) -> Rows:
    """Performs all runs on this machine."""
    return rows_of(execute_locally(runs, workers), len(runs))


def by_cluster(runs: list[SweepRun], address: str) -> Rows:
    """Performs all runs on a cluster."""
    return rows_of(execute_on_cluster(address, runs), len(runs))


def compare(runs: list[SweepRun], turns: int, *, with_dask: bool) -> None:
    """Runs each part by every method in turn, so that changes of the machine affect all alike."""
    timings: dict[str, list[Timing]] = {}
    for part in (runs[at::turns] for at in range(turns)):
        timings.setdefault("1 process", []).append(timed(partial(by_processes, part, 1)))
        timings.setdefault("2 processes", []).append(timed(partial(by_processes, part, 2)))
        if with_dask:
            with cluster() as address:
                timing = timed(partial(by_cluster, part, address))
            timings.setdefault("Dask, 2 workers", []).append(timing)
    for name, parts in timings.items():
        print_method(name, parts, timings["1 process"])


def print_method(name: str, parts: list[Timing], first: list[Timing]) -> None:
    """Prints a line: the speed-up over all parts, with the smallest and largest of a part."""
    same = all(part.rows == other.rows for part, other in zip(parts, first, strict=True))
    seconds = sum(part.seconds for part in parts)
    ratios = [other.seconds / part.seconds for part, other in zip(parts, first, strict=True)]
    print(
        f"\r{name}: {sum(len(part.rows) for part in parts)} runs in {seconds:.1f} s, "
        f"{sum(part.seconds for part in first) / seconds:.2f} times one process ({min(ratios):.2f} "
        f"to {max(ratios):.2f}), {'same rows' if same else 'OTHER ROWS'}; "
        f"{sum(part.cpu_s for part in parts):.1f} CPU seconds; other processes kept "
        f"{sum(part.others * part.seconds for part in parts) / seconds:.2f} processors busy"
    )


def main() -> None:
    """Runs all methods."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, default=Path("examples/sweeps/spare.toml"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--without-dask", action="store_true")
    options = parser.parse_args()
    runs = plan_runs(read_spec(options.spec)[0])[:: options.every]
    compare(runs, options.turns, with_dask=not options.without_dask)


if __name__ == "__main__":
    main()

"""A sweep of 200 twins by one process, by two, and by a Dask cluster of two: the same rows, sooner.

Usage: python bench/sweep.py [--spec SPEC] [--every 1] [--turns 4] [--without-dask]

Twins of 8 GiB (spare x victim policy x skew): examples/sweeps/spare.toml. The times include the
start of processes and workers' imports, not the cluster's start. The runs are done in parts, each
by every way in turn. `--every 4` takes every fourth run, of all ways alike. The machine's other
work is told beside: a ratio of times is worth something only where processors were free. Processor
seconds say what several at a time cost beyond one: two idle processors give at most twice the
first way's over another's.
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

from ssdlab.sweep.cluster import execute_on_cluster
from ssdlab.sweep.design import SweepRun, plan_runs
from ssdlab.sweep.local import Outcome, execute_locally
from ssdlab.sweep.spec import read_spec

Rows = dict[str, dict[str, Any]]


def rows_of(ends: Iterable[Outcome], every: int) -> Rows:
    """The rows by key, without what differs from time to time."""
    found: Rows = {}
    for at, ended in enumerate(ends, 1):
        assert ended.row is not None, ended.reason
        assert ended.run.key not in found, "a run came twice"
        kept = {name: value for name, value in ended.row.items() if name != "seconds"}
        found[ended.run.key] = kept
        print(f"\r{at} of {every}", end="", file=sys.stderr)
    return found


@dataclass(frozen=True)
class Way:
    """What came of it, seconds, processor seconds of it, processors that others kept busy."""

    rows: Rows
    seconds: float
    cpu_s: float
    others: float


def timed(work: Callable[[], Rows]) -> Way:
    """One way of doing all."""
    before, own, began = psutil.cpu_times(), _own(), time.monotonic()
    rows = work()
    seconds = time.monotonic() - began
    after = psutil.cpu_times()
    busy = sum(after) - sum(before) - (after.idle - before.idle) - (after.iowait - before.iowait)
    used = _own() - own
    return Way(rows, seconds, used, max(0.0, busy - used) / seconds)


def _own() -> float:
    """CPU seconds of this process and of all below it, ended ones too."""
    times = psutil.Process().cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in psutil.Process().children(recursive=True):
        own = child.cpu_times()
        total += own.user + own.system
    return float(total)


@contextmanager
def cluster() -> Iterator[str]:
    """A scheduler and two workers of a thread each; its address."""
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
    """All of them on this machine."""
    return rows_of(execute_locally(runs, workers), len(runs))


def by_cluster(runs: list[SweepRun], address: str) -> Rows:
    """All of them on a cluster."""
    return rows_of(execute_on_cluster(address, runs), len(runs))


def compared(runs: list[SweepRun], turns: int, *, with_dask: bool) -> None:
    """Each way of each part in turn, so that a machine that changes its speed does so to all."""
    took: dict[str, list[Way]] = {}
    for part in (runs[at::turns] for at in range(turns)):
        took.setdefault("1 process", []).append(timed(partial(by_processes, part, 1)))
        took.setdefault("2 processes", []).append(timed(partial(by_processes, part, 2)))
        if with_dask:
            with cluster() as address:
                way = timed(partial(by_cluster, part, address))
            took.setdefault("Dask, 2 workers", []).append(way)
    for name, each in took.items():
        tell(name, each, took["1 process"])


def tell(name: str, ways: list[Way], first: list[Way]) -> None:
    """A line: of all parts together, and the ratio of the slowest and of the quickest part."""
    same = all(way.rows == other.rows for way, other in zip(ways, first, strict=True))
    seconds = sum(way.seconds for way in ways)
    ratios = [other.seconds / way.seconds for way, other in zip(ways, first, strict=True)]
    print(
        f"\r{name}: {sum(len(way.rows) for way in ways)} runs in {seconds:.1f} s, "
        f"{sum(way.seconds for way in first) / seconds:.2f} times one process ({min(ratios):.2f} "
        f"to {max(ratios):.2f}), {'same rows' if same else 'OTHER ROWS'}; "
        f"{sum(way.cpu_s for way in ways):.1f} s of processors; others kept "
        f"{sum(way.others * way.seconds for way in ways) / seconds:.2f} busy"
    )


def main() -> None:
    """Runs all ways."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, default=Path("examples/sweeps/spare.toml"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--without-dask", action="store_true")
    options = parser.parse_args()
    runs = plan_runs(read_spec(options.spec)[0])[:: options.every]
    compared(runs, options.turns, with_dask=not options.without_dask)


if __name__ == "__main__":
    main()

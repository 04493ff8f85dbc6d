"""Executes the runs of a sweep: in worker processes on this machine, or on a Dask cluster.

If a `concurrent.futures` pool loses a process, it abandons all its runs and does not say which run
caused the loss. Therefore each worker has its own pool of one process: a lost process costs only
one run, and the standard library suffices.

Dask is an extra (`pip install 'ssdlab[dask]'`), imported on demand. Its scheduler reassigns the
runs of a lost worker; a run that fails is retried once.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import Any, Final

import msgspec

from ssdlab.analysis.evidence import Evidence
from ssdlab.device import describe_twin, open_twin
from ssdlab.errors import UsageError
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession
from ssdlab.sweep.measure import Plan, conclude, measure
from ssdlab.sweep.spec import SweepRun

PROCESS_BYTES: Final = 192 << 20
"""Memory of a worker process without a twin: Python, NumPy, Arrow."""
UNIT: Final = 4096
UNIT_BYTES: Final = 16
"""Upper bound of a twin's memory in bytes per 4 KiB of simulated flash; measured: 10."""
ATTEMPTS: Final = 2
KILLED: Final = "its worker was killed"
TIMEOUT_S: Final = 10


def execute(run: SweepRun) -> dict[str, Any]:
    """Executes a run; returns its findings, `cost` (flash / usable capacity) and `seconds`.

    Raises:
        SsdlabError: the run failed.
    """
    start = time.monotonic()
    plan = msgspec.convert(run.plan, Plan)
    drive = open_twin(run.name, run.profile, run.capacity, seed=plan.seed)
    twin = describe_twin(run.name, run.profile, run.capacity)
    identity = {"kind": "twin", "name": run.name, **twin}
    session = RunSession(OpenTarget(drive, identity, profile=run.profile))
    session.run_plan(measure, plan)
    findings = conclude(Evidence(session.recording.tables(), plan.parameters())).findings
    return {
        **{name: finding.value for name, finding in findings.items()},
        "cost": twin["flash_bytes"] / twin["capacity_bytes"],
        "ssdlab": version("ssdlab"),
        "seconds": time.monotonic() - start,
    }


def memory_of(run: SweepRun) -> int:
    """Upper bound of the memory that a run's process needs, in bytes."""
    return PROCESS_BYTES + run.flash // UNIT * UNIT_BYTES


def workers_for(runs: list[SweepRun], limit: int | None, available: int | None = None) -> int:
    """The number of processes: one per core, but at most `limit` and as many as fit in memory.

    Raises:
        UsageError: there is not enough memory for one process.
    """
    if available is None:
        available = _available_memory()
    most = max((memory_of(run) for run in runs), default=PROCESS_BYTES)
    fit = available * 8 // 10 // most
    if not fit:
        raise UsageError(
            f"a run of this sweep takes {most >> 20} MiB of memory, and {available >> 20} MiB are "
            "free; give a smaller capacity"
        )
    return max(1, min(limit or len(os.sched_getaffinity(0)), fit, len(runs) or 1))


def _available_memory() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) << 10


def prepare_worker() -> None:
    """Makes a worker process ignore Ctrl-C, which its parent handles, and end with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()  # also returns if the parent was killed
    os._exit(1)


@dataclass(frozen=True)
class Outcome:
    """A run that succeeded or failed: its row, or None and the reason; number of attempts."""

    run: SweepRun
    row: dict[str, Any] | None
    reason: str
    attempts: int


@dataclass
class _Worker:
    """A worker process and its current run; a process that dies is replaced."""

    executor: ProcessPoolExecutor = field(init=False)
    processes: list[BaseProcess] = field(init=False)
    future: Future[dict[str, Any]] | None = None
    run: SweepRun | None = None
    attempt: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Spawns a process; a forked one would inherit locks that libraries hold."""
        context = get_context("spawn")
        try:
            self.executor = ProcessPoolExecutor(1, mp_context=context, initializer=prepare_worker)
        except OSError as error:
            raise UsageError(
                f"cannot create a semaphore ({error.strerror}), which a sweep's processes need; "
                "make /dev/shm a tmpfs that you may write to"
            ) from error
        others = set(active_children())
        # The first task starts the process, which inherits the signal mask: a Ctrl-C during its
        # start is handled by this process.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self.executor.submit(os.getpid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.processes = [child for child in active_children() if child not in others]

    def submit(self, run: SweepRun, attempt: int) -> None:
        """Starts a run; replaces a process that died while idle."""
        self.run, self.attempt = run, attempt
        try:
            self.future = self.executor.submit(execute, run)
        except BrokenProcessPool:
            self.restart()
            self.future = self.executor.submit(execute, run)

    def take_outcome(self) -> Outcome:
        """The outcome of the finished run; the worker is idle afterwards."""
        assert self.future is not None
        assert self.run is not None
        error, run, attempt = self.future.exception(), self.run, self.attempt
        row = self.future.result() if error is None else None
        self.future = self.run = None
        if isinstance(error, BrokenProcessPool):
            self.restart()
            return Outcome(run, None, KILLED, attempt)
        reason = "" if error is None else f"{type(error).__name__}: {error}"
        return Outcome(run, row, reason, attempt)

    def stop(self) -> None:
        """Kills the process if it is busy, and releases its resources."""
        if self.future is not None:
            for process in self.processes:
                process.kill()
        self.executor.shutdown(wait=True, cancel_futures=True)


def execute_locally(runs: Sequence[SweepRun], workers: int) -> Generator[Outcome, None, None]:
    """Executes all runs, `workers` at a time; yields each outcome, after a retry if one fails.

    Closing the generator stops the remaining runs.

    Raises:
        UsageError: the system has no semaphores.
    """
    waiting = deque((run, 1) for run in runs)
    pool = [_Worker() for _ in range(workers)]
    try:
        while waiting or any(worker.future for worker in pool):
            for worker in pool:
                if worker.future is None and waiting:
                    worker.submit(*waiting.popleft())
            futures = [worker.future for worker in pool if worker.future]
            wait(futures, return_when=FIRST_COMPLETED)
            for worker in pool:
                if worker.future is not None and worker.future.done():
                    outcome = worker.take_outcome()
                    if outcome.row is None and outcome.attempts < ATTEMPTS:
                        waiting.append((outcome.run, outcome.attempts + 1))
                    else:
                        yield outcome
    finally:
        for worker in pool:
            worker.stop()


def execute_on_cluster(address: str, runs: Sequence[SweepRun]) -> Generator[Outcome, None, None]:
    """Executes all runs on the cluster at `address`; yields each outcome as it comes.

    The threads and memory of the workers limit the number of simultaneous runs.

    Raises:
        UsageError: Dask is not installed, no scheduler answers, the cluster has no worker, or a
            worker has another version of ssdlab.
    """
    distributed = _import_distributed()
    try:
        client = distributed.Client(address, timeout=TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--dask {address}: no scheduler answers there ({type(error).__name__}); give the "
            "address that it printed, such as tcp://HOST:8786"
        ) from error
    with client:
        slots = _slots(client, address, runs)
        _check_versions(client, address)
        waiting = iter(runs)
        first = [_submit(client, run) for run in islice(waiting, slots)]
        by_key = {run.key: run for run in runs}
        running = distributed.as_completed(first, loop=client.loop)
        for future in running:
            yield _outcome(future, by_key[future.key.removeprefix("ssdlab-")])
            future.release()
            if (run := next(waiting, None)) is not None:
                running.add(_submit(client, run))


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise UsageError(
            "--dask needs Dask, which is not installed; pip install 'ssdlab[dask]', here and on "
            "the workers"
        ) from error
    return distributed


def _slots(client: Any, address: str, runs: Sequence[SweepRun]) -> int:
    """The number of simultaneous runs, limited by the workers' threads and memory."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if not workers:
        raise UsageError(f"--dask {address}: the cluster has no worker; start some and retry")
    most = max((memory_of(run) for run in runs), default=1)
    slots = [min(w["nthreads"], (w["memory_limit"] or 1 << 62) // most) for w in workers]
    if not any(slots):
        raise UsageError(
            f"--dask {address}: a run takes {most >> 20} MiB of memory, more than any worker has; "
            "give a smaller capacity or larger workers"
        )
    return int(sum(slots))


def _check_versions(client: Any, address: str) -> None:
    own = version("ssdlab")
    for worker, installed in client.run(version, "ssdlab").items():
        if installed != own:
            raise UsageError(
                f"--dask {address}: worker {worker} has ssdlab {installed}, this machine has "
                f"{own}; install the same version"
            )


def _submit(client: Any, run: SweepRun) -> Any:
    return client.submit(execute, run, key=f"ssdlab-{run.key}", retries=ATTEMPTS - 1)


def _outcome(future: Any, run: SweepRun) -> Outcome:
    error = future.exception()
    if error is not None:
        return Outcome(run, None, f"{type(error).__name__}: {error}", ATTEMPTS)
    return Outcome(run, future.result(), "", 1)

"""Runs a sweep on the cores of this machine, with one process for each worker.

If a `concurrent.futures` pool loses a process, it abandons all its runs and does not say which run
caused the loss. A pool of one process for each worker loses one run only, and needs no library
outside Python's own.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.sweep.design import SweepRun
from ssdlab.sweep.worker import execute, set_signal_handlers

ATTEMPTS: Final = 2
KILLED: Final = "its worker was killed"


@dataclass(frozen=True)
class Outcome:
    """A finished run: its row, or None and the reason of the failure; number of attempts."""

    run: SweepRun
    row: dict[str, Any] | None
    reason: str
    attempts: int


@dataclass
class _Worker:
    """A process and its current run; the process is replaced if it is lost."""

    executor: ProcessPoolExecutor = field(init=False)
    processes: list[BaseProcess] = field(init=False)
    future: Future[dict[str, Any]] | None = None
    run: SweepRun | None = None
    attempt: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Starts a process; spawned, because a fork inherits locks that libraries hold."""
        context = get_context("spawn")
        try:
            self.executor = ProcessPoolExecutor(
                1, mp_context=context, initializer=set_signal_handlers
            )
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
        """Kills the process if it is running something, and releases it."""
        if self.future is not None:
            for process in self.processes:
                process.kill()
        self.executor.shutdown(wait=True, cancel_futures=True)


def execute_locally(runs: Sequence[SweepRun], workers: int) -> Generator[Outcome, None, None]:
    """Executes all runs, `workers` at a time; yields each outcome, a failure after a retry.

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

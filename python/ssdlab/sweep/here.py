"""A sweep on the cores of this machine: lanes, each a process of its own.

A pool of `concurrent.futures` that loses one process gives up all runs that are in it, and does not
say whose the loss was. A pool of one process for each lane loses that lane's run and no other, and
needs no library beside Python.
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
from ssdlab.sweep.design import Order
from ssdlab.sweep.work import perform, settle

ATTEMPTS: Final = 2
KILLED: Final = "its worker was killed"


@dataclass(frozen=True)
class Ended:
    """A run that came to an end: its row, or why there is none, and at which attempt."""

    order: Order
    row: dict[str, Any] | None
    reason: str
    attempts: int


@dataclass
class _Lane:
    """One process, made anew when it was lost, and the run that it is at."""

    executor: ProcessPoolExecutor = field(init=False)
    processes: list[BaseProcess] = field(init=False)
    run: Future[dict[str, Any]] | None = None
    order: Order | None = None
    attempt: int = 0

    def __post_init__(self) -> None:
        """Starts it; no waiting."""
        self.renew()

    def renew(self) -> None:
        """Another process; a fork would inherit what the parent's libraries hold locked."""
        context = get_context("spawn")
        try:
            self.executor = ProcessPoolExecutor(1, mp_context=context, initializer=settle)
        except OSError as error:
            raise UsageError(
                f"no semaphore can be had here ({error.strerror}), and a sweep's processes need "
                "them: make /dev/shm a tmpfs that you may write to"
            ) from error
        others = set(active_children())
        # The process begins with the first task. It inherits what is blocked: a Ctrl-C that comes
        # while it starts is this process's affair.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self.executor.submit(os.getpid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        self.processes = [child for child in active_children() if child not in others]

    def begin(self, order: Order, attempt: int) -> None:
        """Gives it a run; a process that died in the meantime is replaced."""
        self.order, self.attempt = order, attempt
        try:
            self.run = self.executor.submit(perform, order)
        except BrokenProcessPool:
            self.renew()
            self.run = self.executor.submit(perform, order)

    def take(self) -> Ended:
        """The end of its run; it is free then."""
        assert self.run is not None
        assert self.order is not None
        error, order, attempt = self.run.exception(), self.order, self.attempt
        row = self.run.result() if error is None else None
        self.run = self.order = None
        if isinstance(error, BrokenProcessPool):
            self.renew()
            return Ended(order, None, KILLED, attempt)
        reason = "" if error is None else f"{type(error).__name__}: {error}"
        return Ended(order, row, reason, attempt)

    def end(self) -> None:
        """Ends the process at once, whatever it is at."""
        if self.run is not None:
            for process in self.processes:
                process.kill()
        self.executor.shutdown(wait=True, cancel_futures=True)


def perform_here(orders: Sequence[Order], workers: int) -> Generator[Ended, None, None]:
    """Performs all, `workers` at a time; yields each as it ends, failed ones after a second try.

    Closing the iterator ends what is still running.

    Raises:
        UsageError: the system gives no semaphores.
    """
    waiting = deque((order, 1) for order in orders)
    lanes = [_Lane() for _ in range(workers)]
    try:
        while waiting or any(lane.run for lane in lanes):
            for lane in lanes:
                if lane.run is None and waiting:
                    lane.begin(*waiting.popleft())
            wait([lane.run for lane in lanes if lane.run], return_when=FIRST_COMPLETED)
            for lane in lanes:
                if lane.run is not None and lane.run.done():
                    ended = lane.take()
                    if ended.row is None and ended.attempts < ATTEMPTS:
                        waiting.append((ended.order, ended.attempts + 1))
                    else:
                        yield ended
    finally:
        for lane in lanes:
            lane.end()

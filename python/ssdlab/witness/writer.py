"""The writer: threads that write stamped requests at random places, and tell the witness.

Each thread is a stream of its own. Before a write its message is queued, after a flush returned a
message that the stream is durable up to here: that order is all that the ledger rests on. Writes in
flight never overlap, so that the order of generations is the order on the drive.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ssdlab.errors import DeviceFailure, SsdlabError
from ssdlab.witness.client import Link
from ssdlab.witness.ledger import STREAMS_MAX, first_generation, flushed, issued, stream_of
from ssdlab.witness.stamps import SECTOR, SECTORS_MAX, Request, encode
from ssdlab.witness.target import EACH, Sync, Target

FILL_FLUSH_EVERY: Final = 32
TELL_EVERY_S: Final = 0.2
THREADS_MAX: Final = 256
assert THREADS_MAX < STREAMS_MAX


@dataclass(frozen=True, slots=True)
class Plan:
    """What is written: sizes in bytes; `batch` is the most requests between two flushes.

    `requests` ends the round, None for none: only the cut does.
    """

    run: bytes
    sync: Sync = "fdatasync"
    threads: int = 4
    smallest: int = SECTOR
    largest: int = SECTORS_MAX * SECTOR
    batch: int = 8
    requests: int | None = None
    seed: int = 0


@dataclass
class Written:
    """How a round went; `error` is what the device said when it went away."""

    requests: int = 0
    flushes: int = 0
    write_bytes: int = 0
    error: str | None = None


class Claims:
    """The extents in flight, and the generations: an extent that overlaps one must wait."""

    def __init__(self, generation: int) -> None:
        self._taken: dict[int, tuple[int, int]] = {}
        self._generation = generation
        self._guard = threading.Lock()

    def take(self, first: int, sectors: int) -> int | None:
        """The generation of a request that may go ahead; None where it overlaps another."""
        with self._guard:
            if any(first < end and begin < first + sectors for begin, end in self._taken.values()):
                return None
            self._generation += 1
            self._taken[self._generation] = (first, first + sectors)
            return self._generation

    def release(self, generation: int) -> None:
        """The request has returned."""
        with self._guard:
            del self._taken[generation]


@dataclass
class Writer:
    """One round of writing; `link` takes the messages."""

    target: Target
    plan: Plan
    link: Link
    written: Written = field(default_factory=Written)

    def __post_init__(self) -> None:
        self._claims = Claims(first_generation(self.link.round))
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._failure: SsdlabError | None = None

    def fill(self, tell: Callable[[float], None]) -> None:
        """Stamps the whole region once, in order, so that nothing in it is unknown.

        `tell` hears the share that is done.

        Raises:
            DeviceFailure: the device went away.
        """
        stream = stream_of(self.link.round, 0)
        step = min(SECTORS_MAX, self._sectors)
        firsts = range(0, self._sectors, step)
        for sequence, first in enumerate(firsts, start=1):
            sectors = min(step, self._sectors - first)
            self._write(stream, sequence, (first, sectors))
            if sequence % FILL_FLUSH_EVERY == 0 or sequence == len(firsts):
                self._make_durable(stream, sequence)
                tell(sequence / len(firsts))

    def run(self, tell: Callable[[Written], None], seconds: float = math.inf) -> Written:
        """Writes until the plan's requests are written, the time is over or the device goes away.

        Raises:
            SsdlabError: the witness has refused; not that the device failed, which is `error`.
            KeyboardInterrupt: after the threads have ended.
        """
        threads = [
            threading.Thread(target=self._guarded, args=(worker,), daemon=True)
            for worker in range(1, self.plan.threads + 1)
        ]
        end = time.monotonic() + seconds
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                threads[0].join(TELL_EVERY_S) if threads[0].is_alive() else time.sleep(TELL_EVERY_S)
                tell(self.written)
                if time.monotonic() >= end:
                    self._stop.set()
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
        if isinstance(self._failure, DeviceFailure):
            self.written.error = str(self._failure)
        elif self._failure is not None:
            raise self._failure
        return self.written

    @property
    def _sectors(self) -> int:
        return self.target.size_bytes // SECTOR

    def _guarded(self, worker: int) -> None:
        try:
            self._work(worker)
        except SsdlabError as error:
            with self._guard:
                self._failure = self._failure or error
            self._stop.set()

    def _work(self, worker: int) -> None:
        stream = stream_of(self.link.round, worker)
        choose = random.Random(f"{self.plan.seed}/{self.link.round}/{worker}")
        sequence = covered = 0
        most = 1 if self.plan.sync in EACH else self.plan.batch
        while not self._stop.is_set():
            for _ in range(choose.randint(1, most)):
                sequence += 1
                self._write(stream, sequence, self._place(choose), covered)
            self._make_durable(stream, sequence)
            covered = sequence

    def _write(
        self,
        stream: int,
        sequence: int,
        place: tuple[int, int] | Callable[[], tuple[int, int]],
        covered: int = 0,
    ) -> None:
        generation, (first, sectors) = self._claim(place)
        request = Request(generation, stream, sequence, first, sectors, covered)
        try:
            data = encode(self.plan.run, request)
            self.link.tell(issued(request))
            self.target.write(first * SECTOR, data)
        finally:
            self._claims.release(generation)
        with self._guard:
            self.written.requests += 1
            self.written.write_bytes += len(data)
            if self.plan.requests is not None and self.written.requests >= self.plan.requests:
                self._stop.set()

    def _claim(
        self, place: tuple[int, int] | Callable[[], tuple[int, int]]
    ) -> tuple[int, tuple[int, int]]:
        while True:
            extent = place() if callable(place) else place
            generation = self._claims.take(*extent)
            if generation is not None:
                return generation, extent

    def _place(self, choose: random.Random) -> Callable[[], tuple[int, int]]:
        """Draws extents: sizes spread evenly over their logarithm, offsets over the whole range."""
        block = self.target.block_bytes // SECTOR
        smallest = max(block, self.plan.smallest // SECTOR)
        largest = min(self.plan.largest // SECTOR, self._sectors)
        low, high = math.log(smallest), math.log(largest + 1)

        def draw() -> tuple[int, int]:
            sectors = min(largest, int(math.exp(choose.uniform(low, high))))
            sectors = max(block, sectors // block * block)
            blocks = (self._sectors - sectors) // block
            return choose.randint(0, blocks) * block, sectors

        return draw

    def _make_durable(self, stream: int, sequence: int) -> None:
        if self.plan.sync not in EACH and self.plan.sync != "none":
            self.target.flush()
        self.link.tell(flushed(stream, sequence))
        with self._guard:
            self.written.flushes += 1

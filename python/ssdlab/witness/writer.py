"""The writer: threads that write stamped requests at random places, and report them to the witness.

Each thread is a stream. It queues the message of a write before the write, and the message that the
stream is durable after the flush returned: the ledger depends on this order. Writes in flight never
overlap, so the order of generations is the order in which the drive gets the writes of a sector.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from ssdlab.errors import DeviceFailure, SsdlabError
from ssdlab.witness.client import MessageSender
from ssdlab.witness.ledger import STREAMS_MAX, first_generation, flushed, issued, stream_of
from ssdlab.witness.limits import SECTOR, SECTORS_MAX, SYNC_PER_WRITE, THREADS_MAX, Sync
from ssdlab.witness.stamps import Request, encode
from ssdlab.witness.target import Target

FILL_FLUSH_EVERY: Final = 32
PROGRESS_INTERVAL_S: Final = 0.2
assert THREADS_MAX < STREAMS_MAX


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a round, sizes in bytes; `batch` limits the requests between two flushes.

    The round ends after `requests` requests; if None, with the cut.
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
    """Counts of a round; `error` says how the device failed."""

    requests: int = 0
    flushes: int = 0
    write_bytes: int = 0
    error: str | None = None


class Extent(NamedTuple):
    """A range of sectors."""

    first: int
    sectors: int


class InFlightExtents:
    """Extents in flight, and the generation counter: overlapping writes must wait."""

    def __init__(self, generation: int) -> None:
        self._extents: dict[int, Extent] = {}
        self._generation = generation
        self._guard = threading.Lock()

    def add(self, extent: Extent) -> int | None:
        """The generation of a new request; None if the extent overlaps one in flight."""
        end = extent.first + extent.sectors
        with self._guard:
            for other in self._extents.values():
                if extent.first < other.first + other.sectors and other.first < end:
                    return None
            self._generation += 1
            self._extents[self._generation] = extent
            return self._generation

    def remove(self, generation: int) -> None:
        """Removes a request that has completed or failed."""
        with self._guard:
            del self._extents[generation]


@dataclass
class Writer:
    """One round of writing; `sender` sends the messages to the witness."""

    target: Target
    options: WriteOptions
    sender: MessageSender
    written: Written = field(default_factory=Written)

    def __post_init__(self) -> None:
        self._in_flight = InFlightExtents(first_generation(self.sender.round))
        self._stop = threading.Event()
        self._guard = threading.Lock()
        self._failure: SsdlabError | None = None
        self._sectors = self.target.size_bytes // SECTOR

    def fill(self, on_progress: Callable[[float], None]) -> None:
        """Writes the whole region once, in order, so that each sector has a known write.

        `on_progress` gets the share written (0 to 1).

        Raises:
            DeviceFailure: a write or flush failed.
        """
        stream = stream_of(self.sender.round, 0)
        step = min(SECTORS_MAX, self._sectors)
        firsts = range(0, self._sectors, step)
        for sequence, first in enumerate(firsts, start=1):
            extent = Extent(first, min(step, self._sectors - first))
            self._write(stream, sequence, partial(Extent, *extent))
            if sequence % FILL_FLUSH_EVERY == 0 or sequence == len(firsts):
                self._flush(stream, sequence)
                on_progress(sequence / len(firsts))

    def run(self, on_progress: Callable[[Written], None], seconds: float = math.inf) -> Written:
        """Writes until the requests or the seconds are used up, or the device fails.

        A device failure is returned in `error`: it is how a cut ends a round.

        Raises:
            SsdlabError: the witness refused further messages.
            KeyboardInterrupt: after the threads have ended.
        """
        threads = [
            threading.Thread(target=self._run_worker, args=(worker,), daemon=True)
            for worker in range(1, self.options.threads + 1)
        ]
        end = time.monotonic() + seconds
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                if threads[0].is_alive():
                    threads[0].join(PROGRESS_INTERVAL_S)
                else:
                    time.sleep(PROGRESS_INTERVAL_S)
                on_progress(self.written)
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

    def _run_worker(self, worker: int) -> None:
        try:
            self._write_batches(worker)
        except SsdlabError as error:
            with self._guard:
                self._failure = self._failure or error
            self._stop.set()

    def _write_batches(self, worker: int) -> None:
        stream = stream_of(self.sender.round, worker)
        rng = random.Random(f"{self.options.seed}/{self.sender.round}/{worker}")
        draw = self._extents(rng)
        sequence = covered = 0
        batch_max = 1 if self.options.sync in SYNC_PER_WRITE else self.options.batch
        while not self._stop.is_set():
            for _ in range(rng.randint(1, batch_max)):
                sequence += 1
                self._write(stream, sequence, draw, covered)
            self._flush(stream, sequence)
            covered = sequence

    def _write(
        self, stream: int, sequence: int, draw: Callable[[], Extent], covered: int = 0
    ) -> None:
        """Writes to an extent from `draw`, which is called again while it overlaps another."""
        while (generation := self._in_flight.add(extent := draw())) is None:
            pass
        request = Request(generation, stream, sequence, *extent, covered)
        try:
            data = encode(self.options.run, request)
            self.sender.send(issued(request))
            self.target.write(extent.first * SECTOR, data)
        finally:
            self._in_flight.remove(generation)
        with self._guard:
            self.written.requests += 1
            self.written.write_bytes += len(data)
            requests = self.options.requests
            if requests is not None and self.written.requests >= requests:
                self._stop.set()

    def _extents(self, rng: random.Random) -> Callable[[], Extent]:
        """Draws extents: sizes log-uniform, offsets uniform over the region."""
        block = self.target.block_bytes // SECTOR
        smallest = max(block, self.options.smallest // SECTOR)
        largest = min(self.options.largest // SECTOR, self._sectors)
        low, high = math.log(smallest), math.log(largest + 1)

        def draw() -> Extent:
            sectors = min(largest, int(math.exp(rng.uniform(low, high))))
            sectors = max(block, sectors // block * block)
            blocks = (self._sectors - sectors) // block
            return Extent(rng.randint(0, blocks) * block, sectors)

        return draw

    def _flush(self, stream: int, sequence: int) -> None:
        if self.options.sync not in SYNC_PER_WRITE and self.options.sync != "none":
            self.target.flush()
        self.sender.send(flushed(stream, sequence))
        with self._guard:
            self.written.flushes += 1

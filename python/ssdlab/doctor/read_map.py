"""The read-speed map of a file: pieces of it, read past the page cache, each timed by the engine.

Pieces lie evenly over what the file has on its device, and are read in an order that jumps about:
where time runs out, the map is coarser and not shorter. Pieces that were slow are read again and
the fastest time counts: a machine that was busy elsewhere makes one reading slow, aged flash all.
Nothing is written.
"""

from __future__ import annotations

import os
import random
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ssdlab.device import Drive, Extents, Job, RealOptions, open_engine, run_job
from ssdlab.snapshot import Piece
from ssdlab.storage_stack.cache import resident_bytes
from ssdlab.storage_stack.extents import Extent

PIECE: Final = 4 << 20
BLOCK: Final = 1 << 20
_FAST, _SLOW = 0.9, 0.7
"""Pieces slower than so much of the speed that a tenth of them exceed are read again."""
_AGAIN: Final = 3
_ALIKE: Final = 1.5
"""Times the fastest reading: up to that the second says the same."""
_LEAST: Final = 4
"""Fewer slow pieces say nothing about the rest."""
_CACHED: Final = 0.5
"""Of what was read; more of it in the page cache afterwards, and it was read through that."""
_FIRST_SHARE: Final = 0.5
"""Of the bytes that may be read, for the first look; the rest is for reading again."""


@dataclass
class Budget:
    """What may be read; `bytes` goes down as it is `spent`, time as the clock goes on."""

    seconds: float
    bytes: int
    clock: Callable[[], float] = time.monotonic
    spent: int = 0
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        """Time runs from now on."""
        self._end = self.clock() + self.seconds

    @property
    def is_spent(self) -> bool:
        """Whether no time or no byte is left."""
        return self.bytes <= 0 or self.clock() >= self._end

    def spend(self, size: int) -> None:
        """So many bytes were read."""
        self.bytes -= size
        self.spent += size

    def share(self, among: int) -> Budget:
        """An equal part of what is left, for one of so many."""
        left_s = max(0.0, self._end - self.clock())
        return Budget(left_s / among, self.bytes // among, self.clock)


Place = tuple[int, int, int, int]
"""Offset and length in the file, the number of the extent it begins in, how many it touches."""


@dataclass(frozen=True)
class Map:
    """Pieces in the order of the file; `unsteady` as in `snapshot.File`.

    `through_cache`: what was read is in the page cache now, although it was asked for directly:
    compressed and encrypted files, data journals. Then the pieces tell of memory.
    """

    pieces: list[Piece]
    unsteady: float | None
    through_cache: bool = False


def places(extents: Sequence[Extent], size: int, budget_bytes: int) -> list[Place]:
    """Pieces that lie evenly over the written parts of a file, in whole blocks of 1 MiB.

    A piece goes across extents, as a program's read does, but never into a hole.
    """
    found: list[tuple[int, int]] = []
    for start, end in _runs(extents):
        first = -(-start // BLOCK) * BLOCK
        last = min(end, size) // BLOCK * BLOCK
        found += [(at, min(PIECE, last - at)) for at in range(first, last, PIECE)]
    whole = sum(length for _, length in found)
    if whole > budget_bytes:
        kept = max(1, len(found) * budget_bytes // whole)
        found = [found[at * len(found) // kept] for at in range(kept)]
    ends = [extent.end for extent in extents]
    return [(at, length, *_touched(ends, at, length)) for at, length in found]


def _touched(ends: Sequence[int], offset: int, length: int) -> tuple[int, int]:
    first = bisect_right(ends, offset)
    return first, bisect_left(ends, offset + length) - first + 1


def _runs(extents: Sequence[Extent]) -> list[tuple[int, int]]:
    """(start, end) in the file of what is written without a hole between."""
    runs: list[tuple[int, int]] = []
    for extent in extents:
        if runs and runs[-1][1] == extent.logical:
            runs[-1] = (runs[-1][0], extent.end)
        else:
            runs.append((extent.logical, extent.end))
    return runs


def read_map(path: Path, extents: Sequence[Extent], budget: Budget) -> Map:
    """Reads one file's pieces.

    Raises:
        TargetError: the file cannot be opened past the page cache.
        DeviceFailure: a read failed.
    """
    size = path.stat().st_size
    chosen = places(extents, size, int(_FIRST_SHARE * budget.bytes))
    if not chosen:
        return Map([], None)
    drive = open_engine(path, RealOptions(writable=False, queue_depth=1, request_bytes_max=BLOCK))
    cached = _cached_bytes(path)
    order = random.Random(0).sample(range(len(chosen)), len(chosen))
    _seconds(drive, chosen[order[0]], path)  # the first also opens queues
    times: dict[int, list[float]] = {}
    for at in _while_left(order, chosen, budget):
        times[at] = [_seconds(drive, chosen[at], path)]
    slow = _slow_ones(chosen, times)
    for _ in range(_AGAIN):
        # In the same order: what shook one reading has time to pass before the next.
        for at in _while_left(slow, chosen, budget):
            times[at].append(_seconds(drive, chosen[at], path))
    return Map(
        [_piece(chosen[at], min(times[at])) for at in sorted(times)],
        unsteady([times[at] for at in _slow_ones(chosen, times)]),
        _cached_bytes(path) - cached > _CACHED * sum(chosen[at][1] for at in times),
    )


def unsteady(readings: Sequence[Sequence[float]]) -> float | None:
    """The share of pieces whose two fastest readings (seconds) differ by half; None of few.

    A place that is slow by itself is as slow again; what shook a reading seldom shakes two alike.
    """
    if len(readings) < _LEAST:
        return None
    pairs = [sorted(times)[:2] for times in readings]
    return sum(len(pair) < 2 or pair[1] > _ALIKE * pair[0] for pair in pairs) / len(pairs)


def _cached_bytes(path: Path) -> int:
    """What of the file is in the page cache; 0 where the kernel does not tell this user."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return resident_bytes(fd) or 0
    finally:
        os.close(fd)


def _while_left(order: Sequence[int], chosen: Sequence[Place], budget: Budget) -> Iterator[int]:
    for at in order:
        if budget.is_spent:
            return
        yield at
        budget.spend(chosen[at][1])


def _piece(place: Place, seconds: float) -> Piece:
    offset, length, extent, touched = place
    return Piece(offset, length, seconds, extent, touched)


def _slow_ones(chosen: Sequence[Place], times: dict[int, list[float]]) -> list[int]:
    speeds = {at: chosen[at][1] / min(each) for at, each in times.items()}
    if not speeds:
        return []
    limit = _SLOW * sorted(speeds.values())[int(_FAST * (len(speeds) - 1))]
    return [at for at, speed in speeds.items() if speed < limit]


def _seconds(drive: Drive, place: Place, path: Path) -> float:
    offset, length, *_ = place
    job = Job(
        op="read",
        pattern=Extents(((offset, length),)),
        length_bytes=offset + length,
        block_bytes=BLOCK,
        amount_bytes=length,
    )
    outcome = run_job(drive, job)
    if outcome.stopped:
        raise KeyboardInterrupt
    outcome.raise_if_failed(str(path))
    return max(outcome.seconds, 1e-9)

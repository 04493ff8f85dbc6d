"""The read-speed map of a file: pieces of it are read past the page cache and timed.

The pieces are spread evenly over the written parts of the file and read in random order, so that
a read that runs out of time gives a coarser map, not a shorter one. Slow pieces are read again
and the fastest time counts: a busy machine slows down one reading, aged flash slows down all.
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
_REFERENCE_QUANTILE: Final = 0.9
_SLOW: Final = 0.7
"""Pieces slower than this fraction of the 90th percentile of speeds are read again."""
_REPEATS: Final = 3
_SAME: Final = 1.5
"""Two readings agree if the slower one takes at most this many times as long."""
_SLOW_PIECES_MIN: Final = 4
"""With fewer slow pieces, the steadiness of their readings is not judged."""
_CACHED: Final = 0.5
"""If more than this fraction of the bytes is in the page cache after reading, reads went through
it."""
_FIRST_SHARE: Final = 0.5
"""The fraction of the byte budget for the first reading; the remainder is for repeats."""


@dataclass
class Budget:
    """A limit of reading time and bytes: `bytes` may still be read, `spent` have been read."""

    seconds: float
    bytes: int
    clock: Callable[[], float] = time.monotonic
    spent: int = 0
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._end = self.clock() + self.seconds

    @property
    def is_spent(self) -> bool:
        """Whether the time or the bytes are used up."""
        return self.bytes <= 0 or self.clock() >= self._end

    def spend(self, size: int) -> None:
        """Subtract `size` bytes that were read."""
        self.bytes -= size
        self.spent += size

    def share(self, count: int) -> Budget:
        """The remaining time and bytes divided by `count`."""
        left_s = max(0.0, self._end - self.clock())
        return Budget(left_s / count, self.bytes // count, self.clock)


@dataclass(frozen=True)
class Range:
    """Bytes of a file to read; `extent` is the index of the extent that it starts in."""

    offset: int
    length: int
    extent: int
    extents_touched: int


@dataclass(frozen=True)
class Map:
    """Pieces in the order of the file; `unsteady` as in `snapshot.File`.

    `through_cache`: the file system answered the direct reads through the page cache, as it does
    for compressed and encrypted files and with a data journal. Then the speeds are not the drive's.
    """

    pieces: list[Piece]
    unsteady: float | None
    through_cache: bool = False


def ranges(extents: Sequence[Extent], size: int, budget_bytes: int) -> list[Range]:
    """Ranges spread evenly over the written parts of a file, in whole blocks of 1 MiB.

    A range may span extents, as a program's read does, but never a hole.
    """
    pieces: list[tuple[int, int]] = []
    for start, end in _runs(extents):
        first = -(-start // BLOCK) * BLOCK
        last = min(end, size) // BLOCK * BLOCK
        pieces += [(at, min(PIECE, last - at)) for at in range(first, last, PIECE)]
    total = sum(length for _, length in pieces)
    if total > budget_bytes:
        kept = max(1, len(pieces) * budget_bytes // total)
        pieces = [pieces[at * len(pieces) // kept] for at in range(kept)]
    ends = [extent.end for extent in extents]
    return [_range(ends, offset, length) for offset, length in pieces]


def _range(ends: Sequence[int], offset: int, length: int) -> Range:
    first = bisect_right(ends, offset)
    return Range(offset, length, first, bisect_left(ends, offset + length) - first + 1)


def _runs(extents: Sequence[Extent]) -> list[tuple[int, int]]:
    """(start, end) of each part of the file that is written without a hole."""
    runs: list[tuple[int, int]] = []
    for extent in extents:
        if runs and runs[-1][1] == extent.logical:
            runs[-1] = (runs[-1][0], extent.end)
        else:
            runs.append((extent.logical, extent.end))
    return runs


def read_map(path: Path, extents: Sequence[Extent], budget: Budget) -> Map:
    """Read one file's pieces.

    Raises:
        TargetError: the file cannot be opened past the page cache.
        DeviceFailure: a read failed.
    """
    size = path.stat().st_size
    parts = ranges(extents, size, int(_FIRST_SHARE * budget.bytes))
    if not parts:
        return Map([], None)
    drive = open_engine(path, RealOptions(writable=False, queue_depth=1, request_bytes_max=BLOCK))
    cached = _cached_bytes(path)
    order = random.Random(0).sample(range(len(parts)), len(parts))
    _seconds(drive, parts[order[0]], path)  # warm-up: the first read also sets up queues
    times: dict[int, list[float]] = {}
    for at in _within_budget(order, parts, budget):
        times[at] = [_seconds(drive, parts[at], path)]
    slow = _slow_parts(parts, times)
    for _ in range(_REPEATS):
        # Reread in the same order, so that time passes between two readings of one piece.
        for at in _within_budget(slow, parts, budget):
            times[at].append(_seconds(drive, parts[at], path))
    return Map(
        [_piece(parts[at], min(times[at])) for at in sorted(times)],
        unsteady([times[at] for at in _slow_parts(parts, times)]),
        _cached_bytes(path) - cached > _CACHED * sum(parts[at].length for at in times),
    )


def unsteady(readings: Sequence[Sequence[float]]) -> float | None:
    """The fraction of pieces whose two fastest readings (seconds) differ by half or more.

    Slow flash is equally slow each time; a disturbance seldom slows down two readings equally.
    None if there are too few pieces.
    """
    if len(readings) < _SLOW_PIECES_MIN:
        return None
    pairs = [sorted(times)[:2] for times in readings]
    return sum(len(pair) < 2 or pair[1] > _SAME * pair[0] for pair in pairs) / len(pairs)


def _cached_bytes(path: Path) -> int:
    """Bytes of the file in the page cache; 0 if the kernel does not show them to this user."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return resident_bytes(fd) or 0
    finally:
        os.close(fd)


def _within_budget(order: Sequence[int], parts: Sequence[Range], budget: Budget) -> Iterator[int]:
    for at in order:
        if budget.is_spent:
            return
        yield at
        budget.spend(parts[at].length)


def _piece(part: Range, seconds: float) -> Piece:
    return Piece(part.offset, part.length, seconds, part.extent, part.extents_touched)


def _slow_parts(parts: Sequence[Range], times: dict[int, list[float]]) -> list[int]:
    speeds = {at: parts[at].length / min(readings) for at, readings in times.items()}
    if not speeds:
        return []
    limit = _SLOW * sorted(speeds.values())[int(_REFERENCE_QUANTILE * (len(speeds) - 1))]
    return [at for at, speed in speeds.items() if speed < limit]


def _seconds(drive: Drive, part: Range, path: Path) -> float:
    job = Job(
        op="read",
        pattern=Extents(((part.offset, part.length),)),
        length_bytes=part.offset + part.length,
        block_bytes=BLOCK,
        amount_bytes=part.length,
    )
    outcome = run_job(drive, job)
    if outcome.stopped:
        raise KeyboardInterrupt
    outcome.raise_if_failed(str(path))
    return max(outcome.seconds, 1e-9)

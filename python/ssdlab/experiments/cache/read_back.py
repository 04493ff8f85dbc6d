"""The size of a write buffer, by reads of data written a short while ago.

While a drive writes without a pause, its buffer holds the bytes written last. They are read from
there, without waiting for flash. So a read that is a distance behind the writes is fast up to the
size of the buffer, and slow beyond it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.analysis.evidence import Evidence, seconds_of
from ssdlab.analysis.latency import OPS
from ssdlab.experiments.cache.buffers import MIB, Size
from ssdlab.stats.quantile import quantile

KIB: Final = 1 << 10
NEAREST: Final = 64 * KIB
"""Data written so little before are in the buffer of any drive."""
FARTHEST: Final = 256 * MIB
"""No drive buffers as much."""
WRITE_BYTES: Final = 16 * KIB
"""Small writes leave the link free for reads, and few bytes are in flight."""
READ_BYTES: Final = 4 * KIB
READS: Final = 48
APART: Final = 512 * KIB
"""A read in each of these: drives read ahead less, and few slow reads are in flight."""
LATENCY_S: Final = 100e-6
"""Requests in flight keep the buffer full if each takes no longer than this without it."""
DEPTHS: Final = (4, 32)
CLOSE: Final = 1.04  # the search ends where the distances differ by a smaller factor
_BOUNDS: Final = (0.92, 1.08)
"""Of the longest distance with fast reads, and of the shortest without: the reads are up to
`CLOSE` nearer, and pages that are being programmed may be read fast, too."""
_SHARED: Final = 1.15
"""Instead of the upper one, where a part of the buffer may hold relocated data."""
_SLOWEST: Final = 0.1
"""Share of slow reads below the limit of fast ones."""
_NEAREST_MOST: Final = 0.9
_NEAR: Final = 1.3
"""A fast read takes at most `_NEAR` times the quantile `_NEAREST_MOST` of the nearest ones: an SLC
cache may be read faster than flash, but not as fast as the buffer."""
_DISTINCT: Final = 0.5  # more of the fast reads are below it
_STEADY: Final = 1.06
_WAITING: Final = 0.8
"""Rates within the first factor of that of large writes: the buffer is full of data from the host.
Slow reads may lower it to the second. At a lower rate the drive may collect or fold data."""
_COUNTS: Final = 0.3
"""At a lower rate than this share, most of what flash takes is not from the host."""
_SMALL: Final = 4.5 * MIB
"""What the buffer holds in that case shows its size only up to here: on random drives larger ones
held up to nine times as much."""
_SURE: Final = 0.3
"""If at most this share of the reads that may be fast or slow is of the other kind, the distance is
inside or beyond the buffer for sure. Between, a part of the dies may hold younger data."""
_OUTER: Final = 1.2
"""How much farther or nearer the search tries a distance to be sure."""
_GRADUAL: Final = 1.6
"""Distances that are inside and beyond for sure and differ by more bound the buffer."""
_REPEATS: Final = 3  # of distances with another rate; then the search ends


@dataclass(frozen=True)
class Result:
    """The job's rate in bytes/s, and the histogram of its reads' latencies."""

    rate: float
    latency_ns: NDArray[np.float64]
    counts: NDArray[np.int64]

    def quantile(self, share: float) -> float:
        """The latency that this share of the reads do not exceed."""
        return quantile(self.latency_ns, self.counts, share)

    def share_below(self, limit_ns: float) -> float:
        """The share of reads that took less."""
        return float(self.counts[self.latency_ns < limit_ns].sum() / self.counts.sum())


def depth_for(rate: float) -> int:
    """Writes in flight that keep the buffer of a drive full that programs `rate` bytes/s."""
    least, most = DEPTHS
    return min(most, max(least, math.ceil(rate * LATENCY_S / WRITE_BYTES)))


@dataclass
class Search:
    """Distances in turn: the nearest, the farthest, and then between them.

    `rate` is that of large writes to the full buffer, in bytes/s. The same results lead to the same
    distances, in the run and in its analysis.
    """

    depth: int
    rate: float
    farthest: int = FARTHEST
    _limit_ns: float = 0.0
    _nearest: Result | None = None
    _inside: int = NEAREST
    _beyond: int | None = None
    _is_over: bool = False
    _unsteady: int = 0
    _is_shared: bool = False
    _ends_shared: bool = False
    _shares: dict[int, float] = field(default_factory=dict)
    _outer: set[int] = field(default_factory=set)

    def next(self) -> int | None:
        """The next distance in bytes; None at the end."""
        if self._is_over:
            return None
        if self._nearest is None:
            return NEAREST
        if self._beyond is None:
            return self.farthest
        middle = round((self._inside * self._beyond) ** 0.5) // READ_BYTES * READ_BYTES
        # Small distances, in whole blocks, may be farther apart than that and have none between.
        is_close = self._beyond < CLOSE * self._inside or middle <= self._inside
        return self._next_outer() if is_close else middle

    def _next_outer(self) -> int | None:
        """A distance a little outside of the interval, if none is known to be inside or beyond."""
        assert self._beyond is not None
        inside, beyond = self._sure
        outer = []
        if beyond > _OUTER**2 * self._beyond:
            outer.append(_OUTER * self._beyond)
        if inside < self._inside / _OUTER**2:
            outer.append(self._inside / _OUTER)
        for each in outer:
            if (distance := round(each) // READ_BYTES * READ_BYTES) not in self._outer:
                self._outer.add(distance)
                return distance
        return None

    @property
    def _sure(self) -> tuple[int, int]:
        """The farthest distance that is inside the buffer for sure, and the nearest beyond it."""
        assert self._beyond is not None
        margin = _SURE * (self._fast_share - _SLOWEST)
        # By chance, a distance between may have as few fast reads as one that is beyond.
        not_fast = (at for at, share in self._shares.items() if share < self._fast_share - margin)
        not_slow = (at for at, share in self._shares.items() if share > _SLOWEST + margin)
        most, least = min(not_fast, default=self.farthest), max(not_slow, default=NEAREST)
        inside = max(
            (at for at in self._shares if at <= self._inside and at < most), default=NEAREST
        )
        beyond = (at for at in self._shares if at >= self._beyond and at > least)
        return inside, min(beyond, default=self.farthest)

    def add(self, distance: int, result: Result) -> None:
        """Adds the result of the distance that was next."""
        if self._nearest is None:
            self._nearest = result
            return
        if self._beyond is None:
            self._beyond = self.farthest = distance  # which the analysis did not know
            near = _NEAR * self._nearest.quantile(_NEAREST_MOST)
            self._limit_ns = min(result.quantile(_SLOWEST), near)
            self._is_over = not self._is_distinct
            return
        is_fast = result.share_below(self._limit_ns) > (_SLOWEST + self._fast_share) / 2
        ratio = result.rate / self.rate
        is_slower = ratio <= (1 / _STEADY if is_fast else _WAITING)
        is_small = (self._beyond if is_fast else distance) <= _SMALL
        counts = _COUNTS <= ratio < _STEADY and (is_small or not is_slower)
        if not counts:
            self._unsteady += 1
            self._is_over = self._unsteady > _REPEATS
            return
        self._is_shared |= is_slower
        self._shares[distance] = result.share_below(self._limit_ns)
        if not self._inside < distance < self._beyond:
            return
        if is_fast:
            self._inside = distance
        else:
            self._beyond, self._ends_shared = distance, ratio <= 1 / _STEADY

    @property
    def _fast_share(self) -> float:
        assert self._nearest is not None
        return self._nearest.share_below(self._limit_ns)

    @property
    def _is_distinct(self) -> bool:
        """Whether most reads of the buffer are faster than those of flash."""
        return self._fast_share > _SLOWEST + _DISTINCT

    @property
    def size(self) -> Size | None:
        """The size; None if reads do not show it.

        Where writes are faster than large ones, the buffer may not be full. Where they are slower,
        it may hold relocated data, too.
        """
        if self._beyond is None or not self._is_distinct:
            return None
        if self._inside == NEAREST and self._beyond == self.farthest:  # no distance between counts
            return None
        inside, beyond = self._sure
        if beyond <= _GRADUAL * inside:
            inside, beyond = self._inside, self._beyond
        why = (
            f"data written {inside / MIB:.4g} MiB before were read without waiting for flash, "
            f"those written {beyond / MIB:.4g} MiB before were not"
        )
        least, most = _BOUNDS
        low = least * inside - self.depth * WRITE_BYTES
        high = (_SHARED if self._is_shared and self._ends_shared else most) * beyond
        return Size(max(0.0, low), high, why)


def read_back_size(evidence: Evidence, rate: float) -> Size | None:
    """The size by the recorded reads, if large writes have this rate; None if they do not show it.

    Repeats the search of the run.
    """
    table = evidence.tables["interval_latency"]
    reads = table.filter(table["op"].to_numpy() == OPS.index("read"))
    owner, values, counts = (reads[name].to_numpy() for name in ("step", "latency_ns", "count"))
    search = None
    for step in evidence.steps("read back"):
        distance, own = round(step["value"] * KIB), owner == step["step"]
        if search is None:
            search = Search(json.loads(step["job"])["queue_depth"], rate)
        if own.any():
            result = result_of(step["bytes"] / seconds_of(step), values[own], counts[own])
            search.add(distance, result)
    return None if search is None else search.size


def result_of(rate: float, latency_ns: NDArray[np.uint64], counts: NDArray[np.uint64]) -> Result:
    """The result of a job with this rate in bytes/s and histogram of its reads, in any order."""
    latency_ns, index = np.unique(latency_ns, return_inverse=True)
    weights = np.bincount(index, counts).astype(np.int64)
    return Result(rate, latency_ns.astype(np.float64), weights)

"""Latencies of single reads: whether data is in an SLC cache, and whether the map is in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ssdlab.analysis.evidence import Evidence
from ssdlab.stats.quantile import quantile

MISSES: Final = 1.07  # latency of reads that load a part of the map / of others, at least
SLOWEST: Final = 0.98
_FAST: Final = 0.1
_SLOW: Final = 0.9
_SOME: Final = 0.05  # of the reads
_MORE: Final = 2.0  # share of fast reads of recent data / of old data, at least
_IN_CACHE: Final = 0.98  # latency of reads in an SLC cache / of fast ones elsewhere, at most
_UNIFORM: Final = 1.02  # slow / fast, at most
_KEPT: Final = 0.6  # latency of reads of pages that dies keep / of others, at most
_NO_FLASH: Final = 1.05  # latency of reads from flash / of trimmed blocks, at least
_REGISTER: Final = 0.2
"""Time of reads of pages that dies keep / of others from flash, at most, both above that of trimmed
blocks. No cell is read that fast."""
_FAR: Final = 3.0  # standard deviations


@dataclass(frozen=True)
class SingleReads:
    """Latencies in ns, in ascending order, and the number of reads with each."""

    latencies: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def mean(self) -> float:
        """The mean latency."""
        return float(np.average(self.latencies, weights=self.counts))

    def quantile(self, share: float) -> float:
        """This quantile of the latency."""
        return quantile(self.latencies, self.counts, share)

    def share_between(self, low: float, high: float) -> float:
        """The share of the reads with a latency between these."""
        within = (self.latencies > low) & (self.latencies < high)
        return float(self.counts[within].sum() / self.counts.sum())

    def share_slower(self, others: SingleReads) -> float:
        """The share of the reads that is slower than all but a few of others."""
        return self.share_longer_than(MISSES * others.quantile(SLOWEST))

    def share_longer_than(self, latency: float) -> float:
        """The share of the reads that took longer than this."""
        return self.share_between(latency, math.inf)

    def longer_than(self, latency: float) -> SingleReads:
        """The reads that took longer than this."""
        is_longer = self.latencies > latency
        return SingleReads(self.latencies[is_longer], self.counts[is_longer])


class StridedReads(NamedTuple):
    """Reads of a block in each MiB of `size` bytes; the slow shares of these and of near ones."""

    number: int
    size: float
    slow: float
    slow_near: float


def single_reads(evidence: Evidence, step: int) -> SingleReads:
    """The latencies of the reads of a step."""
    table = evidence.tables["latency"]
    rows = table.filter(pc.equal(table["step"], step)).sort_by("latency_ns")
    latencies, counts = (rows[name].to_numpy() for name in ("latency_ns", "count"))
    return SingleReads(latencies.astype(np.float64), counts.astype(np.int64))


def of_unkept_pages(anywhere: SingleReads, near: SingleReads) -> tuple[SingleReads, SingleReads]:
    """Both without reads of pages that dies keep, of which `near` may have many more.

    If all of `anywhere` are as fast as those, they are not of such pages.
    """
    kept = _KEPT * near.quantile(0.5)
    others = anywhere.longer_than(kept)
    return (others, near.longer_than(kept)) if others.counts.sum() else (anywhere, near)


def shows_misses(anywhere: SingleReads, near: SingleReads, share: float) -> bool:
    """Whether this share of the reads `anywhere` load a part of the map, as it seems by slow ones.

    Then fast ones are rarer by that share than among those `near` each other, none of which loads
    any. If they are even rarer, some that load are as fast as slow reads that do not.
    """
    limit = near.quantile(0.5)
    number, others = int(anywhere.counts.sum()), int(near.counts.sum())
    fast, usual = 1 - anywhere.share_longer_than(limit), 1 - near.share_longer_than(limit)
    fast = max(fast, 1 / number)
    variance = (1 - fast) / fast / number + (1 - usual) / usual / others
    error = fast / usual * math.sqrt(variance)
    return abs(1 - fast / usual - share) <= _FAR * error


def is_in_cache(
    recent: SingleReads, near: SingleReads, old: SingleReads | None, unmapped_ns: float
) -> bool | None:
    """Whether data is in an SLC cache that was just written and flushed; None if unclear.

    It is if some of it is read faster than older data, `near` each other, but not as fast as
    trimmed blocks (`unmapped_ns`), which take no time in flash: a drive that ignores a flush still
    has it in its buffer. If all of it is read at the same speed, unlike older data, it may be in a
    cache whose reads are slow. A die may also keep a page that was just read: then `old` data is
    read fast, too, as its reads are as near to each other as those of recent data.
    """
    fast, slow = near.quantile(_FAST), near.quantile(_SLOW)
    least, most = _NO_FLASH * unmapped_ns, _IN_CACHE * fast
    kept = 0.0 if old is None else old.share_between(least, most)
    if old is not None and kept:
        kept_ns = old.quantile(kept / 2)
        if kept_ns - unmapped_ns < _REGISTER * (near.quantile(0.5) - unmapped_ns):
            least, kept = _NO_FLASH * kept_ns, 0.0
    share = recent.share_between(least, most)
    if share > _SOME:
        return True if share > _SOME + _MORE * kept else None
    is_uniform = recent.quantile(_SLOW) < _UNIFORM * recent.quantile(_FAST)
    is_unclear = (is_uniform and slow > _UNIFORM * fast) or _is_kept(recent, near, old)
    return None if is_unclear or recent.quantile(0.5) <= _NO_FLASH * unmapped_ns else False


def _is_kept(recent: SingleReads, near: SingleReads, old: SingleReads | None) -> bool:
    """Whether most of these pages are still in the dies, as those of old data are.

    Then their reads do not show whether the pages are in a cache.
    """
    if old is None:
        return False
    kept = old.quantile(0.5)
    return kept < _KEPT * near.quantile(0.5) and recent.quantile(0.5) < _UNIFORM * kept

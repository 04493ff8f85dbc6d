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
        return self.share_between(MISSES * others.quantile(SLOWEST), math.inf)


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

"""Probes: random reads at chosen addresses that show which addresses share a unit of conflict.

Reads on one unit wait for each other: at queue depth 32 each waits for 31 others, and all take
equally long. Reads on two units meet queues of different and changing lengths: their latencies
scatter widely, and together they are faster. So two quantities show whether addresses share a
unit: the spread of latencies, which needs no reference measurement, and the rate.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ssdlab.stats.quantile import quantile

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GRAIN: Final = 4 * KIB
"""Bytes of a read. Offsets are multiples of it, so edges are located to 4 KiB."""
DEPTH: Final = 32
"""Reads in flight, unless a probe says otherwise."""
NARROW: Final = 0.55
"""Up to this spread all reads waited in one queue. A die with tR of 8, 18 and 48 us has 0.36."""
WIDE: Final = 0.8
"""From this spread on, reads met several queues. Two equal dies have at least 1.2."""
SAME: Final = 1.12
"""Reads of two addresses on one unit are at most this factor faster than reads of one (noise)."""
OTHER: Final = 1.35
"""On two units they are at least this factor faster: two dies on one channel gain little."""
BETWEEN_WRITES: Final = "read between writes"
"""The phase of the steps of probes with writes."""
WAITED: Final = 1.25
"""A read between writes that takes longer than most of them by this factor waited for a program."""
RESULTS_MAX: Final = 8
"""The most repeats of a probe with an unclear result: they reduce 5 % of noise to 2 %."""


@dataclass(frozen=True)
class Writes:
    """Writes of `block_bytes` in order over `area`, `amount` bytes, each followed by `reads` reads.

    `area` has start and length in bytes. `reads_back`: the reads are of the block just written.
    """

    area: tuple[int, int]
    block_bytes: int
    amount: int
    reads: int
    reads_back: bool = False


@dataclass(frozen=True)
class Probe:
    """Random reads of `block_bytes`, each at one of `offsets` + a multiple of `period` (bytes).

    They stay in `area` (start and length in bytes), which is the whole region if None. With
    `writes`, each of the `offsets` is read in turn, between writes elsewhere, at depth 1.
    """

    period: int
    offsets: tuple[int, ...] = (0,)
    block_bytes: int = GRAIN
    depth: int = DEPTH
    area: tuple[int, int] | None = None
    writes: Writes | None = None

    @property
    def name(self) -> str:
        """Identifies the probe among the steps of a run (column `case`)."""
        offsets = "" if self.offsets == (0,) else " + " + " or ".join(map(_kib, self.offsets))
        block = "" if self.block_bytes == GRAIN else f", by {_kib(self.block_bytes)}"
        depth = "" if self.depth == DEPTH else f", depth {self.depth}"
        area = "" if self.area is None else f", from {_kib(self.area[0])}"
        writes = ""
        if self.writes is not None:
            load = self.writes
            writes = f", {load.reads} after each {_kib(load.block_bytes)} of {_kib(load.amount)}"
            writes += " of it" if load.reads_back else ""
        return f"every {_kib(self.period)}{offsets}{block}{depth}{area}{writes}"


@dataclass(frozen=True)
class ProbeResult:
    """The rate of a probe's reads, and the spread of their latencies: (p90 - p10) / p50.

    If it has writes: the share of reads that waited for them, the mean wait of all reads, the share
    and the median wait of those that waited at least half as long as the longest, and the median
    latency of all reads.
    """

    mib_per_s: float
    spread: float
    delayed: float = 0.0
    wait_ns: float = 0.0
    long_share: float = 0.0
    long_ns: float = 0.0
    read_ns: float = 0.0


Value = TypeVar("Value")
Procedure: TypeAlias = Generator[Probe, ProbeResult, Value]
"""Yields probes, is sent their results, and returns a value.

The same results lead to the same probes. So the experiment runs a procedure on a drive, and the
analysis runs it again on the recorded results.
"""


@dataclass
class ProbeLog:
    """All results so far, grouped by probe."""

    _results: dict[str, list[ProbeResult]] = field(default_factory=dict)

    def count(self, probe: Probe) -> int:
        """The number of results of a probe."""
        return len(self._results.get(probe.name, ()))

    def rate(self, probe: Probe) -> float:
        """The median rate in MiB/s; the probe must have a result."""
        return statistics.median(result.mib_per_s for result in self._results[probe.name])

    def spread(self, probe: Probe) -> float:
        """The median spread; the probe must have a result."""
        return statistics.median(result.spread for result in self._results[probe.name])

    def results(self, probe: Probe) -> list[ProbeResult]:
        """All results of a probe."""
        return self._results[probe.name]

    def add(self, probe: Probe, result: ProbeResult) -> None:
        """Adds a result."""
        self._results.setdefault(probe.name, []).append(result)


def repeat_probe(log: ProbeLog, probe: Probe, count: int) -> Procedure[None]:
    """Repeats a probe until it has `count` results."""
    while log.count(probe) < count:
        result = yield probe
        log.add(probe, result)


def is_one_queue(log: ProbeLog, probe: Probe) -> Procedure[bool | None]:
    """Whether all reads of a probe waited in one queue; None if that stays unclear."""
    yield from repeat_probe(log, probe, 2)
    while NARROW < log.spread(probe) < WIDE and log.count(probe) < RESULTS_MAX:
        yield from repeat_probe(log, probe, log.count(probe) + 1)
    if NARROW < log.spread(probe) < WIDE:
        return None
    return log.spread(probe) <= NARROW


def share_a_unit(log: ProbeLog, probe: Probe) -> Procedure[bool | None]:
    """Whether a probe's two offsets are on the same unit; None if that stays unclear.

    Several queues mean different units. One queue means the same unit, or two dies that wait for
    one channel: then reads of both offsets together are faster than those of either one alone.
    """
    single_offsets = [replace(probe, offsets=(offset,)) for offset in probe.offsets]
    one_queue = yield from is_one_queue(log, probe)
    if not one_queue:
        return one_queue
    yield from repeat_probe(log, single_offsets[0], 2)
    for count in range(2, RESULTS_MAX + 1):
        yield from repeat_probe(log, probe, count)
        if log.rate(probe) <= SAME * _best_rate(log, single_offsets):
            return True
        for single in single_offsets:
            yield from repeat_probe(log, single, count)
        if log.rate(probe) >= OTHER * _best_rate(log, single_offsets):
            return False
    return None


def _best_rate(log: ProbeLog, probes: Sequence[Probe]) -> float:
    return max(log.rate(probe) for probe in probes if log.count(probe))


def run_procedure(
    procedure: Procedure[Value], measure: Callable[[Probe], ProbeResult | None]
) -> Value | None:
    """Runs a procedure to its end; None if `measure` has no result for a probe."""
    try:
        probe = next(procedure)
        while (result := measure(probe)) is not None:
            probe = procedure.send(result)
    except StopIteration as end:
        value: Value = end.value
        return value
    return None


def probe_result(
    seconds: float, size_bytes: int, latency_ns: NDArray[np.uint64], counts: NDArray[np.uint64]
) -> ProbeResult:
    """The result of a recorded step, from its duration, bytes and latency histogram."""
    values, weights = latency_ns.astype(np.float64), counts.astype(np.int64)
    low, middle, high = (quantile(values, weights, share) for share in (0.1, 0.5, 0.9))
    return ProbeResult(size_bytes / seconds / (1 << 20), (high - low) / middle)


def result_with_writes(
    seconds: float, size_bytes: int, latency_ns: NDArray[np.uint64], counts: NDArray[np.uint64]
) -> ProbeResult:
    """The result of a step with writes, from the latencies of its reads only, in any order."""
    latency_ns, index = np.unique(latency_ns, return_inverse=True)
    counts = np.bincount(index, counts).astype(np.uint64)
    plain = probe_result(seconds, size_bytes, latency_ns, counts)
    values, weights = latency_ns.astype(np.float64), counts.astype(np.int64)
    # The pages that are read in turn may differ in tR.
    waited = values > WAITED * quantile(values, weights, 0.75)
    waits = np.where(waited, values - np.average(values[~waited], weights=weights[~waited]), 0.0)
    longest = waited & (waits >= waits.max() / 2)
    return replace(
        plain,
        delayed=float(weights[waited].sum() / weights.sum()),
        wait_ns=float((weights * waits).sum() / weights.sum()),
        long_share=float(weights[longest].sum() / weights.sum()),
        long_ns=quantile(waits[longest], weights[longest], 0.5) if longest.any() else 0.0,
        read_ns=quantile(values, weights, 0.5),
    )


def _kib(size: int) -> str:
    return f"{size // KIB} KiB"

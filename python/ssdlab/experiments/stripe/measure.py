"""stripe: over how many units, and in what chunks, does a drive spread consecutive addresses?

A region is written in order. Then 4 KiB are read at random multiples of an alignment, at queue
depth 32. At an alignment that is a multiple of the stripe all reads hit one unit and queue up. The
curve over alignments gives candidates, and each further probe depends on the results before it
(`search.search`). Sources of the method: the alignment probe of the published study of fragmented
files (FAST '24), and pairs of reads at growing distance (Chen, Lee and Zhang, HPCA 2011).
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Aligned, Extents, Job, Listed, Outcome, WriteHint
from ssdlab.experiments.stripe.parameters import Stripe
from ssdlab.experiments.stripe.probes import (
    BETWEEN_WRITES,
    DEPTH,
    Probe,
    ProbeResult,
    Writes,
    probe_result,
    result_with_writes,
    run_procedure,
)
from ssdlab.experiments.stripe.search import search
from ssdlab.runner.session import FILL_BLOCK, RunSession, Step
from ssdlab.target import Target

KIB: Final = 1 << 10
MIB: Final = 1 << 20
SIZE: Final = 1024 * MIB
READS: Final = 8192
"""Reads of one probe: 256 times the queue depth, for rates accurate to 1 %."""
QUICK_READS: Final = 4096
AMOUNT_MAX: Final = 256 * MIB
"""The most bytes that a probe with large reads reads."""
REPEATS: Final = 3
QUICK_REPEATS: Final = 2
ADDRESSES_MAX: Final = 4096
"""The most addresses in a probe with two offsets; more would only lengthen the list."""
LISTED_MAX: Final = 256
"""The most writes in the list of a probe with writes, which is repeated."""
PROBES: Final = 160
"""Approximate number of probes in a search, for the forecast of the run's duration."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run; sizes in bytes. `reads` is the number of reads of a probe."""

    size: int = SIZE
    repeats: int = REPEATS
    reads: int = READS
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """The block size of the fill."""
        return FILL_BLOCK

    @property
    def write_bytes(self) -> int:
        """The region, and as much between reads if channels may be slower than their dies."""
        return 2 * self.size

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "block_kib": 4,
            "queue_depth": DEPTH,
            "reads": self.reads,
            "repeats": self.repeats,
        }

    def work(self) -> dict[str, float]:
        """Bytes of each kind of work; a search may take fewer probes or more."""
        return {"fill": float(self.size), "random": float(PROBES * self.reads * 4 * KIB)}


def plan(parameters: Stripe, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range.
    """
    reads, repeats = (QUICK_READS, QUICK_REPEATS) if parameters.quick else (READS, REPEATS)
    return Plan(parameters.size_bytes(SIZE), repeats, reads, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region, then searches for the layout.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    session.fill(plan.size)
    _warn_of_fragments(session)
    _search(session, plan)
    session.target.check_uncached()


def _warn_of_fragments(session: RunSession) -> None:
    """Warns of several extents: the file's offsets then do not follow device addresses."""
    extents = session.recording.tables()["steps"].to_pylist()[-1]["extents"]
    if extents is not None and extents > 1:
        session.target.warn(
            "fragmented",
            f"The test file has {extents} extents, so the result mixes the layout of the file "
            "system with that of the drive: use an emptier file system or a block device.",
        )


def _search(session: RunSession, plan: Plan) -> None:
    counts: Counter[str] = Counter()

    def measure_probe(probe: Probe) -> ProbeResult:
        repeat = counts[probe.name]
        counts[probe.name] += 1
        label, value = f"reading {probe.name}", probe.period / KIB
        phase = "read" if probe.writes is None else BETWEEN_WRITES
        step = Step(phase, label, "random", repeat=repeat, case=probe.name, value=value)
        return _result(probe, session.run(step, job_of(probe, plan, counts.total())))

    run_procedure(search(plan.size, plan.repeats), measure_probe)


def job_of(probe: Probe, plan: Plan, seed: int) -> Job:
    """The job of a probe; `seed` differs between repeats, so that they read other addresses."""
    if probe.writes is not None:
        return _job_with_writes(probe, probe.writes, plan)
    amount = min(plan.reads * probe.block_bytes, AMOUNT_MAX)
    pattern: Aligned | Extents = Aligned(probe.period)
    base, size = probe.area or (0, plan.size)
    offset, length = base + probe.offsets[0], size - probe.offsets[0]
    if len(probe.offsets) > 1:
        periods = size // probe.period
        count = min(periods, ADDRESSES_MAX // len(probe.offsets))
        # From all of the area, because its parts may differ in speed; not at equal distances, which
        # could be those of pages of one type.
        stream = random.Random(f"{plan.seed + seed}, addresses")
        starts = [
            base + (number * periods + stream.randrange(periods)) // count * probe.period
            for number in range(count)
        ]
        extents = [(start + at, probe.block_bytes) for start in starts for at in probe.offsets]
        offset, length, pattern = 0, plan.size, Extents(tuple(extents), random=True)
    return Job(
        op="read",
        pattern=pattern,
        offset_bytes=offset,
        length_bytes=length,
        block_bytes=probe.block_bytes,
        amount_bytes=amount,
        queue_depth=probe.depth,
        seed=plan.seed + seed,
    )


def _job_with_writes(probe: Probe, writes: Writes, plan: Plan) -> Job:
    """A job that writes a block and reads some addresses in turn, again and again."""
    start, length = writes.area
    base = 0 if probe.area is None else probe.area[0]
    reads = itertools.cycle(base + offset for offset in probe.offsets)
    requests: list[tuple[int, int, WriteHint]] = []
    for number in range(min(LISTED_MAX, length // writes.block_bytes)):
        written = start + number * writes.block_bytes
        requests.append((written, writes.block_bytes, "nothing"))
        for _ in range(writes.reads):
            address = written if writes.reads_back else next(reads)
            requests.append((address, probe.block_bytes, "read"))
    share = (writes.block_bytes + writes.reads * probe.block_bytes) / writes.block_bytes
    return Job(
        op="write",
        pattern=Listed(tuple(requests)),
        length_bytes=plan.size,
        block_bytes=max(writes.block_bytes, probe.block_bytes),
        amount_bytes=round(writes.amount * share),
        queue_depth=probe.depth,
    )


def _result(probe: Probe, outcome: Outcome) -> ProbeResult:
    if probe.writes is not None:
        latency = outcome.latency_of("read")
        counts = latency["count"]
        return result_with_writes(outcome.seconds, outcome.bytes, latency["latency_ns"], counts)
    latency = outcome.latency
    return probe_result(outcome.seconds, outcome.bytes, latency["latency_ns"], latency["count"])

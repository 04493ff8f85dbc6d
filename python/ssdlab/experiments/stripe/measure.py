"""stripe: over how many units does a drive spread consecutive addresses, and in what pieces?

A region is written in order. Then 4 KiB of it are read at random multiples of an alignment, 32 at a
time. An alignment that is a multiple of the stripe leaves one unit to all reads: they queue up. The
curve over alignments says where to look closer, and each further question follows from the answers
(`analysis.layout`): none is asked whose answer is known. Sources of the method: the alignment probe
of the published study of fragmented files (FAST '24), and pairs of reads at growing distance (Chen,
Lee and Zhang, HPCA 2011).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Aligned, Extents, Job, Outcome
from ssdlab.experiments.stripe.conflict import Ask, Reading, answered, reading_of
from ssdlab.experiments.stripe.parameters import Stripe
from ssdlab.experiments.stripe.search import Limits, search
from ssdlab.runner.session import FILL_BLOCK, RunSession, Step
from ssdlab.target import Target

KIB: Final = 1 << 10
MIB: Final = 1 << 20
DEPTH: Final = 32
SIZE: Final = 1024 * MIB
READS: Final = 8192
"""Reads for one answer: 256 rounds of the queue. A rate is then certain to a per cent."""
QUICK_READS: Final = 4096
REPEATS: Final = 3
QUICK_REPEATS: Final = 2
PLACES_MAX: Final = 4096
"""At pairs of places so many are read; more would only lengthen the list of them."""
ANSWERS: Final = 160
"""Answers that a search takes, about: for the forecast."""


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes. `reads` are those of one answer."""

    size: int = SIZE
    repeats: int = REPEATS
    reads: int = READS
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """A block of the filling."""
        return FILL_BLOCK

    @property
    def write_bytes(self) -> int:
        """The region once."""
        return self.size

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "block_kib": 4,
            "queue_depth": DEPTH,
            "reads": self.reads,
            "repeats": self.repeats,
        }

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast; a search may take fewer answers or more."""
        return {"fill": float(self.size), "random": float(ANSWERS * self.reads * 4 * KIB)}


def plan(parameters: Stripe, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range.
    """
    reads, repeats = (QUICK_READS, QUICK_REPEATS) if parameters.quick else (READS, REPEATS)
    return Plan(parameters.size_bytes(SIZE), repeats, reads, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region, then asks and asks.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    session.fill(plan.size)
    _warn_of_fragments(session)
    _ask_all(session, plan)
    session.target.check_uncached()


def _warn_of_fragments(session: RunSession) -> None:
    """A file in pieces is not written where its offsets say: the file system's doing."""
    extents = session.recording.tables()["steps"].to_pylist()[-1]["extents"]
    if extents is not None and extents > 1:
        session.target.warn(
            "fragmented",
            f"The test file lies in {extents} pieces on its device: what is found is the file "
            "system's layout with the drive's; give an emptier file system or a block device.",
        )


def _ask_all(session: RunSession, plan: Plan) -> None:
    asked: Counter[str] = Counter()

    def answer(ask: Ask) -> Reading:
        repeat = asked[ask.name]
        asked[ask.name] += 1
        words, value = f"reading {ask.name}", ask.period / KIB
        step = Step("read", words, "random", repeat=repeat, case=ask.name, value=value)
        return _reading(session.run(step, job_of(ask, plan, asked.total())))

    answered(search(Limits(plan.size, plan.repeats)), answer)


def job_of(ask: Ask, plan: Plan, seed: int) -> Job:
    """The reads that a question stands for; each job draws its places anew."""
    amount = plan.reads * ask.block_bytes
    pattern: Aligned | Extents = Aligned(ask.period)
    offset, length = ask.offsets[0], plan.size - ask.offsets[0]
    if len(ask.offsets) > 1:
        count = min(plan.size // ask.period, PLACES_MAX // len(ask.offsets))
        starts = [number * ask.period for number in range(count)]
        places = [(start + each, ask.block_bytes) for start in starts for each in ask.offsets]
        offset, length, pattern = 0, plan.size, Extents(tuple(places), random=True)
    return Job(
        op="read",
        pattern=pattern,
        offset_bytes=offset,
        length_bytes=length,
        block_bytes=ask.block_bytes,
        amount_bytes=amount,
        queue_depth=DEPTH,
        seed=plan.seed + seed,
    )


def _reading(outcome: Outcome) -> Reading:
    latency = outcome.latency
    return reading_of(outcome.seconds, outcome.bytes, latency["latency_ns"], latency["count"])

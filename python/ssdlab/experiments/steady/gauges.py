"""The gauges of steady: short loads after the rounds that show what limits a steady write.

In this order: random reads; a burst after a flush, which shows what the write buffer takes; and on
the region trimmed each time, writes in order of the rounds' size, large writes in order, which are
then read, and large writes at random. Large writes show what a program costs and where the hidden
flash is used up, whatever the mapping unit; random and large reads what collection reads, at most.

If the link limits large writes, no rate shows whether an SLC cache takes them. Then the drive does
not rest before these writes: a cache would still be full, and the hidden flash be used up earlier
than by the rounds, which follow a rest.

Then comes known garbage (garbage.py): parts of the region in turn, then some of them trimmed and
written again. If victims are chosen at random, the others are written instead, at random
(victims_at_random.py). Behind such a link the region is last trimmed and filled once more, and
single reads of what is written after a rest show whether an SLC cache took it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import msgspec

from ssdlab.analysis.evidence import Evidence
from ssdlab.analysis.write_rounds import intervals, joined
from ssdlab.device import Job, Outcome, Strided
from ssdlab.experiments.steady.garbage import AT_RANDOM, STREAMS
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.experiments.steady.plan import (
    BLOCK,
    BLOCK_MAX,
    FILL_BLOCK,
    FILL_DEPTH,
    KIB,
    KNOWN,
    MIB,
    STRIDE,
    TRIMMED,
    TRIMMED_WRITES,
    Plan,
    interval_us,
)
from ssdlab.experiments.steady.rates import FACTORS
from ssdlab.runner.session import RunSession, Step
from ssdlab.stats.steady import Verdict
from ssdlab.units import format_size

READ_DEPTH: Final = 256
_NEAR: Final = 4 * MIB
"""An area whose map fits into the memory of any drive."""
_SINGLE_READS: Final = 512
_MAP_READS: Final = 4096
"""The share of these that load a part of the map is known to within 1.6 % of the reads."""
_STRIDED_READS: Final = 4096
"""More than enough for the map pages of 4 GiB, which cover a few MiB or more."""
SINGLE: Final = "gauge: reads, one at a time"
LARGE_BLOCK: Final = 64 * KIB
"""A multiple of the mapping unit of any drive that takes blocks of 4 KiB."""
_UNIT_MOST: Final = 4
"""Mapping units of blocks of 4 KiB are rarely above 16 KiB. If they are smaller than taken, victims
have the same share of valid units, in longer runs."""
_FINE_US: Final = 200  # a small buffer is full within a millisecond
_RATE: Final = 2e9  # bytes per second: about that of a fast drive
_FILL_RATE: Final = 10e9  # bytes per second: faster than any fill, so that its intervals are enough


def measure_gauges(session: RunSession, plan: Plan, rounds: Verdict) -> None:
    """Runs the gauges on a region in steady state that can be trimmed.

    `rounds` is the verdict on its rounds.
    """
    large = max(LARGE_BLOCK, plan.block)
    recent = _job(plan, "recent", plan.block, pattern="sequential")
    step = Step("gauge", "gauge: writes that are then read", "random", case="recent")
    session.run(step, recent)
    session.flush(0)
    _reads(session, plan, "drain")
    _single_reads(session, plan, "recent", 0, recent.amount_bytes)
    _single_reads(session, plan, "near", plan.region // 2 // BLOCK_MAX * BLOCK_MAX, _NEAR)
    _single_reads(session, plan, "anywhere", 0, plan.region, _MAP_READS)
    _strided_reads(session, plan)
    burst = _job(plan, "burst", large, interval_us=_FINE_US)
    _run(session, "burst", "large writes after a flush", burst)
    trim(session, plan, 0, "gauge")
    _single_reads(session, plan, "unmapped", 0, plan.region)
    ordered = _job(plan, "ordered", plan.block, pattern="sequential")
    _run(session, "ordered", "writes in order on trimmed flash", ordered, plan.settle_s)
    trim(session, plan, 0, "gauge")
    _run(session, "fill", "large writes in order", fill(plan, 0.0))
    is_limited = _gauged(session, plan, rounds).is_direct_limited
    _reads(session, plan, "read", 0.0 if is_limited else plan.settle_s)
    _large_reads(session, plan)
    _single_reads(session, plan, "old", plan.region // 2, recent.amount_bytes)
    session.target.check_uncached()
    _run(session, "large", "large writes at random", _job(plan, "large", large))
    _collect_known(session, plan, rounds)
    if is_limited and plan.block == BLOCK:
        _read_back(session, plan)


def measure_larger(session: RunSession, plan: Plan) -> None:
    """Random writes of larger blocks, which follow the rounds while the write buffer is full."""
    for factor in FACTORS:
        case, block = f"size {factor}", factor * plan.block
        if case in plan.gauge_bytes:
            label = f"gauge: random writes of {format_size(block)}"
            session.run(Step("gauge", label, "random", case=case), _job(plan, case, block))


def _gauged(session: RunSession, plan: Plan, rounds: Verdict) -> Gauged:
    """What all gauges so far show."""
    tables, parameters = session.recording.tables(), plan.parameters()
    evidence = Evidence(tables, parameters, virtual=session.target.is_virtual)
    curve = joined([intervals(evidence, step) for step in evidence.steps("round")])
    assert rounds.mean is not None, "there are at least five rounds"
    return Gauged(evidence, plan.region, curve, rounds.mean)


def _collect_known(session: RunSession, plan: Plan, rounds: Verdict) -> None:
    """Has the drive collect superblocks of which a known share is valid.

    It is the same for all of them, or, if victims are chosen at random, for their mean.
    """
    block = min(plan.block * (_gauged(session, plan, rounds).unit or _UNIT_MOST), FILL_BLOCK)
    stream = plan.region // STREAMS // block * block
    trim(session, plan, 0, "gauge")
    job = _job(plan, "once", block, length_bytes=STREAMS * stream, amount_bytes=STREAMS * stream)
    in_turn = msgspec.structs.replace(job, pattern=Strided(stream))
    _run(session, "once", "parts of the region in turn", in_turn)
    if _gauged(session, plan, rounds).garbage == AT_RANDOM:
        _write_with_parts_trimmed(session, plan, stream)
    else:
        _write_again(session, plan, stream, job)


def _write_again(session: RunSession, plan: Plan, stream: int, job: Job) -> None:
    """Trims and writes the first parts again, in order."""
    for number, (start, stop) in enumerate(pairwise((0.0, *KNOWN))):
        begin, end = (round(share * STREAMS) * stream for share in (start, stop))
        part = msgspec.structs.replace(
            job,
            pattern="sequential",
            offset_bytes=begin,
            length_bytes=end - begin,
            amount_bytes=end - begin,
        )
        trim(session, plan, 0, "gauge", begin=begin, end=end)
        label = f"gauge: writing {stop:.0%} again after a trim"
        step = Step("gauge", label, "random", repeat=number, case="again", value=stop)
        session.run(step, part)
        session.flush(0)


def _write_with_parts_trimmed(session: RunSession, plan: Plan, stream: int) -> None:
    """Trims the first parts, and writes the others at random, as the rounds do."""
    for number, (start, stop) in enumerate(pairwise((0.0, *TRIMMED))):
        begin, end = (round(share * STREAMS) * stream for share in (start, stop))
        trim(session, plan, 0, "gauge", begin=begin, end=end)
        amount = round(TRIMMED_WRITES * plan.region) // FILL_BLOCK * FILL_BLOCK
        job = _job(
            plan,
            "part trimmed",
            plan.block,
            offset_bytes=end,
            length_bytes=STREAMS * stream - end,
            amount_bytes=amount,
            seed=plan.seed + number + 1,
        )
        label = f"gauge: random writes with {stop:.0%} trimmed"
        step = Step("gauge", label, "random", repeat=number, case="part trimmed", value=stop)
        session.run(step, job)
        session.flush(0)


def _read_back(session: RunSession, plan: Plan) -> None:
    """Writes at random on a drive in the state before the rounds, and single reads of them.

    The first half of the writes is read, in the same order; the second leaves no room for it in a
    buffer. An SLC cache that the rest has emptied takes them, and is read faster.
    """
    trim(session, plan, 0, "gauge")
    label = "gauge: large writes in order"
    session.run(Step("gauge", label, "fill", case="fill again"), fill(plan, 0.0))
    session.flush(0)
    written = _job(plan, "rested", BLOCK)
    label = "gauge: writes that are then read"
    session.run(Step("gauge", label, "random", case="rested", rest_s=plan.settle_s), written)
    size = written.amount_bytes // 2
    read = msgspec.structs.replace(written, op="read", queue_depth=1, amount_bytes=size)
    session.run(Step("gauge", SINGLE, "read", case="rested read"), read)


def _reads(session: RunSession, plan: Plan, case: str, rest_s: float = 0.0) -> None:
    """Random reads; the first ones last while a buffer drains that capacitors protect.

    An idle time would do the same, but also empty an SLC cache.
    """
    job = _job(plan, case, BLOCK, op="read", queue_depth=READ_DEPTH)
    session.run(Step("gauge", "gauge: random reads", "read", case=case, rest_s=rest_s), job)


def _large_reads(session: RunSession, plan: Plan) -> None:
    """Large reads of data written in order, each flash page once."""
    job = _job(plan, "large read", FILL_BLOCK, op="read", queue_depth=FILL_DEPTH)
    job = msgspec.structs.replace(job, pattern="sequential")
    session.run(Step("gauge", "gauge: large reads in order", "read", case="large read"), job)


def _single_reads(
    session: RunSession, plan: Plan, case: str, start: int, size: int, reads: int = _SINGLE_READS
) -> None:
    """Random reads, one at a time, of `size` bytes from `start` on.

    No write has this seed: in the order of the writes, reads would find neighbours in flash, and a
    die that keeps the page that it read last would have it already.
    """
    job = Job(
        op="read",
        pattern="random",
        offset_bytes=start,
        length_bytes=min(size, plan.region - start),
        block_bytes=BLOCK,
        amount_bytes=reads * BLOCK,
        seed=1000 * (plan.seed + 1),
    )
    session.run(Step("gauge", SINGLE, "read", case=f"{case} read"), job)


def _strided_reads(session: RunSession, plan: Plan) -> None:
    """Single reads of a block in each MiB, in order: a part of the map is loaded once, at most."""
    reads = min(_STRIDED_READS, plan.region // STRIDE)
    job = Job(
        op="read",
        pattern=Strided(STRIDE),
        length_bytes=reads * STRIDE,
        block_bytes=BLOCK,
        amount_bytes=reads * BLOCK,
    )
    session.run(Step("gauge", SINGLE, "read", case="strided read"), job)


def _job(plan: Plan, case: str, block: int, **changes: Any) -> Job:
    """Random writes of the gauge's size, with these changes."""
    job = Job(
        op="write",
        pattern="random",
        length_bytes=plan.region,
        block_bytes=block,
        amount_bytes=plan.gauge_bytes[case] // block * block,
        queue_depth=plan.depth,
        seed=plan.seed,
        interval_us=interval_us(plan.gauge_bytes[case] / _RATE),
    )
    return msgspec.structs.replace(job, **changes)


def _run(session: RunSession, case: str, label: str, job: Job, rest_s: float = 0.0) -> Outcome:
    kind = "fill" if case == "fill" else "random"
    step = Step("gauge", f"gauge: {label}", kind, case=case, rest_s=rest_s)
    outcome = session.run(step, job)
    session.flush(0)
    return outcome


def trim(
    session: RunSession,
    plan: Plan,
    stage: int,
    case: str = "",
    *,
    begin: int = 0,
    end: int | None = None,
) -> Outcome:
    """Trims the region, or a part from one byte of it up to another."""
    size = (plan.region if end is None else end) - begin
    job = Job(
        op="trim",
        offset_bytes=begin,
        length_bytes=size,
        block_bytes=FILL_BLOCK,
        amount_bytes=size,
        queue_depth=FILL_DEPTH,
    )
    return session.run(Step("trim", "trimming the region", "trim", stage, case=case), job)


def fill(plan: Plan, share: float) -> Job:
    """The job that writes what a part uses of the region, in order."""
    scope = plan.scope(share)
    return Job(
        op="write",
        length_bytes=scope,
        block_bytes=FILL_BLOCK,
        amount_bytes=scope,
        queue_depth=FILL_DEPTH,
        interval_us=interval_us(scope / _FILL_RATE),
    )

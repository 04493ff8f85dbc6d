"""Trim on a twin: reads of trimmed blocks are faster, and trimmed space reduces relocation.

A twin stores no data, so nothing can be read back. But a read of a mapped block has to sense flash,
and one of a trimmed block does not: random reads of the region are timed before and after the trim.
The benefit is measured on the same drive scaled to 1 GiB, or to the next capacity with enough
superblocks: it is filled, one half is overwritten at random, the other half is trimmed, and the
first half is overwritten again.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ssdlab.device import Drive, Job, Op, describe_twin, open_twin, run_job
from ssdlab.errors import Interrupted, TargetError
from ssdlab.experiments.trim.plan import MIB, Plan
from ssdlab.runner.session import RunSession, Step
from ssdlab.units import format_size

_SCALED: Final = 1 << 30
"""Capacity of the scaled drive: WAF depends only on ratios of sizes, and a small drive is fast."""
_OVERWRITES: Final = 2
"""How often the half is overwritten to reach steady state, and again to measure."""
_BLOCK: Final = 4096
REPEATS: Final = 24
"""Timed random reads before the trim, and after it: 3 % of noise become 0.6 %."""
_READS: Final = 256
_REST_S: Final = 1.0
"""Before the reads: a buffer that a flush does not empty drains."""


def measure(session: RunSession, plan: Plan) -> None:
    """Times reads before and after a trim, and measures what the trim is worth.

    Raises:
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    measure_reach(session, plan)
    _measure_benefit(session, plan)


def measure_reach(session: RunSession, plan: Plan) -> None:
    """Writes, reads, trims and reads a region, and records the differences of counters.

    Raises:
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    region = format_size(plan.size)
    session.run(Step("fill", f"writing {region}", "fill"), _whole("write", plan.size))
    session.flush()
    session.rest(_REST_S)
    _time_reads(session, plan, 0)
    before = _counters(session.target.drive)
    session.run(Step("read", f"reading {region}", "read", 0), _whole("read", plan.size))
    written = _counters(session.target.drive)
    session.run(Step("trim", f"trimming {region}", "fill", 1), _whole("trim", plan.size))
    trimmed = _counters(session.target.drive)
    session.run(Step("read", f"reading {region}", "read", 1), _whole("read", plan.size))
    after = _counters(session.target.drive)
    _time_reads(session, plan, 1)
    session.observe("mapping_units", before["host_writes"])
    session.observe("units_trimmed", trimmed["host_trims"] - written["host_trims"])
    session.observe("senses_written", written["host_senses"] - before["host_senses"])
    session.observe("senses_trimmed", after["host_senses"] - trimmed["host_senses"])


def _time_reads(session: RunSession, plan: Plan, stage: int) -> None:
    for repeat in range(REPEATS):
        job = Job(
            op="read",
            pattern="random",
            length_bytes=plan.size,
            block_bytes=_BLOCK,
            amount_bytes=_READS * _BLOCK,
            seed=plan.seed + repeat,
        )
        session.run(Step("timed", "timing random reads", "random", stage, repeat), job)


def _whole(op: Op, size: int, block: int = MIB) -> Job:
    return Job(op=op, length_bytes=size, block_bytes=block, amount_bytes=size)


def _counters(drive: Drive) -> dict[str, Any]:
    counters = drive.counters()
    assert counters is not None, "only a twin counts"
    return counters


def _measure_benefit(session: RunSession, plan: Plan) -> None:
    """Records the WAF of overwriting one half while the other half is full, then trimmed."""
    name, profile = session.target.identity["name"], session.target.profile or ""
    capacity = _scaled_capacity(name, profile, session.target.drive.capacity_bytes)
    half = describe_twin(name, profile, capacity)["capacity_bytes"] // 2 // MIB * MIB
    drive = open_twin(name, profile, capacity, seed=plan.seed)
    _run(drive, _whole("write", 2 * half))
    session.observe("waf_full", _waf_of_overwriting(drive, half, plan.seed))
    _run(drive, msgspec.structs.replace(_whole("trim", half), offset_bytes=half))
    session.observe("waf_trimmed", _waf_of_overwriting(drive, half, plan.seed + 1))


def _scaled_capacity(name: str, profile: str, most: int) -> int:
    """`_SCALED`, doubled until it has enough superblocks, and at most the drive's own capacity."""
    capacity = _SCALED
    while capacity < most:
        try:
            describe_twin(name, profile, capacity)
        except TargetError:
            capacity *= 2
        else:
            return capacity
    return most


def _waf_of_overwriting(drive: Drive, half: int, seed: int) -> float:
    """The WAF of random writes to the first half in steady state."""
    job = Job(
        op="write",
        pattern="random",
        length_bytes=half,
        block_bytes=_BLOCK,
        amount_bytes=_OVERWRITES * half,
        queue_depth=32,
        seed=seed,
    )
    _run(drive, job)
    before = _counters(drive)
    _run(drive, job)
    after = _counters(drive)
    flash_bytes = (
        after["waf"] * after["host_write_bytes"] - before["waf"] * before["host_write_bytes"]
    )
    return float(flash_bytes / (after["host_write_bytes"] - before["host_write_bytes"]))


def _run(drive: Drive, job: Job) -> None:
    outcome = run_job(drive, job)
    outcome.raise_if_failed("measuring the benefit of a trim")
    if outcome.stopped:
        raise Interrupted("stopped while measuring the benefit of a trim")

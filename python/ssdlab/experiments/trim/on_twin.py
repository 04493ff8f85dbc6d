"""The trial on a twin: trimmed blocks cost no sense, and what room they give saves relocation.

A twin holds no bytes. Whether its map dropped a block is told by what a read of it costs: flash is
sensed for a mapped one alone. What a host would read there is the profile's `trim.reads_back`. What
a trim is worth is seen on the same drive scaled to 1 GiB: it is filled, one half of it overwritten
at random, the other half trimmed, and the first half overwritten as much again.
"""

from __future__ import annotations

import tomllib
from typing import Any, Final

import msgspec

from ssdlab.device import Drive, Job, Op, describe_twin, open_twin, run_job
from ssdlab.errors import Interrupted
from ssdlab.experiments.trim.plan import MIB, Plan
from ssdlab.runner.session import RunSession, Step
from ssdlab.units import format_size

_SCALED: Final = 1 << 30
"""Bytes of the drive that the effect is shown on: ratios decide it, and a second suffices."""
_OVERWRITES: Final = 2
"""How often the half is overwritten before it counts, and again while it counts."""
_BLOCK: Final = 4096


def measure(session: RunSession, plan: Plan) -> None:
    """Writes, reads, trims and reads a region, and observes the twin's counters in between.

    Raises:
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    region = format_size(plan.size)
    session.run(Step("fill", f"writing {region}", "fill"), _whole("write", plan.size))
    session.flush()
    before = _counters(session.target.drive)
    session.run(Step("read", f"reading {region}", "read", 0), _whole("read", plan.size))
    written = _counters(session.target.drive)
    session.run(Step("trim", f"trimming {region}", "fill", 1), _whole("trim", plan.size))
    trimmed = _counters(session.target.drive)
    session.run(Step("read", f"reading {region}", "read", 1), _whole("read", plan.size))
    after = _counters(session.target.drive)
    session.observe("mapping_units", before["host_writes"])
    session.observe("units_trimmed", trimmed["host_trims"] - written["host_trims"])
    session.observe("senses_written", written["host_senses"] - before["host_senses"])
    session.observe("senses_trimmed", after["host_senses"] - trimmed["host_senses"])
    session.observe("reads_back", detail=reads_back(session.target.profile or ""))
    _worth(session, plan)


def reads_back(profile: str) -> str:
    """What a profile says that is read where was trimmed; without a word of it, zeros."""
    word: Any = tomllib.loads(profile).get("trim", {}).get("reads_back", "zeros")
    return str(word["value"] if isinstance(word, dict) else word)


def _whole(op: Op, size: int, block: int = MIB) -> Job:
    return Job(op=op, length_bytes=size, block_bytes=block, amount_bytes=size)


def _counters(drive: Drive) -> dict[str, Any]:
    counters = drive.counters()
    assert counters is not None, "only a twin counts"
    return counters


def _worth(session: RunSession, plan: Plan) -> None:
    """Observes write amplification with the other half full, and with it trimmed."""
    name, profile = session.target.identity["name"], session.target.profile or ""
    wanted = min(_SCALED, session.target.drive.capacity_bytes)
    half = describe_twin(name, profile, wanted)["capacity_bytes"] // 2 // MIB * MIB
    drive = open_twin(name, profile, wanted, seed=plan.seed)
    _do(drive, _whole("write", 2 * half))
    session.observe("waf_full", _waf_of_overwriting(drive, half, plan.seed))
    _do(drive, msgspec.structs.replace(_whole("trim", half), offset_bytes=half))
    session.observe("waf_trimmed", _waf_of_overwriting(drive, half, plan.seed + 1))


def _waf_of_overwriting(drive: Drive, half: int, seed: int) -> float:
    """Flash writes for each host write, once the half has been overwritten often enough."""
    job = Job(
        op="write",
        pattern="random",
        length_bytes=half,
        block_bytes=_BLOCK,
        amount_bytes=_OVERWRITES * half,
        queue_depth=32,
        seed=seed,
    )
    _do(drive, job)
    before = _counters(drive)
    _do(drive, job)
    after = _counters(drive)
    flash_bytes = (
        after["waf"] * after["host_write_bytes"] - before["waf"] * before["host_write_bytes"]
    )
    return float(flash_bytes / (after["host_write_bytes"] - before["host_write_bytes"]))


def _do(drive: Drive, job: Job) -> None:
    outcome = run_job(drive, job)
    outcome.raise_if_failed("showing what a trim is worth")
    if outcome.stopped:
        raise Interrupted("stopped while showing what a trim is worth")

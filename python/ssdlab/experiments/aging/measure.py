"""Measurement of aging: do random writes slow sequential reads, and does idle time help?

A file of incompressible data is written in order, flushed, and read in order (1 MiB requests, queue
depth 1). Then growing amounts of it are overwritten at random (4 KiB direct writes, queue depth 1,
no block twice within an amount). After each amount and a flush, the file is read three times, each
time after an idle time. Source of the method: the published table of ten drives from which the
profiles take their ageing data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Job
from ssdlab.experiments.aging.parameters import Aging
from ssdlab.runner.session import RunSession, Step
from ssdlab.target import Target
from ssdlab.units import format_size

MIB: Final = 1 << 20
SIZE: Final = 4096 * MIB
AMOUNTS: Final = (50 * MIB, 200 * MIB, 800 * MIB, 4000 * MIB)
"""Bytes of random writes before each read of a file of `SIZE`; scaled for other file sizes."""
RESTS_S: Final = (10.0, 20.0, 30.0)
QUICK: Final = 0.1
"""`--quick` multiplies idle times by this."""
QUICK_SIZE: Final = 512 * MIB
READ_BLOCK: Final = MIB
WRITE_BLOCK: Final = 4096


@dataclass(frozen=True)
class Plan:
    """The plan of a run, stored in the manifest: bytes, and seconds of the drive's clock."""

    size: int = SIZE
    amounts: tuple[int, ...] = AMOUNTS
    rests_s: tuple[float, ...] = RESTS_S
    long_rest_s: float = 0.0
    seed: int = 0

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "amounts_mib": [amount / MIB for amount in self.amounts],
            "rests_s": list(self.rests_s),
            "long_rest_s": self.long_rest_s,
            "read_block_kib": READ_BLOCK // 1024,
            "read_queue_depth": 1,
            "write_block_kib": WRITE_BLOCK // 1024,
            "write_queue_depth": 1,
        }

    @property
    def request_bytes_max(self) -> int:
        """Bytes of a sequential read or write."""
        return READ_BLOCK

    @property
    def write_bytes(self) -> int:
        """Bytes written: the file, and all random writes."""
        return self.size + sum(self.amounts)

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work, for the forecast of the run's duration."""
        stages = 1 + len(self.amounts)
        reads = stages * len(self.rests_s) + (self.long_rest_s > 0)
        rest = stages * sum(self.rests_s) + self.long_rest_s
        return {
            "fill": float(self.size),
            "read": float(reads * self.size),
            "overwrite": float(sum(self.amounts)),
            "rest": rest,
        }


def plan(parameters: Aging, _target: Target, seed: int) -> Plan:
    """The plan for the user's parameters.

    Raises:
        UsageError: size or rest is out of range.
    """
    quick = parameters.quick
    size = parameters.size_bytes(QUICK_SIZE if quick else SIZE)
    scaled = (amount * size // SIZE for amount in AMOUNTS)
    amounts = tuple(max(1, amount // WRITE_BLOCK) * WRITE_BLOCK for amount in scaled)
    rests = tuple(rest * (QUICK if quick else 1.0) for rest in RESTS_S)
    return Plan(size, amounts, rests, parameters.seconds("rest"), seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Runs all steps; warns if the file system moved the file.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    session.fill(plan.size)
    _read_stage(session, plan, 0)
    for stage, amount in enumerate(plan.amounts, start=1):
        _overwrite(session, plan, stage, amount)
        _read_stage(session, plan, stage)
    if plan.long_rest_s > 0:
        _read(session, plan, len(plan.amounts), len(plan.rests_s), plan.long_rest_s)
    _compare_layout(session)


def _overwrite(session: RunSession, plan: Plan, stage: int, amount: int) -> None:
    label = f"overwriting {format_size(amount)} at random"
    job = Job(
        op="write",
        pattern="random_once",
        length_bytes=plan.size,
        block_bytes=WRITE_BLOCK,
        amount_bytes=amount,
        seed=plan.seed * 1000 + stage,
    )
    session.run(Step("overwrite", label, "overwrite", stage, keeps_part=True), job)
    session.flush(stage)


def _read_stage(session: RunSession, plan: Plan, stage: int) -> None:
    for repeat, rest_s in enumerate(plan.rests_s):
        _read(session, plan, stage, repeat, rest_s)


def _read(session: RunSession, plan: Plan, stage: int, repeat: int, rest_s: float) -> None:
    label = f"reading the file, stage {stage} of {len(plan.amounts)}"
    step = Step("read", label, "read", stage, repeat, rest_s=rest_s)
    job = Job(op="read", length_bytes=plan.size, block_bytes=READ_BLOCK, amount_bytes=plan.size)
    session.run(step, job)
    session.target.check_uncached()


def _compare_layout(session: RunSession) -> None:
    steps = session.recording.tables()["steps"].to_pylist()
    counts = [row["extents"] for row in steps if row["extents"] is not None]
    if counts and counts[-1] > 1.5 * counts[0] + 8:
        session.target.warn(
            "layout-changed",
            f"The extents of the test file grew from {counts[0]} to {counts[-1]}: the "
            "file system moved the overwritten blocks, so part of the slowdown is due to the file "
            "system, not to the drive. Measure on ext4 or xfs, or on the block device.",
        )

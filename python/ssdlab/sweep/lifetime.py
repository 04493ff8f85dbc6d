"""life: some of a twin's life under one load, and what it can do then: the run of a sweep.

Written once in order, then written over as the load says, in two halves: write amplification and
rate are those of the second. Then a part is read in order, and single blocks at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab.device import Aligned, Job, Zipf
from ssdlab.errors import UsageError
from ssdlab.runner.session import RunSession, Step

MIB: Final = 1 << 20
READ_BLOCK: Final = MIB
READ_MOST: Final = 256 * MIB
PROBES: Final = 12_000
"""Single reads: enough for a p99 with a hundred beyond it."""
PROBE: Final = 4096


@dataclass(frozen=True)
class Plan:
    """The load: bytes of the drive, its skew (0: none, else Zipf's theta), drive writes, requests.

    `hint` is what the writes say of themselves, as in `Job`.
    """

    region: int
    skew: float = 0.0
    drive_writes: float = 0.5
    block: int = 4096
    depth: int = 32
    hint: Literal["none", "append", "overwrite"] = "none"
    seed: int = 0

    @property
    def size(self) -> int:
        """The region."""
        return self.region

    @property
    def request_bytes_max(self) -> int:
        """The longest request."""
        return max(READ_BLOCK, self.block)

    @property
    def half(self) -> int:
        """Bytes of half of the overwriting, whole blocks."""
        return int(self.region * self.drive_writes / 2) // self.block * self.block

    @property
    def write_bytes(self) -> int:
        """The fill and the overwriting."""
        return self.region + 2 * self.half

    def parameters(self) -> dict[str, Any]:
        """For the row."""
        return {
            "region_mib": self.region / MIB,
            "skew": self.skew,
            "drive_writes": self.drive_writes,
            "block_kib": self.block / 1024,
            "queue_depth": self.depth,
            "hint": self.hint,
        }

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast."""
        read = min(self.region, READ_MOST) + PROBES * PROBE
        return {"fill": float(self.region), "overwrite": 2.0 * self.half, "read": float(read)}


def check(plan: Plan) -> Plan:
    """The plan itself.

    Raises:
        UsageError: a number that it may not be.
    """
    limits = (
        ("skew", plan.skew, 0 <= plan.skew <= 10, "0 (none) to 10"),
        ("drive_writes", plan.drive_writes, 0 < plan.drive_writes <= 1000, "above 0 to 1000"),
        ("depth", plan.depth, 1 <= plan.depth <= 1024, "1 to 1024"),
        ("block", plan.block, 0 < plan.block <= plan.region, "a length within the drive"),
        (
            "hint",
            plan.hint,
            plan.hint in {"none", "append", "overwrite"},
            "none, append, overwrite",
        ),
    )
    for name, given, fits, allowed in limits:
        if not fits:
            raise UsageError(f"workload.{name} is {given}; it may be {allowed}")
    if plan.half < plan.block:
        raise UsageError(
            f"workload.drive_writes is {plan.drive_writes}: less than two blocks of this drive; "
            "give more"
        )
    return plan


def measure(session: RunSession, plan: Plan) -> None:
    """Fills, writes over twice half the amount, reads in order and at random.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    session.fill(plan.region)
    pattern: Any = Zipf(plan.skew) if plan.skew else Aligned(plan.block)
    for half in range(2):
        job = Job(
            op="write",
            pattern=pattern,
            length_bytes=plan.region,
            block_bytes=plan.block,
            amount_bytes=plan.half,
            queue_depth=plan.depth,
            hint=plan.hint,
            seed=plan.seed + half,
        )
        session.run(Step("overwrite", "writing over", "overwrite", half, keeps_part=True), job)
    session.flush(1)
    read = min(plan.region, READ_MOST) // READ_BLOCK * READ_BLOCK
    in_order = Job(op="read", length_bytes=read, block_bytes=READ_BLOCK, amount_bytes=read)
    session.run(Step("read", "reading in order", "read"), in_order)
    probes = Job(
        op="read",
        pattern="random",
        length_bytes=plan.region,
        block_bytes=PROBE,
        amount_bytes=PROBES * PROBE,
        seed=plan.seed,
    )
    session.run(Step("probe", "reading at random", "read"), probes)

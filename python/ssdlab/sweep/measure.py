"""One run of a sweep: overwrites a twin under one load, reads it, and derives the findings.

The twin is filled sequentially and then overwritten in two phases; write amplification and write
rate are measured in the second. Then a part is read sequentially, and single blocks at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, seconds_of
from ssdlab.analysis.latency import latencies_of_steps
from ssdlab.device import Aligned, Job, Zipf
from ssdlab.errors import UsageError
from ssdlab.records import Finding
from ssdlab.runner.session import RunSession, Step

MIB: Final = 1 << 20
READ_BLOCK: Final = MIB
READ_MAX: Final = 256 * MIB
PROBES: Final = 12_000
"""Number of single random reads: 120 of them are above the 99th percentile."""
PROBE: Final = 4096


@dataclass(frozen=True)
class Plan:
    """The load; sizes in bytes.

    `skew` is theta of the Zipf distribution, or 0 for uniform. `drive_writes` is the amount
    overwritten, in multiples of the region. `hint` is the placement hint of the writes (`Job`).
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
        """Number of bytes of the target that the run uses."""
        return self.region

    @property
    def request_bytes_max(self) -> int:
        """Size of the largest request."""
        return max(READ_BLOCK, self.block)

    @property
    def half(self) -> int:
        """Bytes written in each of the two overwriting phases, in whole blocks."""
        return int(self.region * self.drive_writes / 2) // self.block * self.block

    @property
    def write_bytes(self) -> int:
        """Bytes written in total."""
        return self.region + 2 * self.half

    def parameters(self) -> dict[str, Any]:
        """The plan's parameters, in the units that the run's records use."""
        return {
            "region_mib": self.region / MIB,
            "skew": self.skew,
            "drive_writes": self.drive_writes,
            "block_kib": self.block / 1024,
            "queue_depth": self.depth,
            "hint": self.hint,
        }

    def work(self) -> dict[str, float]:
        """Bytes transferred by each kind of step, to forecast the remaining time."""
        read = min(self.region, READ_MAX) + PROBES * PROBE
        return {"fill": float(self.region), "overwrite": 2.0 * self.half, "read": float(read)}


def check(plan: Plan) -> Plan:
    """Returns the plan if it is valid.

    Raises:
        UsageError: a number is out of range.
    """
    hints = ("none", "append", "overwrite")
    limits = (
        ("skew", plan.skew, 0 <= plan.skew <= 10, "from 0 (none) to 10"),
        ("drive_writes", plan.drive_writes, 0 < plan.drive_writes <= 1000, "above 0, up to 1000"),
        ("depth", plan.depth, 1 <= plan.depth <= 1024, "from 1 to 1024"),
        ("block", plan.block, 0 < plan.block <= plan.region, "a length within the drive"),
        ("hint", plan.hint, plan.hint in hints, f"one of {', '.join(hints)}"),
    )
    for name, value, is_valid, allowed in limits:
        if not is_valid:
            raise UsageError(f"workload.{name} is {value}; it must be {allowed}")
    if plan.half < plan.block:
        raise UsageError(
            f"workload.drive_writes is {plan.drive_writes}: less than two blocks of this drive; "
            "give more"
        )
    return plan


def measure(session: RunSession, plan: Plan) -> None:
    """Fills the region, overwrites it in two phases, reads it sequentially and at random.

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
    read = min(plan.region, READ_MAX) // READ_BLOCK * READ_BLOCK
    sequential = Job(op="read", length_bytes=read, block_bytes=READ_BLOCK, amount_bytes=read)
    session.run(Step("read", "reading sequentially", "read"), sequential)
    probes = Job(
        op="read",
        pattern="random",
        length_bytes=plan.region,
        block_bytes=PROBE,
        amount_bytes=PROBES * PROBE,
        seed=plan.seed,
    )
    session.run(Step("probe", "reading at random", "read"), probes)


def conclude(evidence: Evidence) -> Conclusion:
    """The findings `write_iops`, `waf`, `read_mib_per_s`, `latency_us_p50`, `latency_us_p99`."""
    written, read, probes = (evidence.steps(phase) for phase in ("overwrite", "read", "probe"))
    if len(written) < 2 or not read or not probes:
        return Conclusion([], {}, f"{ENDINGS[evidence.outcome]} before all was measured.")
    last = written[-1]
    wafs = [row["value"] for row in evidence.observed("waf") if row["step"] == last["step"] + 1]
    latency = latencies_of_steps(evidence.tables, [step["step"] for step in probes]).columns()
    findings = {
        "write_iops": _finding(_rate(last, "requests"), "/s", "of the second half's writes"),
        "waf": _finding(wafs[0] if wafs else None, "", "of the second half's writes"),
        "read_mib_per_s": _finding(
            _rate(read[0], "bytes", MIB), "MiB/s", "sequential reads of 1 MiB"
        ),
        **{
            name: _finding(latency[name], "us", "of single random reads")
            for name in ("latency_us_p50", "latency_us_p99")
        },
    }
    rate, waf = findings["read_mib_per_s"].value, findings["waf"].value
    return Conclusion([], findings, f"Reads {rate:.4g} MiB/s; write amplification {waf}.")


def _rate(step: dict[str, Any], column: str, per: int = 1) -> float | None:
    seconds = seconds_of(step)
    return step[column] / per / seconds if seconds else None


def _finding(value: float | None, unit: str, why: str) -> Finding:
    return Finding(value, unit, None, None, why)

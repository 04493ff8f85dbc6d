"""split: what does it cost to read the same bytes with many small commands?

A region is written in order, and the drive rests: data that were just written may be in an SLC
cache, which is read faster than the flash that holds most files. Then windows of 8 MiB are read
with 1, 2, 4 ... 2048 commands, at queue depths 1 and 32. Only the number of commands differs, so
the difference is the cost of splitting alone: the overhead of each command, and parallelism inside
the drive that a single small command does not use. Fragmented files pay this cost too, before any
conflict inside the drive. Source of the method: the published study of fragmented files (FAST '24).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Job
from ssdlab.experiments.split.parameters import Split
from ssdlab.runner.session import QUICK_SETTLE_S, SETTLE_S, RunSession, Step
from ssdlab.target import Target
from ssdlab.units import format_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
WINDOW: Final = 8 * MIB
"""Bytes that each measurement reads, whatever the size of its commands."""
UNIT_LEAST: Final = 4 * KIB
DEPTHS: Final = (1, 32)
REPEATS: Final = 10
QUICK_REPEATS: Final = 3
SIZE: Final = 256 * MIB


@dataclass(frozen=True)
class Plan:
    """The plan of a run; sizes in bytes."""

    size: int = SIZE
    repeats: int = REPEATS
    depths: tuple[int, ...] = DEPTHS
    settle_s: float = SETTLE_S
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """Bytes of a window."""
        return WINDOW

    @property
    def units(self) -> tuple[int, ...]:
        """Sizes of a command: the window, halved repeatedly down to 4 KiB."""
        return tuple(WINDOW >> halvings for halvings in range((WINDOW // UNIT_LEAST).bit_length()))

    @property
    def write_bytes(self) -> int:
        """Bytes of the region."""
        return self.size

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "window_mib": WINDOW / MIB,
            "units_kib": [unit // KIB for unit in self.units],
            "queue_depths": list(self.depths),
            "repeats": self.repeats,
            "settle_s": self.settle_s,
        }

    def work(self) -> dict[str, float]:
        """Bytes of each kind of work."""
        reads = len(self.units) * len(self.depths) * self.repeats
        return {
            "fill": float(self.size),
            "read": float(reads * WINDOW),
            "rest": self.settle_s,
        }


def plan(parameters: Split, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range.
    """
    return Plan(
        size=parameters.size_bytes(SIZE),
        repeats=QUICK_REPEATS if parameters.quick else REPEATS,
        settle_s=QUICK_SETTLE_S if parameters.quick else SETTLE_S,
        seed=seed,
    )


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region, lets the drive rest, then reads windows of the region.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    session.fill(plan.size)
    session.rest(plan.settle_s)
    read(session, plan)
    session.target.check_uncached()


def read(session: RunSession, plan: Plan) -> None:
    """Reads windows of the written region, a different window in each repeat.

    Each repeat goes through all command sizes, so that slow changes affect all of them equally.
    """
    for repeat in range(plan.repeats):
        for depth in plan.depths:
            for unit in plan.units:
                _read(session, plan, repeat, depth, unit)


def _read(session: RunSession, plan: Plan, repeat: int, depth: int, unit: int) -> None:
    # Never consecutive windows: the drive may have read ahead.
    number = (repeat * 7 + plan.units.index(unit) * 3 + depth) % (plan.size // WINDOW)
    job = Job(
        op="read",
        offset_bytes=number * WINDOW,
        length_bytes=WINDOW,
        block_bytes=unit,
        amount_bytes=WINDOW,
        queue_depth=depth,
    )
    label = f"reading {format_size(WINDOW)} in {format_size(unit)} commands, {depth} at a time"
    session.run(Step("read", label, "read", repeat=repeat, value=unit), job)

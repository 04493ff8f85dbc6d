"""split: what does it cost to read the same bytes by many small commands?

A region is written in order. Then windows of 8 MiB of it are read as 1, 2, 4 ... 2048 commands,
one at a time and 32 at a time. Nothing but the number of commands differs, so what grows is the
price of splitting alone: what a command costs on its way, and what of the drive's parallelism the
next command has to wait for. Fragments of a file pay this price too, before any conflict inside the
drive. Source of the method: the published study of fragmented files (splitting against conflicts).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.device import Job
from ssdlab.experiments.split.parameters import Split
from ssdlab.runner.session import RunSession, Step
from ssdlab.target import Target
from ssdlab.units import format_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
WINDOW: Final = 8 * MIB
"""What is read at once, by more and more commands."""
UNIT_LEAST: Final = 4 * KIB
DEPTHS: Final = (1, 32)
REPEATS: Final = 10
QUICK_REPEATS: Final = 3
SIZE: Final = 256 * MIB


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes."""

    size: int = SIZE
    repeats: int = REPEATS
    depths: tuple[int, ...] = DEPTHS
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """A whole window."""
        return WINDOW

    @property
    def units(self) -> tuple[int, ...]:
        """Sizes of a command: the whole window, and by halves down to 4 KiB."""
        return tuple(WINDOW >> half for half in range(WINDOW.bit_length()) if self._fits(half))

    def _fits(self, half: int) -> bool:
        return WINDOW >> half >= UNIT_LEAST

    @property
    def write_bytes(self) -> int:
        """The region once."""
        return self.size

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "window_mib": WINDOW / MIB,
            "units_kib": [unit // KIB for unit in self.units],
            "queue_depths": list(self.depths),
            "repeats": self.repeats,
        }

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast."""
        reads = len(self.units) * len(self.depths) * self.repeats
        return {"fill": float(self.size), "read": float(reads * WINDOW)}


def plan(parameters: Split, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range.
    """
    repeats = QUICK_REPEATS if parameters.quick else REPEATS
    return Plan(parameters.size_bytes(SIZE), repeats, DEPTHS, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region, then reads windows of it.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    session.fill(plan.size)
    read(session, plan)
    session.target.check_uncached()


def read(session: RunSession, plan: Plan) -> None:
    """Reads windows of a region that was written; each repeat reads another window.

    Units take turns within a repeat, so that what drifts while this runs touches all alike.
    """
    for repeat in range(plan.repeats):
        for depth in plan.depths:
            for unit in plan.units:
                _read(session, plan, (repeat, depth, unit))


def _read(session: RunSession, plan: Plan, place: tuple[int, int, int]) -> None:
    repeat, depth, unit = place
    # Not two windows in a row: a drive may have fetched the next one ahead.
    number = (repeat * 7 + plan.units.index(unit) * 3 + depth) % (plan.size // WINDOW)
    job = Job(
        op="read",
        offset_bytes=number * WINDOW,
        length_bytes=WINDOW,
        block_bytes=unit,
        amount_bytes=WINDOW,
        queue_depth=depth,
    )
    label = f"reading {format_size(WINDOW)} by {format_size(unit)}, {depth} at a time"
    session.run(Step("read", label, "read", repeat=repeat, value=unit), job)

"""What a run of the placement experiment does, and which plans make sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.experiments.placement.host_model import HOST_WORK
from ssdlab.experiments.placement.parameters import HOST_US, Placement
from ssdlab.experiments.placement.workloads import FRESH_WORK, STEADY_WORK
from ssdlab.target import Target, Twin
from ssdlab.units import format_size

MIB: Final = 1 << 20
GIB: Final = 1 << 30
PLACEMENTS: Final = ("striped", "hinted", "inferred", "packed")
SPARES: Final = (0.07, 0.28)
SIZE: Final = 4 * GIB
"""Room for the longest workload: appends of 4 KiB with random gaps write more than 1 GiB."""
SIZE_MIN: Final = 3 * GIB
STEADY_SIZE: Final = GIB
DRIVE_WRITES: Final = 3.0
QUICK_DRIVE_WRITES: Final = 1.0


@dataclass(frozen=True)
class State:
    """A drive's state: fresh (no spare named), or overwritten until it collects, with a spare.

    One that is `protected` by capacitors pads no pages for a flush.
    """

    spare: float | None = None
    protected: bool = False

    @property
    def name(self) -> str:
        """For rows and words."""
        if self.spare is None:
            return "fresh, protected" if self.protected else "fresh"
        return f"{100 * self.spare:g} % spare"


FRESH: Final = State()
PROTECTED: Final = State(protected=True)


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes. No state but a fresh one where there are no `spares`.

    `drive_writes` is how often a drive that collects is overwritten at random first; `host_us` the
    host's own time between two reads of 1 MiB, which a twin does not have. `laws` adds the stripe
    probe and the reads of files in pieces 8 MiB apart.
    """

    placements: tuple[str, ...] = PLACEMENTS
    spares: tuple[float, ...] = SPARES
    drive_writes: float = DRIVE_WRITES
    steady_size: int = STEADY_SIZE
    fresh_work: tuple[str, ...] = FRESH_WORK
    steady_work: tuple[str, ...] = STEADY_WORK
    host_work: tuple[str, ...] = HOST_WORK
    host_us: float = HOST_US
    laws: bool = True
    size: int = SIZE
    seed: int = 0

    @property
    def states(self) -> tuple[State, ...]:
        """In the order in which they are measured; a step's `stage` is the place here."""
        return (FRESH, PROTECTED, *(State(spare) for spare in self.spares))

    @property
    def request_bytes_max(self) -> int:
        """What a file is filled by."""
        return MIB

    @property
    def write_bytes(self) -> int:
        """Roughly: the fresh workloads, and filling and ageing those that collect."""
        fresh = len(self.fresh_work) * 256 * MIB
        steady = len(self.spares) * (self.drive_writes + 2) * self.steady_size
        return int(len(self.placements) * (fresh + steady))

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
        return {
            "placements": list(self.placements),
            "states": [state.name for state in self.states],
            "drive_writes": self.drive_writes,
            "size_mib": self.size / MIB,
            "steady_size_mib": self.steady_size / MIB,
            "host_us": self.host_us,
            "laws": self.laws,
        }

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast."""
        reads = len(self.placements) * (
            len(self.fresh_work) + 2 * len(self.spares) * len(self.steady_work)
        )
        return {"overwrite": float(self.write_bytes), "read": float(reads * 8 * MIB)}


def plan(parameters: Placement, target: Target, seed: int) -> Plan:
    """The plan for these parameters, on twins of the target's capacity.

    Raises:
        UsageError: the target is not a twin or too small, or a parameter is out of range.
    """
    if not isinstance(target, Twin):
        raise UsageError(
            f"placement compares policies inside a drive, and {target} cannot be told what a "
            "write belongs to; give twin:NAME"
        )
    chosen = parameters.placements or PLACEMENTS
    if wrong := [each for each in chosen if each not in PLACEMENTS]:
        raise UsageError(f"--placements has {wrong[0]!r}; it may have {', '.join(PLACEMENTS)}")
    if wrong_spares := [each for each in parameters.spare if not 0.04 <= each <= 0.9]:
        raise UsageError(f"--spare has {100 * wrong_spares[0]:g}%; it may be from 4% to 90%")
    usual = QUICK_DRIVE_WRITES if parameters.quick else DRIVE_WRITES
    writes = usual if parameters.drive_writes is None else parameters.drive_writes
    if not 0.0 < writes <= 1000.0:
        raise UsageError(f"--drive-writes is {writes:g}; it may be above 0, up to 1000")
    if not 0.0 <= parameters.host_us <= 1e6:
        raise UsageError(f"--host-us is {parameters.host_us:g}; it may be 0 to 1000000")
    capacity = target.scaled_to_bytes
    if capacity is not None and capacity < SIZE_MIN:
        raise UsageError(
            f"--capacity is {format_size(capacity)}; it may be {format_size(SIZE_MIN)} or more: "
            "files are written with gaps between their pieces"
        )
    return Plan(
        placements=tuple(dict.fromkeys(chosen)),
        spares=parameters.spare,
        drive_writes=writes,
        host_us=parameters.host_us,
        laws=parameters.plots,
        size=SIZE if capacity is None else min(SIZE, capacity),
        seed=seed,
    )

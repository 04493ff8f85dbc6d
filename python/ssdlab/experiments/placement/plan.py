"""Plan of a placement run, made from the user's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.errors import UsageError
from ssdlab.experiments.placement.host_model import APPLICATIONS
from ssdlab.experiments.placement.parameters import HOST_US, Placement
from ssdlab.experiments.placement.workloads import FRESH_WORKLOADS, STEADY_WORKLOADS
from ssdlab.target import Target, Twin
from ssdlab.units import format_size

MIB: Final = 1 << 20
GIB: Final = 1 << 30
PLACEMENTS: Final = ("striped", "hinted", "inferred", "packed")
SPARES: Final = (0.07, 0.28)
SIZE: Final = 4 * GIB
"""Capacity of a fresh drive, because appends of 4 KiB with random gaps write over 1 GiB."""
SIZE_MIN: Final = 3 * GIB
STEADY_SIZE: Final = GIB
DRIVE_WRITES: Final = 3.0
QUICK_DRIVE_WRITES: Final = 1.0


@dataclass(frozen=True)
class State:
    """State of a drive: fresh (`spare` is None), or collecting garbage with this spare area.

    A `protected` drive has capacitors, so it does not pad pages for a flush.
    """

    spare: float | None = None
    protected: bool = False

    @property
    def name(self) -> str:
        """The value of the column `state`."""
        if self.spare is None:
            return "fresh, protected" if self.protected else "fresh"
        return f"{100 * self.spare:g} % spare"


FRESH: Final = State()
PROTECTED: Final = State(protected=True)


@dataclass(frozen=True)
class Plan:
    """The plan of a run, stored in the manifest. Without `spares`, all drives are fresh.

    Drives that collect garbage get `drive_writes` of random writes before the workloads. `host_us`
    is the modelled host time between two reads of 1 MiB. `laws` adds `stripe_effects`.
    """

    placements: tuple[str, ...] = PLACEMENTS
    spares: tuple[float, ...] = SPARES
    drive_writes: float = DRIVE_WRITES
    steady_size: int = STEADY_SIZE
    fresh_work: tuple[str, ...] = FRESH_WORKLOADS
    steady_work: tuple[str, ...] = STEADY_WORKLOADS
    host_work: tuple[str, ...] = APPLICATIONS
    host_us: float = HOST_US
    laws: bool = True
    size: int = SIZE
    seed: int = 0

    @property
    def states(self) -> tuple[State, ...]:
        """All states, in the order of the run; a step's `stage` is an index into them."""
        return (FRESH, PROTECTED, *(State(spare) for spare in self.spares))

    @property
    def request_bytes_max(self) -> int:
        """Bytes of a request that fills a file."""
        return MIB

    @property
    def write_bytes(self) -> int:
        """Approximate bytes written: workloads on fresh drives, fill and ageing of others."""
        fresh = len(self.fresh_work) * 256 * MIB
        steady = len(self.spares) * (self.drive_writes + 2) * self.steady_size
        return int(len(self.placements) * (fresh + steady))

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
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
        """Bytes of each kind of work, for the forecast of the run's duration."""
        reads = len(self.placements) * (
            len(self.fresh_work) + 2 * len(self.spares) * len(self.steady_work)
        )
        return {"overwrite": float(self.write_bytes), "read": float(reads * 8 * MIB)}


def plan(parameters: Placement, target: Target, seed: int) -> Plan:
    """The plan for the user's parameters, on twins of the target's capacity.

    Raises:
        UsageError: the target is not a twin or too small, or a parameter is out of range.
    """
    if not isinstance(target, Twin):
        raise UsageError(
            f"placement compares policies inside a drive, and {target} cannot receive hints; "
            "give twin:NAME"
        )
    placements = parameters.placements or PLACEMENTS
    if unknown := [each for each in placements if each not in PLACEMENTS]:
        known = ", ".join(PLACEMENTS)
        raise UsageError(f"--placements has {unknown[0]!r}; each must be one of {known}")
    if out_of_range := [each for each in parameters.spare if not 0.04 <= each <= 0.9]:
        raise UsageError(f"--spare has {100 * out_of_range[0]:g}%; each must be 4% to 90%")
    drive_writes = parameters.drive_writes
    if drive_writes is None:
        drive_writes = QUICK_DRIVE_WRITES if parameters.quick else DRIVE_WRITES
    if not 0.0 < drive_writes <= 1000.0:
        raise UsageError(f"--drive-writes is {drive_writes:g}; it must be above 0, up to 1000")
    if not 0.0 <= parameters.host_us <= 1e6:
        raise UsageError(f"--host-us is {parameters.host_us:g}; it must be 0 to 1000000")
    capacity = target.scaled_to_bytes
    if capacity is not None and capacity < SIZE_MIN:
        raise UsageError(
            f"--capacity is {format_size(capacity)}; placement needs {format_size(SIZE_MIN)} or "
            f"more, because other files lie between the pieces of a file; leave --capacity out for "
            f"{format_size(SIZE)}"
        )
    return Plan(
        placements=tuple(dict.fromkeys(placements)),
        spares=parameters.spare,
        drive_writes=drive_writes,
        host_us=parameters.host_us,
        laws=parameters.plots,
        size=SIZE if capacity is None else min(SIZE, capacity),
        seed=seed,
    )

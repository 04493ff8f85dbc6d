"""What a run of `trim` does: how much it writes, how long it waits for a drive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.experiments.trim.parameters import Trim
from ssdlab.target import Target

MIB: Final = 1 << 20
SIZE: Final = 32 * MIB
QUICK_SIZE: Final = 8 * MIB
"""Ends of the file are left out, and drives and file systems pass over small holes."""
WAIT_S: Final = 30.0
QUICK_WAIT_S: Final = 4.0


@dataclass(frozen=True)
class Plan:
    """Bytes that are marked, and seconds in which a discard must show, after each way to ask."""

    size: int = SIZE
    wait_s: float = WAIT_S
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """Of the writes that mark."""
        return MIB

    @property
    def write_bytes(self) -> int:
        """The marked bytes once."""
        return self.size

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
        return {"size_mib": self.size / MIB, "wait_s": self.wait_s}

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast: at most, for waits end when the discard shows."""
        return {"fill": float(self.size), "rest": 2 * self.wait_s}


def plan(parameters: Trim, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range.
    """
    quick = parameters.quick
    size = parameters.size_bytes(QUICK_SIZE if quick else SIZE)
    return Plan(size, QUICK_WAIT_S if quick else WAIT_S, seed)

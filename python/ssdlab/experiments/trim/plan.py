"""The plan of `trim`: bytes to write, and waiting times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ssdlab.experiments.trim.parameters import Trim
from ssdlab.target import Target

MIB: Final = 1 << 20
SIZE: Final = 32 * MIB
QUICK_SIZE: Final = 8 * MIB
"""Large enough: ends of extents are not read, and drives and file systems skip small ranges."""
WAIT_S: Final = 30.0
QUICK_WAIT_S: Final = 4.0


@dataclass(frozen=True)
class Plan:
    """Bytes to mark, and seconds to wait for the effect of each kind of discard."""

    size: int = SIZE
    wait_s: float = WAIT_S
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """Bytes of a write request."""
        return MIB

    @property
    def write_bytes(self) -> int:
        """The marked bytes, written once."""
        return self.size

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {"size_mib": self.size / MIB, "wait_s": self.wait_s}

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work, at most: waiting may end early."""
        return {"fill": float(self.size), "rest": 2 * self.wait_s}


def plan(parameters: Trim, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range.
    """
    quick = parameters.quick
    size = parameters.size_bytes(QUICK_SIZE if quick else SIZE)
    return Plan(size, QUICK_WAIT_S if quick else WAIT_S, seed)

"""Between which bounds a measured number may be, so that a slip of the pen is seen as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.errors import UsageError


@dataclass(frozen=True)
class Allowed:
    """A number's unit and its bounds."""

    unit: str
    low: float
    high: float


_RATE: Final = Allowed("MiB/s", 0.001, 1e5)
COLUMNS: Final = {
    "alignment_kib": Allowed("KiB", 0.5, 1 << 30),
    "unit_kib": Allowed("KiB", 0.5, 1 << 30),
    "in_flight": Allowed("", 1, 65536),
    "queue_depth": Allowed("", 1, 65536),
    "read_ms": Allowed("ms", 0.001, 1e7),
    "sync_us_p50": Allowed("us", 0, 1e8),
    "read_mib_per_s": _RATE,
    "write_mib_per_s": _RATE,
}
"""The columns of small tables."""
MEANS: Final = {"MiB/s": _RATE, "us": Allowed("us", 0.1, 1e8)}
"""What a suite's `mean` may be, by its unit."""
LATENCY: Final = "access time"
"""The suite's test whose mean is a time."""


def check_number(value: float, allowed: Allowed, where: str) -> None:
    """Refuses what lies outside.

    Raises:
        UsageError: it does.
    """
    if not allowed.low <= value <= allowed.high:
        ends = f"{allowed.low:g} to {allowed.high:g} {allowed.unit}".rstrip()
        raise UsageError(
            f"{where} is {value:g} {allowed.unit}".rstrip() + f"; it may be from {ends}"
        )


def unit_of(test: str) -> str:
    """The unit of a suite's mean."""
    return "us" if test.startswith(LATENCY) else "MiB/s"

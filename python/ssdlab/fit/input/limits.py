"""Plausible limits of measured numbers, which catch typing errors and wrong units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.errors import UsageError


@dataclass(frozen=True)
class Limits:
    """A unit, and the smallest and largest plausible number in it."""

    unit: str
    low: float
    high: float


_RATE: Final = Limits("MiB/s", 0.001, 1e5)
COLUMNS: Final = {
    "alignment_kib": Limits("KiB", 0.5, 1 << 30),
    "unit_kib": Limits("KiB", 0.5, 1 << 30),
    "in_flight": Limits("", 1, 65536),
    "queue_depth": Limits("", 1, 65536),
    "read_ms": Limits("ms", 0.001, 1e7),
    "sync_us_p50": Limits("us", 0, 1e8),
    "read_mib_per_s": _RATE,
    "write_mib_per_s": _RATE,
}
"""Limits of the columns of a table."""
MEANS: Final = {"MiB/s": _RATE, "us": Limits("us", 0.1, 1e8)}
"""Limits of a suite's `mean`, by its unit."""
LATENCY: Final = "access time"
"""The suite's test whose mean is a latency."""


def check_number(value: float, limits: Limits, where: str) -> None:
    """Refuses a number outside its limits; `where` starts the message.

    Raises:
        UsageError: the number is outside.
    """
    if not limits.low <= value <= limits.high:
        given = f"{value:g} {limits.unit}".rstrip()
        allowed = f"{limits.low:g} to {limits.high:g} {limits.unit}".rstrip()
        raise UsageError(f"{where} is {given}; it must be from {allowed}")


def unit_of_mean(test: str) -> str:
    """The unit of a suite test's mean."""
    return "us" if test.startswith(LATENCY) else "MiB/s"

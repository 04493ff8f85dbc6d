"""The cost of a run, estimated before it starts: bytes written, time and wear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.runner.progress import expected_s
from ssdlab.runner.session import Plan
from ssdlab.units import format_duration, format_size

RATED_DRIVE_WRITES_PER_DAY: Final = 0.3
"""Typical warranty of a client drive: 600 TB written in five years for 1 TB of capacity."""
CONFIRM_ABOVE_SHARE: Final = 0.1
"""A run that writes more than this share of a day's rated writes needs the user's confirmation."""
_FLASH_TRANSPORTS: Final = frozenset({"nvme", "sata", "ata", "sas", "scsi", "usb", "mmc"})


@dataclass(frozen=True)
class Budget:
    """Bytes that a run writes, and its expected duration in seconds at the rates of a SATA drive.

    `is_timed` says whether some of its work is limited by time instead of bytes.
    `endurance_share` is `write_bytes` / the rated writes of a day; None if no drive is known to
    wear (a twin, a virtual disk).
    """

    write_bytes: int
    expected_s: float
    endurance_share: float | None
    is_timed: bool = False

    @property
    def sentence(self) -> str:
        """Bytes and duration in words.

        Of a run with timed jobs the two are of different drives: a fast one writes more in the
        same time.
        """
        written = f"writes up to {format_size(self.write_bytes)}"
        duration = f"about {format_duration(max(1, round(self.expected_s)))} on a SATA drive"
        return (
            f"{written} on a fast drive; {duration}" if self.is_timed else f"{written}, {duration}"
        )

    @property
    def needs_confirmation(self) -> bool:
        """Whether the user must confirm the run."""
        return self.endurance_share is not None and self.endurance_share > CONFIRM_ABOVE_SHARE


def budget(plan: Plan, drives: Iterable[Mapping[str, Any]]) -> Budget:
    """The cost of a plan on `drives` (the entry `drives` of a target's identity)."""
    sizes = [
        drive["size_bytes"]
        for drive in drives
        if drive.get("transport") in _FLASH_TRANSPORTS and not drive.get("rotational")
    ]
    rated = RATED_DRIVE_WRITES_PER_DAY * min(sizes, default=0)
    work = plan.work()
    share = plan.write_bytes / rated if rated else None
    return Budget(plan.write_bytes, expected_s(work), share, work.get("timed", 0.0) > 0)

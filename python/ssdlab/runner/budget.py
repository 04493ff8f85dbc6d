"""What a run costs the drive and its user, told before it begins: bytes, time, wear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.runner.progress import expected_s
from ssdlab.runner.session import Plan

WRITES_A_DAY: Final = 0.3
"""Drive writes a day that client drives are warranted for: 600 TB over five years for 1 TB."""
SHARE: Final = 0.1
"""Of a day's endurance a run may take so much without asking."""
_WEARING: Final = frozenset({"nvme", "sata", "ata", "sas", "scsi", "usb", "mmc"})


@dataclass(frozen=True)
class Budget:
    """Bytes to be written and the expected time in seconds, at a SATA drive's rates.

    `endurance_share` is the part of a day's endurance of the drive below, None where no drive is
    known that wears (a twin, a virtual disk).
    """

    write_bytes: int
    expected_s: float
    endurance_share: float | None

    @property
    def asks(self) -> bool:
        """Whether the user should be asked first."""
        return self.endurance_share is not None and self.endurance_share > SHARE


def budget(plan: Plan, drives: Iterable[Mapping[str, Any]]) -> Budget:
    """What a plan costs on `drives`, as a site's identity names them."""
    sizes = [
        drive["size_bytes"]
        for drive in drives
        if drive.get("transport") in _WEARING and not drive.get("rotational")
    ]
    share = plan.write_bytes / (WRITES_A_DAY * min(sizes)) if sizes and min(sizes) else None
    return Budget(plan.write_bytes, expected_s(plan.work()), share)

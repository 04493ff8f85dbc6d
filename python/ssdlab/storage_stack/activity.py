"""What a block device has done since boot, from /sys/block/NAME/stat.

Source: Documentation/block/stat.rst. Times are sums of whole milliseconds over all requests, from
their start in the block layer to their end, so they include the time in the scheduler. Merged
requests count once. Flushes are counted since Linux 5.5, discards since 4.18.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError
from ssdlab.stats.rates import Totals
from ssdlab.storage_stack.blockdev import SECTOR, SYS, BlockDevice, directory_of
from ssdlab.storage_stack.pseudofile import read_text

OPERATIONS: Final = ("read", "write", "trim", "flush")
_COLUMNS: Final = {
    "read": (0, 2, 3),
    "write": (4, 6, 7),
    "trim": (11, 13, 14),
    "flush": (15, None, 16),
}
"""The columns of requests, sectors (flushes have none) and milliseconds."""
_IN_FLIGHT, _BUSY_MS, _FEWEST = 8, 9, 11


@dataclass(frozen=True)
class Activity:
    """Totals by operation, the requests in flight now, and the time with any in flight, in s."""

    totals: dict[str, Totals]
    in_flight: int
    busy_s: float


def read_activity(device: BlockDevice, sys: Path = SYS) -> Activity:
    """What the device has done since boot.

    Raises:
        TargetError: the kernel no longer has it, or counts nothing for it.
    """
    text = read_text(directory_of(device, sys) / "stat") or ""
    columns = [int(word) for word in text.split() if word.isdigit()]
    if len(columns) < _FEWEST:
        raise TargetError(f"{device.node}: the kernel has no statistics of it; is it unplugged?")
    totals = {op: _totals(columns, *_COLUMNS[op]) for op in OPERATIONS}
    return Activity(totals, columns[_IN_FLIGHT], columns[_BUSY_MS] / 1e3)


def _totals(columns: list[int], requests: int, sectors: int | None, ms: int) -> Totals:
    if ms >= len(columns):  # an older kernel
        return Totals()
    size = 0 if sectors is None else columns[sectors] * SECTOR
    return Totals(columns[requests], size, columns[ms] * 1e3)

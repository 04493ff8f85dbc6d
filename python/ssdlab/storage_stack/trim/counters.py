"""Bytes discarded on a device, and bytes in use, as the kernel or the drive counts them.

Source: Documentation/block/stat.rst: field 14 is sectors discarded, of 512 bytes. It counts the
requests of all programs that reached the driver, not what the device did with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ssdlab.storage_stack.blockdev import SECTOR, SYS, BlockDevice, directory_of
from ssdlab.storage_stack.pseudofile import read_int, read_text

_READS: Final = 0  # field numbers from 0
_WRITES: Final = 4
_DISCARD_SECTORS: Final = 13


def discarded_bytes(device: BlockDevice, sys: Path = SYS) -> int | None:
    """Bytes discarded on this device or partition since it was attached.

    None before Linux 4.19, and for devices without I/O statistics: some stacked devices always
    report 0 reads and 0 writes.
    """
    words = (read_text(directory_of(device, sys) / "stat") or "").split()
    if len(words) <= _DISCARD_SECTORS or words[_READS] == words[_WRITES] == "0":
        return None
    return int(words[_DISCARD_SECTORS]) * SECTOR


def used_bytes(device: BlockDevice, sys: Path = SYS) -> int | None:
    """Bytes allocated: of a loop device's backing file, or an NVMe namespace's utilisation (NUSE).

    None for other devices, or if the file cannot be read. A drive may always report its capacity
    (NUSE equals NCAP), and may update the value late.
    """
    directory = directory_of(device, sys)
    backing = read_text(directory / "loop" / "backing_file")
    if backing is not None:
        try:
            return Path(backing).stat().st_blocks * SECTOR
        except OSError:
            return None
    blocks = read_int(directory / "nuse")
    sector = device.logical_sector
    return None if blocks is None or sector is None else blocks * sector

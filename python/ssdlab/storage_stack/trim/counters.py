"""What was sent to a device as discards, and how much of it is in use, by others' accounts.

Source: Documentation/block/stat.rst: field 14 is sectors discarded, in 512 bytes. It tells that
requests reached the device's driver, from whomever; not what the device did with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ssdlab.storage_stack.blockdev import SECTOR, SYS, BlockDevice, directory_of
from ssdlab.storage_stack.pseudofile import read_int, read_text

_READS: Final = 0  # fields, counted from 0
_WRITES: Final = 4
_DISCARD_SECTORS: Final = 13


def discarded_bytes(device: BlockDevice, sys: Path = SYS) -> int | None:
    """Bytes discarded on this device or partition since it came.

    None where the kernel does not count them (before Linux 4.19), or counts nothing at all here:
    some devices made of others have never done a read by their own account.
    """
    words = (read_text(directory_of(device, sys) / "stat") or "").split()
    if len(words) <= _DISCARD_SECTORS or words[_READS] == words[_WRITES] == "0":
        return None
    return int(words[_DISCARD_SECTORS]) * SECTOR


def used_bytes(device: BlockDevice, sys: Path = SYS) -> int | None:
    """Bytes that are allocated for a device: of a loop device's file, or by an NVMe drive's count.

    None elsewhere, and where the file cannot be looked at. A drive may report its whole capacity
    always (NVMe: NUSE equals NCAP), and may count late.
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

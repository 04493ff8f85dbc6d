"""How much room a file system has, and how much of it a test may use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError

KEPT_PERCENT: Final = 5
KEPT_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of one file system: all, free for an ordinary user, free for root."""

    total_bytes: int
    free_bytes: int
    free_bytes_root: int

    @property
    def kept_bytes(self) -> int:
        """What must stay free: 5 % of the file system or 1 GiB, whichever is more."""
        return max(self.total_bytes * KEPT_PERCENT // 100, KEPT_BYTES)

    @property
    def usable_bytes(self) -> int:
        """What a test may use; 0 on a file system without room beyond what must stay free."""
        return max(0, self.free_bytes - self.kept_bytes)


def space_on(path: Path) -> Space:
    """Space of the file system that holds `path` (an existing file or directory).

    Quotas are not seen, and a thin device below may have less than its file system believes.

    Raises:
        TargetError: the path cannot be reached.
    """
    try:
        stat = os.statvfs(path)
    except OSError as error:
        reason = error.strerror
        raise TargetError(f"{path}: its free space is unknown ({reason}): give a path") from error
    return Space(
        total_bytes=stat.f_blocks * stat.f_frsize,
        free_bytes=stat.f_bavail * stat.f_frsize,
        free_bytes_root=stat.f_bfree * stat.f_frsize,
    )


def room_for(path: Path, wanted_bytes: int) -> int:
    """How many of `wanted_bytes` a test may use on the file system of `path`.

    Less than `wanted_bytes` (down to 0) where more would eat into the space that stays free.

    Raises:
        TargetError: the path cannot be reached.
    """
    assert wanted_bytes >= 0
    return min(wanted_bytes, space_on(path).usable_bytes)

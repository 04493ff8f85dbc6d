"""Free space of a file system, and how much of it a test may use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError

KEPT_PERCENT: Final = 5
KEPT_LEAST: Final = 1 << 30
KEPT_MOST: Final = 8 << 30
KEPT_RULE: Final = "5 % of the file system, at least 1 GiB and at most 8 GiB"
"""What a test leaves free, for messages."""


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes of one file system: total, free for ordinary users, free for root."""

    total_bytes: int
    free_bytes: int
    free_bytes_root: int

    @property
    def kept_bytes(self) -> int:
        """Bytes that a test leaves free: 5 % of the file system, at least 1 and at most 8 GiB."""
        return min(max(self.total_bytes * KEPT_PERCENT // 100, KEPT_LEAST), KEPT_MOST)

    @property
    def usable_bytes(self) -> int:
        """Bytes that a test may use; 0 if no more than `kept_bytes` are free."""
        return max(0, self.free_bytes - self.kept_bytes)


def space_on(path: Path) -> Space:
    """Space of the file system that holds `path` (an existing file or directory).

    Ignores quotas. A thin-provisioned device below may have less space than its file system shows.

    Raises:
        TargetError: the path cannot be reached.
    """
    try:
        stat = os.statvfs(path)
    except OSError as error:
        reason = error.strerror
        raise TargetError(
            f"{path}: its free space cannot be read ({reason}); give an existing path"
        ) from error
    return Space(
        total_bytes=stat.f_blocks * stat.f_frsize,
        free_bytes=stat.f_bavail * stat.f_frsize,
        free_bytes_root=stat.f_bfree * stat.f_frsize,
    )


def room_for(path: Path, wanted_bytes: int) -> int:
    """Bytes that a test may use on the file system of `path`: at most `wanted_bytes`, at least 0.

    Raises:
        TargetError: the path cannot be reached.
    """
    assert wanted_bytes >= 0
    return min(wanted_bytes, space_on(path).usable_bytes)

"""Checks that reads reach the drive: the test file is allocated, written and not cached."""

from __future__ import annotations

import os
from typing import Final

from ssdlab.errors import TargetError
from ssdlab.storage_stack.cache import resident_bytes
from ssdlab.storage_stack.extents import (
    ExtentFlag,
    all_flags,
    merged,
    read_extents,
    unwritten_bytes,
)
from ssdlab.units import format_size
from ssdlab.warning import Warn

CACHED_MOST: Final = 0.10
"""If more than this share of the file is in the page cache, the measurement is refused."""
CACHED_SOME: Final = 0.01
"""Above this share it gets a warning."""


def check_written(fd: int, warn: Warn) -> int | None:
    """Checks with FIEMAP that a file has no holes, unwritten extents or delayed allocation.

    Such bytes read as zeros from memory, much faster than from flash. Returns the number of
    fragments on the device; None, with a warning, if the file system has no FIEMAP.

    Raises:
        TargetError: some bytes are not on the drive.
    """
    missing = unwritten_bytes(fd)
    extents = read_extents(fd)
    if missing is None or extents is None:
        warn(
            "extents-unknown",
            "This file system does not report a file's extents (no FIEMAP), so it is not proved "
            "that all reads reached the drive: compare with a directory on ext4 or XFS.",
        )
        return None
    if missing:
        raise TargetError(
            f"{format_size(missing)} of the {format_size(os.fstat(fd).st_size)} test file are not "
            "on the drive (holes, unwritten or delayed extents), so reading it would measure "
            "nothing; give a directory on another file system"
        )
    flags = all_flags(extents)
    if ExtentFlag.ENCODED in flags:
        warn(
            "encoded",
            "The file system compresses or encodes the test file, so the drive stores other bytes "
            "than were written: turn compression off for this directory, or give another one.",
        )
    return len(merged(extents))


def check_uncached(fd: int, warn: Warn) -> None:
    """Checks that a file that was read with direct I/O is not in the page cache.

    Raises:
        TargetError: more than `CACHED_MOST` of it is: direct I/O went through the page cache.
    """
    cached = resident_bytes(fd)
    size = os.fstat(fd).st_size
    if cached is None or cached <= CACHED_SOME * size:
        return
    sentence = f"{format_size(cached)} of the {format_size(size)} test file are in the page cache"
    if cached > CACHED_MOST * size:
        raise TargetError(
            f"{sentence}: the file system answers direct reads from memory, so no drive can be "
            "measured here; give a directory on another file system"
        )
    warn(
        "page-cache",
        f"{sentence}, so some reads may have come from memory: stop other programs that use this "
        "directory, or give one on another file system.",
    )

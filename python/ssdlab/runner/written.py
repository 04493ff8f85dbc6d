"""Proof that reads reach the flash: the file is written, and the page cache took no part."""

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
"""With more than this share of the file in the page cache, a read says nothing about a drive."""
CACHED_SOME: Final = 0.01


def check_written(fd: int, warn: Warn) -> int | None:
    """Checks by FIEMAP that no byte of a file is a hole, unwritten or waiting in memory.

    Such bytes are read as zeros at fairy-tale speed, without touching the flash. Returns the
    number of fragments on the device; None and a warning if the file system cannot tell.

    Raises:
        TargetError: some bytes are not on the drive.
    """
    missing = unwritten_bytes(fd)
    extents = read_extents(fd)
    if missing is None or extents is None:
        warn(
            "extents-unknown",
            "This file system does not tell where a file lies (no FIEMAP): whether all that was "
            "read is on the drive is not proved.",
        )
        return None
    if missing:
        raise TargetError(
            f"{format_size(missing)} of the {format_size(os.fstat(fd).st_size)} test file are not "
            "on the drive (holes, unwritten or delayed extents), so reading it would measure "
            "nothing; this file system cannot be measured"
        )
    flags = all_flags(extents)
    if ExtentFlag.ENCODED in flags:
        warn(
            "encoded",
            "The file system compresses or encodes the test file: the drive stores other bytes "
            "than were written.",
        )
    return len(merged(extents))


def check_uncached(fd: int, warn: Warn) -> None:
    """Checks that a file that was read past the page cache is not in it.

    Raises:
        TargetError: much of it is: direct I/O silently went through the page cache.
    """
    cached = resident_bytes(fd)
    size = os.fstat(fd).st_size
    if cached is None or cached <= CACHED_SOME * size:
        return
    sentence = f"{format_size(cached)} of the {format_size(size)} test file are in the page cache"
    if cached > CACHED_MOST * size:
        raise TargetError(
            f"{sentence}: the file system answers direct reads from memory, so no drive can be "
            "measured here"
        )
    warn("page-cache", f"{sentence}: some reads may have come from memory.")

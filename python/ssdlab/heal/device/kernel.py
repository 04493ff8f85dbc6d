"""Kernel calls for a mounted file system: freeze, thaw, free space, and the page cache.

Source: include/uapi/linux/fs.h (FIFREEZE, FITHAW), fsmap.h (FS_IOC_GETFSMAP), mman.h (cachestat,
Linux 6.5). Trap: GETFSMAP on ext4 omits some ranges that files use, but no free range and no
metadata. So everything that it does not list as free or metadata counts as in use.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from typing import Final

from ssdlab.heal.device.windows import PAGE_BYTES
from ssdlab.heal.pieces import Range, merge, split_at_grid

_FIFREEZE: Final = 0xC004_5877
_FITHAW: Final = 0xC004_5878
_GETFSMAP: Final = 0xC0C0_583B
_HEAD: Final = struct.Struct("=LLLL48x")
_ROW: Final = struct.Struct("=LLQQQQ24x")  # device, flags, physical, owner, offset, length
_ROWS: Final = 512
_SPECIAL, _LAST = 0x10, 0x20
_UNKNOWN: Final = 2
"""Owner of file data (FMR_OWN_UNKNOWN); every other special owner is free space or metadata."""
_CACHESTAT: Final = 451
_ALL32, _ALL64 = (1 << 32) - 1, (1 << 64) - 1


def freeze(fd: int) -> bool:
    """Freezes a mounted file system; False if it is already frozen.

    Raises:
        OSError: it cannot be frozen.
    """
    try:
        fcntl.ioctl(fd, _FIFREEZE, 0)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise
    return True


def thaw(fd: int) -> bool:
    """Thaws a file system; False if it was not frozen."""
    try:
        fcntl.ioctl(fd, _FITHAW, 0)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    return True


def free_or_metadata(fd: int, start: int, end: int) -> list[Range]:
    """The ranges between `start` and `end` of a mounted device that no file's data uses.

    Raises:
        OSError: the file system does not support GETFSMAP.
    """
    ranges: list[Range] = []
    position = start
    while position < end:
        rows = _rows(fd, position, end)
        for _, flags, physical, owner, _, length in rows:
            if flags & _SPECIAL and owner != _UNKNOWN:
                ranges.append(Range(physical, length))
        if not rows or rows[-1][1] & _LAST or len(rows) < _ROWS:
            break
        position = rows[-1][2] + rows[-1][5]
    return merge(ranges)


def _rows(fd: int, start: int, end: int) -> list[tuple[int, ...]]:
    buffer = bytearray(_HEAD.size + (2 + _ROWS) * _ROW.size)
    _HEAD.pack_into(buffer, 0, 0, 0, _ROWS, 0)
    _ROW.pack_into(buffer, _HEAD.size, 0, 0, start, 0, 0, 0)
    high = (_ALL32, _ALL32, end - 1, _ALL64, _ALL64, 0)
    _ROW.pack_into(buffer, _HEAD.size + _ROW.size, *high)
    fcntl.ioctl(fd, _GETFSMAP, buffer, True)
    count = _HEAD.unpack_from(buffer)[3]
    first = _HEAD.size + 2 * _ROW.size
    return list(_ROW.iter_unpack(memoryview(buffer)[first : first + count * _ROW.size]))


def cached_pages(fd: int, ranges: tuple[Range, ...]) -> list[Range]:
    """The pages that stay in the device's page cache after POSIX_FADV_DONTNEED: metadata in use.

    A direct write to such a page would become a buffered one.

    Raises:
        OSError: the kernel has no cachestat(2) (before Linux 6.5).
    """
    cached = []
    for each in ranges:
        start = each.offset // PAGE_BYTES * PAGE_BYTES
        length = -(-each.end // PAGE_BYTES) * PAGE_BYTES - start
        os.posix_fadvise(fd, start, length, os.POSIX_FADV_DONTNEED)
        if _cached_page_count(fd, start, length):
            pages = split_at_grid([Range(start, length)], PAGE_BYTES)
            cached += [page for page in pages if _cached_page_count(fd, page.offset, PAGE_BYTES)]
    return merge(cached)


def _cached_page_count(fd: int, offset: int, length: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    span = (ctypes.c_uint64 * 2)(offset, length)
    counts = (ctypes.c_uint64 * 5)()
    if libc.syscall(_CACHESTAT, fd, ctypes.byref(span), ctypes.byref(counts), 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(counts[0])

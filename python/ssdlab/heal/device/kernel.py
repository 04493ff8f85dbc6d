"""The calls by which a mounted file system is held still and asked what is where.

Source: include/uapi/linux/fs.h (FIFREEZE, FITHAW), fsmap.h (FS_IOC_GETFSMAP), mman.h (cachestat,
Linux 6.5). Trap: ext4 leaves out ranges in use when it lists what it has, but not free ones and not
its own metadata: so what is in use is all that it does not call free.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from typing import Final

from ssdlab.heal.device.windows import PAGE_BYTES, gridded
from ssdlab.heal.pieces import Range, joined

_FIFREEZE: Final = 0xC004_5877
_FITHAW: Final = 0xC004_5878
_GETFSMAP: Final = 0xC0C0_583B
_HEAD: Final = struct.Struct("=LLLL48x")
_ROW: Final = struct.Struct("=LLQQQQ24x")  # device, flags, physical, owner, offset, length
_ROWS: Final = 512
_SPECIAL, _LAST = 0x10, 0x20
_UNKNOWN: Final = 2
"""The owner of what is in use by files; every other special one is free or the file system's."""
_CACHESTAT: Final = 451
_ALL32, _ALL64 = (1 << 32) - 1, (1 << 64) - 1


def freeze(fd: int) -> bool:
    """Holds a mounted file system still; False if somebody else does already.

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
    """Lets it go on; False if it was not frozen."""
    try:
        fcntl.ioctl(fd, _FITHAW, 0)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise
    return True


def untouchable(fd: int, start: int, end: int) -> list[Range]:
    """What of a mounted file system's device is free or its own metadata, from `start` to `end`.

    Raises:
        OSError: the file system does not tell.
    """
    found: list[Range] = []
    at = start
    while at < end:
        rows = _rows(fd, at, end)
        for _, flags, physical, owner, _, length in rows:
            if flags & _SPECIAL and owner != _UNKNOWN:
                found.append(Range(physical, length))
        if not rows or rows[-1][1] & _LAST or len(rows) < _ROWS:
            break
        at = rows[-1][2] + rows[-1][5]
    return joined(found)


def _rows(fd: int, start: int, end: int) -> list[tuple[int, ...]]:
    room = bytearray(_HEAD.size + (2 + _ROWS) * _ROW.size)
    _HEAD.pack_into(room, 0, 0, 0, _ROWS, 0)
    _ROW.pack_into(room, _HEAD.size, 0, 0, start, 0, 0, 0)
    high = (_ALL32, _ALL32, end - 1, _ALL64, _ALL64, 0)
    _ROW.pack_into(room, _HEAD.size + _ROW.size, *high)
    fcntl.ioctl(fd, _GETFSMAP, room, True)
    count = _HEAD.unpack_from(room)[3]
    first = _HEAD.size + 2 * _ROW.size
    return list(_ROW.iter_unpack(memoryview(room)[first : first + count * _ROW.size]))


def in_cache(fd: int, ranges: tuple[Range, ...]) -> list[Range]:
    """Pages of a device that the page cache keeps although asked to let go: metadata in use.

    A direct write to such a page would turn into one through the cache.

    Raises:
        OSError: the kernel cannot tell (before Linux 6.5).
    """
    found = []
    for each in ranges:
        start = each.offset // PAGE_BYTES * PAGE_BYTES
        length = -(-each.end // PAGE_BYTES) * PAGE_BYTES - start
        os.posix_fadvise(fd, start, length, os.POSIX_FADV_DONTNEED)
        if _cached(fd, start, length):
            pages = gridded([Range(start, length)], PAGE_BYTES)
            found += [page for page in pages if _cached(fd, page.offset, PAGE_BYTES)]
    return joined(found)


def _cached(fd: int, offset: int, length: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    span = (ctypes.c_uint64 * 2)(offset, length)
    counts = (ctypes.c_uint64 * 5)()
    if libc.syscall(_CACHESTAT, fd, ctypes.byref(span), ctypes.byref(counts), 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(counts[0])

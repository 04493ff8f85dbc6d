"""How many bytes of a file are in the page cache, to check that direct reads bypassed it.

Uses cachestat(2) (Linux 6.5), or else mincore(2) on a mapping of the file. Caution: for a user who
neither owns the file nor may write it, mincore reports every page as resident, and newer kernels
refuse cachestat. In both cases the result here is None.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
import sys
from typing import Final

_SYS_CACHESTAT: Final = 451  # on all architectures except Alpha
_CHUNK: Final = 1 << 30  # bytes mapped at a time for mincore; a multiple of every page size
_BLKGETSIZE64: Final = 0x80081272
_NO_ADDRESS: Final = ctypes.c_void_p(-1).value
_REFUSED: Final = (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES)


def resident_bytes(fd: int, offset: int = 0, length: int | None = None) -> int | None:
    """Bytes of [offset, offset + length) of an open file or block device in the page cache.

    Without `length`, up to the end of the file. Counts whole pages, but never more than the range.
    None if the user neither owns the file nor may write it. Without cachestat, `fd` must be
    readable.

    Raises:
        OSError: neither system call works on this descriptor.
    """
    end = _size(fd) if length is None else min(offset + length, _size(fd))
    if end <= offset:
        return 0
    pages = resident_pages_cachestat(fd, offset, end - offset)
    if pages is None:
        if not _mincore_is_reliable(fd):
            return None
        pages = resident_pages_mincore(fd, offset, end - offset)
    return min(pages * mmap.PAGESIZE, end - offset)


def resident_pages_cachestat(fd: int, offset: int, length: int) -> int | None:
    """Pages of the range in the page cache by cachestat(2); None if unsupported or refused."""
    assert length > 0, "to cachestat, length 0 means the whole file"
    libc = ctypes.CDLL(None, use_errno=True)
    wanted = ctypes.create_string_buffer(struct.pack("=QQ", offset, length), 16)
    answer = ctypes.create_string_buffer(5 * 8)  # cached, dirty, writeback, evicted, recently
    if libc.syscall(ctypes.c_long(_SYS_CACHESTAT), fd, wanted, answer, 0) == 0:
        return int(struct.unpack("=5Q", answer.raw)[0])
    number = ctypes.get_errno()
    if number in _REFUSED:
        return None
    raise OSError(number, f"cachestat: {os.strerror(number)}")


def resident_pages_mincore(fd: int, offset: int, length: int) -> int:
    """Pages of the range in the page cache by mincore(2); the range must be within the file."""
    start = offset - offset % mmap.PAGESIZE
    end = offset + length
    return sum(_mincore(fd, at, min(_CHUNK, end - at)) for at in range(start, end, _CHUNK))


def _mincore(fd: int, start: int, length: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    sizes, off_t = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int64
    libc.mmap.argtypes = (*sizes, ctypes.c_int, ctypes.c_int, ctypes.c_int, off_t)
    libc.munmap.argtypes = sizes
    libc.mincore.argtypes = (*sizes, ctypes.c_char_p)
    address = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, fd, start)
    if address == _NO_ADDRESS:
        raise OSError(ctypes.get_errno(), f"mmap: {os.strerror(ctypes.get_errno())}")
    try:
        answer = ctypes.create_string_buffer(-(-length // mmap.PAGESIZE))
        if libc.mincore(address, length, answer) != 0:
            raise OSError(ctypes.get_errno(), f"mincore: {os.strerror(ctypes.get_errno())}")
        return sum(page & 1 for page in answer.raw)
    finally:
        libc.munmap(address, length)


def _mincore_is_reliable(fd: int) -> bool:
    """The kernel's rule (can_do_mincore): root, owner, or write permission."""
    if os.geteuid() in (0, os.fstat(fd).st_uid):
        return True
    return os.access(f"/proc/self/fd/{fd}", os.W_OK, effective_ids=True)


def _size(fd: int) -> int:
    status = os.fstat(fd)
    if not stat.S_ISBLK(status.st_mode):
        return status.st_size
    answer = fcntl.ioctl(fd, _BLKGETSIZE64, bytes(8))
    return int.from_bytes(answer, sys.byteorder)

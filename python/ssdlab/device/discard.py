"""Discards (FITRIM, BLKDISCARD) and direct reads to check their effect.

After a discard, a buffered read would return the old content from the page cache.
Source: include/uapi/linux/fs.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

_FITRIM: Final = 0xC0185879  # _IOWR('X', 121, struct fstrim_range)
_BLKDISCARD: Final = 0x1277  # _IO(0x12, 119)
_RANGE: Final = struct.Struct("=QQQ")  # struct fstrim_range: start, len, minlen
_EXTENT: Final = struct.Struct("=QQ")
_PIECE_BYTES: Final = 1 << 20


class DirectReader:
    """A file or block device opened for direct reads."""

    def __init__(self, path: Path) -> None:
        """Opens the file or device.

        Raises:
            OSError: it cannot be opened; PermissionError if root is required.
        """
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        self._buffer = mmap.mmap(-1, _PIECE_BYTES)  # page-aligned, for direct I/O

    def pieces(self, offset: int, length: int) -> Iterator[memoryview]:
        """Reads a range in pieces of up to 1 MiB; each is valid until the next.

        Offset and length are multiples of the device's sector.

        Raises:
            OSError: a read failed, or the range exceeds the device.
        """
        end = offset + length
        while offset < end:
            buffer = memoryview(self._buffer)[: min(_PIECE_BYTES, end - offset)]
            got = os.preadv(self._fd, [buffer], offset)
            if got <= 0:
                raise OSError(f"nothing can be read at byte {offset}")
            yield buffer[:got]
            offset += got

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def trim_free(directory: Path, offset: int, length: int, least: int = 0) -> int:
    """FITRIM: discards the free space of a file system within a range of its device, in bytes.

    Skips free extents shorter than `least`. Returns the bytes that the file system reports, which
    prove nothing: ext4 skips space it already trimmed in this mount, XFS reports all free space.

    Raises:
        OSError: EPERM without root; EOPNOTSUPP or ENOTTY if discard is not supported.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        answer = fcntl.ioctl(fd, _FITRIM, _RANGE.pack(offset, length, least))
    finally:
        os.close(fd)
    return int(_RANGE.unpack(answer)[1])


def discard(path: Path, offset: int, length: int) -> None:
    """BLKDISCARD: discards a range of a block device; its content is lost.

    Raises:
        OSError: EOPNOTSUPP if the device does not support discard.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _BLKDISCARD, _EXTENT.pack(offset, length))
    finally:
        os.close(fd)


def sync_file_system(directory: Path) -> None:
    """syncfs(2): writes all dirty data of this file system to its device.

    Raises:
        OSError: an I/O error.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(directory))
    finally:
        os.close(fd)

"""Blocks as a device gives them, read past the page cache, and two ways to ask for a discard.

Reads are direct: a buffered read of a block device answers from its page cache, with content from
before a discard. Source: ioctl_fitrim(2)'s structure in include/uapi/linux/fs.h; BLKDISCARD ibid.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_FITRIM: Final = 0xC0185879  # _IOWR('X', 121, struct fstrim_range)
_BLKDISCARD: Final = 0x1277  # _IO(0x12, 119)
_RANGE: Final = struct.Struct("=QQQ")  # start, length, least length
_EXTENT: Final = struct.Struct("=QQ")
_PIECE: Final = 1 << 20  # bytes read at once


class Blocks:
    """A file or block device opened for direct reads alone."""

    def __init__(self, path: Path) -> None:
        """Opens it.

        Raises:
            OSError: it cannot be opened; PermissionError where that takes root.
        """
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        self._room = mmap.mmap(-1, _PIECE)  # aligned to a page, as direct reads demand

    def pieces(self, offset: int, length: int) -> Iterator[memoryview]:
        """The bytes of a range, by pieces of up to 1 MiB that hold until the next is asked for.

        Offset and length are multiples of the device's sector.

        Raises:
            OSError: a read failed, or the range is beyond the end.
        """
        end = offset + length
        while offset < end:
            room = memoryview(self._room)[: min(_PIECE, end - offset)]
            got = os.preadv(self._fd, [room], offset)
            if got <= 0:
                raise OSError(f"nothing can be read at byte {offset}")
            yield room[:got]
            offset += got

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        os.close(self._fd)


def trim_free(directory: Path, offset: int, length: int, least: int = 0) -> int:
    """FITRIM: asks a file system to discard what is free within a range of its device.

    All in bytes; free pieces shorter than `least` are left out. Returns how many bytes it says it
    discarded, which is no evidence: ext4 leaves out what it trimmed before in this mount, XFS
    counts all that is free each time.

    Raises:
        OSError: EPERM without root; EOPNOTSUPP or ENOTTY where it cannot discard.
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
        OSError: EOPNOTSUPP where the device takes no discards.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _BLKDISCARD, _EXTENT.pack(offset, length))
    finally:
        os.close(fd)


def sync_file_system(directory: Path) -> None:
    """syncfs: waits until what was done in this file system alone is on its device.

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

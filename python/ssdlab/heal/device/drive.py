"""A device opened for direct I/O, which bypasses the page cache."""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final
from uuid import UUID

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.device.allocated import log_state
from ssdlab.heal.device.windows import WINDOW_BYTES, Window, drop_zero_pages
from ssdlab.heal.pieces import Range

REQUEST_BYTES: Final = 1 << 20
_SUPERBLOCK: Final = 4096
"""This many first bytes hold the superblock of ext2, ext3, ext4 and XFS, and for XFS also the
headers of the first allocation group."""


class DirectDevice:
    """A block device; if `exclusive`, no one else may mount or claim it (O_EXCL)."""

    def __init__(self, path: Path, *, exclusive: bool) -> None:
        """Opens the device for reading and writing.

        Raises:
            TargetError: it cannot be opened, or is in use.
        """
        self.path, self.exclusive = path, exclusive
        flags = os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC | (os.O_EXCL if exclusive else 0)
        try:
            self.fd = os.open(path, flags)
        except OSError as error:
            raise TargetError(f"{path} cannot be opened ({error.strerror})") from error
        self._buffer = memoryview(mmap.mmap(-1, WINDOW_BYTES))

    def read(self, window: Window) -> bytes:
        """Reads the window's ranges, one after the other.

        Raises:
            DeviceFailure: a read failed.
        """
        return bytes(self._buffer[: self._read_into_buffer(window)])

    def _read_into_buffer(self, window: Window) -> int:
        position = 0
        for offset, length in _requests(window):
            try:
                count = os.preadv(self.fd, [self._buffer[position : position + length]], offset)
            except OSError as error:
                raise DeviceFailure(f"{self.path}: a read at byte {offset} failed") from error
            if count != length:
                raise DeviceFailure(f"{self.path}: a read at byte {offset} was short")
            position += length
        return position

    def read_timed(self, each: Range) -> tuple[float, int]:
        """Reads a range in order, one request at a time.

        Returns the time in seconds, and the number of bytes in pages that are not all zeros.

        Raises:
            DeviceFailure: a read failed.
        """
        seconds, data_bytes = 0.0, 0
        for start in range(each.offset, each.end, WINDOW_BYTES):
            window = Window((Range(start, min(WINDOW_BYTES, each.end - start)),))
            started = time.perf_counter()
            length = self._read_into_buffer(window)
            seconds += time.perf_counter() - started
            data_bytes += len(drop_zero_pages(window, bytes(self._buffer[:length]))[1])
        return seconds, data_bytes

    def write(self, window: Window, content: bytes) -> None:
        """Writes the window's ranges in order, then flushes.

        Raises:
            DeviceFailure: a write or the flush failed.
        """
        assert window.length == len(content), "content and ranges have the same length"
        self._buffer[: len(content)] = content
        position = 0
        for offset, length in _requests(window):
            try:
                count = os.pwritev(self.fd, [self._buffer[position : position + length]], offset)
            except OSError as error:
                raise DeviceFailure(f"{self.path}: a write at byte {offset} failed") from error
            if count != length:
                raise DeviceFailure(f"{self.path}: a write at byte {offset} was short")
            position += length
        self.flush()

    def flush(self) -> None:
        """Flushes the drive's write cache.

        Raises:
            DeviceFailure: the flush failed.
        """
        try:
            os.fdatasync(self.fd)
        except OSError as error:
            raise DeviceFailure(f"{self.path}: a flush failed") from error

    def generation(self, kind: str) -> str:
        """A hash that changes whenever the file system is mounted for writing, repaired or thawed.

        Raises:
            TargetError: the file system's tool fails.
            DeviceFailure: a read failed.
        """
        return generation_of(self.superblock(), log_state(self.path, kind))

    def superblock(self) -> bytes:
        """Reads the first bytes, which hold the superblock.

        Raises:
            DeviceFailure: a read failed.
        """
        try:
            count = os.preadv(self.fd, [self._buffer[:_SUPERBLOCK]], 0)
        except OSError as error:
            raise DeviceFailure(f"{self.path}: its superblock cannot be read") from error
        if count != _SUPERBLOCK:
            raise DeviceFailure(f"{self.path}: the read of its superblock was short")
        return bytes(self._buffer[:_SUPERBLOCK])

    def close(self) -> None:
        """Closes the device."""
        os.close(self.fd)


def family_of(superblock: bytes) -> tuple[str, str] | None:
    """The file system's family, "ext" (ext2 to ext4) or "xfs", and its UUID; None for others."""
    if superblock[:4] == b"XFSB":
        return "xfs", str(UUID(bytes=superblock[32:48]))
    if superblock[1080:1082] == b"\x53\xef":
        return "ext", str(UUID(bytes=superblock[1128:1144]))
    return None


def mount_id(superblock: bytes) -> str:
    """Identifies a mount of ext4 by mount time, mount count, and time of the last check."""
    ext4 = superblock[1024:]
    return (ext4[44:48] + ext4[52:54] + ext4[64:68]).hex()


def needs_recovery(superblock: bytes) -> bool:
    """Whether ext4 must replay its journal because it crashed while mounted and not frozen."""
    (incompatible,) = struct.unpack_from("<L", superblock, 1024 + 96)
    return bool(incompatible & 0x4)


def generation_of(superblock: bytes, log: str) -> str:
    """`DirectDevice.generation` from a superblock and a log state."""
    return hashlib.sha256(superblock + log.encode()).hexdigest()


def _requests(window: Window) -> list[tuple[int, int]]:
    return [
        (offset, min(REQUEST_BYTES, each.end - offset))
        for each in window.ranges
        for offset in range(each.offset, each.end, REQUEST_BYTES)
    ]

"""A device opened for direct I/O alone: what is read and written goes past the page cache."""

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
from ssdlab.heal.device.windows import WINDOW_BYTES, Window, without_zeros
from ssdlab.heal.pieces import Range

REQUEST_BYTES: Final = 1 << 20
_SUPERBLOCK: Final = 4096
"""The superblock of each of the kinds is in the first bytes, and of XFS the heads of its first
allocation group."""


class DirectDevice:
    """A block device; `exclusive` while nobody else may use it (O_EXCL)."""

    def __init__(self, path: Path, *, exclusive: bool) -> None:
        """Opens it for reading and writing.

        Raises:
            TargetError: it cannot be opened, or somebody has it.
        """
        self.path, self.exclusive = path, exclusive
        flags = os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC | (os.O_EXCL if exclusive else 0)
        try:
            self.fd = os.open(path, flags)
        except OSError as error:
            raise TargetError(f"{path} cannot be opened ({error.strerror})") from error
        self._room = memoryview(mmap.mmap(-1, WINDOW_BYTES))

    def read(self, window: Window) -> bytes:
        """What its ranges hold, one after the other.

        Raises:
            DeviceFailure: a read failed.
        """
        return bytes(self._room[: self._fill(window)])

    def _fill(self, window: Window) -> int:
        at = 0
        for offset, length in _requests(window):
            try:
                got = os.preadv(self.fd, [self._room[at : at + length]], offset)
            except OSError as error:
                raise DeviceFailure(f"{self.path}: a read at byte {offset} failed") from error
            if got != length:
                raise DeviceFailure(f"{self.path}: a read at byte {offset} was short")
            at += length
        return at

    def read_timed(self, each: Range) -> tuple[float, int]:
        """Reads a range in order, one request at a time: seconds, and bytes in pages of no zeros.

        Raises:
            DeviceFailure: a read failed.
        """
        seconds, data = 0.0, 0
        for start in range(each.offset, each.end, WINDOW_BYTES):
            window = Window((Range(start, min(WINDOW_BYTES, each.end - start)),))
            started = time.perf_counter()
            length = self._fill(window)
            seconds += time.perf_counter() - started
            data += len(without_zeros(window, bytes(self._room[:length]))[1])
        return seconds, data

    def write(self, window: Window, content: bytes) -> None:
        """Writes its ranges in order, then has the drive flush.

        Raises:
            DeviceFailure: a write or the flush failed.
        """
        assert window.length == len(content), "as many bytes as its ranges have"
        self._room[: len(content)] = content
        at = 0
        for offset, length in _requests(window):
            try:
                got = os.pwritev(self.fd, [self._room[at : at + length]], offset)
            except OSError as error:
                raise DeviceFailure(f"{self.path}: a write at byte {offset} failed") from error
            if got != length:
                raise DeviceFailure(f"{self.path}: a write at byte {offset} was short")
            at += length
        self.flush()

    def flush(self) -> None:
        """Has the drive keep what was written.

        Raises:
            DeviceFailure: it did not.
        """
        try:
            os.fdatasync(self.fd)
        except OSError as error:
            raise DeviceFailure(f"{self.path}: a flush failed") from error

    def generation(self, kind: str) -> str:
        """Tells two states of a file system apart: any use of it in between gives another.

        Raises:
            TargetError: its tool fails.
            DeviceFailure: a read failed.
        """
        return generation_of(self.superblock(), log_state(self.path, kind))

    def superblock(self) -> bytes:
        """The first bytes, past the page cache.

        Raises:
            DeviceFailure: a read failed.
        """
        try:
            got = os.preadv(self.fd, [self._room[:_SUPERBLOCK]], 0)
        except OSError as error:
            raise DeviceFailure(f"{self.path}: its first bytes cannot be read") from error
        if got != _SUPERBLOCK:
            raise DeviceFailure(f"{self.path}: the read of its first bytes was short")
        return bytes(self._room[:_SUPERBLOCK])

    def close(self) -> None:
        """Ends."""
        os.close(self.fd)


def family_of(superblock: bytes) -> tuple[str, str] | None:
    """What a file system is ("ext" for ext2, ext3, ext4, or "xfs") and its UUID, or None."""
    if superblock[:4] == b"XFSB":
        return "xfs", str(UUID(bytes=superblock[32:48]))
    if superblock[1080:1082] == b"\x53\xef":
        return "ext", str(UUID(bytes=superblock[1128:1144]))
    return None


def mount_of(superblock: bytes) -> str:
    """Which mount of an ext4 this is: its time, how many there were, the time of the last check."""
    own = superblock[1024:]
    return (own[44:48] + own[52:54] + own[64:68]).hex()


def was_live(superblock: bytes) -> bool:
    """Whether an ext4 went out mounted and not frozen: its journal is to be replayed."""
    (incompatible,) = struct.unpack_from("<L", superblock, 1024 + 96)
    return bool(incompatible & 0x4)


def generation_of(superblock: bytes, log: str) -> str:
    """As `DirectDevice.generation`, of what was read."""
    return hashlib.sha256(superblock + log.encode()).hexdigest()


def _requests(window: Window) -> list[tuple[int, int]]:
    return [
        (at, min(REQUEST_BYTES, each.end - at))
        for each in window.ranges
        for at in range(each.offset, each.end, REQUEST_BYTES)
    ]

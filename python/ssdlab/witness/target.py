"""What the witness writes to: a file or a block device by direct I/O, or a served twin.

A file and a block device are one class, for the same calls reach both; a twin that is served as a
network block device needs no root and no kernel driver (`nbd.py`).
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from pathlib import Path
from typing import Final, Literal, Protocol

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.storage_stack.blockdev import is_block_device, size_of
from ssdlab.storage_stack.in_use import file_in_use, in_use
from ssdlab.storage_stack.layers import devices_of_mount
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.storage_stack.space import room_for
from ssdlab.units import format_size
from ssdlab.witness.stamps import SECTOR, SECTORS_MAX

Sync = Literal["fsync", "fdatasync", "dsync", "fua", "none"]
SYNCS: Final[tuple[Sync, ...]] = ("fsync", "fdatasync", "dsync", "fua", "none")
"""How writes are made durable: a call after some of them, O_DSYNC, RWF_DSYNC a write, or not."""
EACH: Final = frozenset({"dsync", "fua"})
"""Those by which each write is durable when it returns."""
BUFFER: Final = SECTORS_MAX * SECTOR


class Target(Protocol):
    """What writers and verifiers need; each thread may call it. Sizes and offsets in bytes."""

    size_bytes: int
    block_bytes: int

    def write(self, offset: int, data: memoryview) -> None:
        """Writes; durable if the target was opened so.

        Raises:
            DeviceFailure: the device did not take it.
        """

    def flush(self) -> None:
        """All that was written before is durable.

        Raises:
            DeviceFailure: the device did not do it.
        """

    def read(self, offset: int, size: int) -> memoryview:
        """What stands there, from the device and not from memory.

        Raises:
            DeviceFailure: the device did not give it.
        """

    def close(self) -> None:
        """Ends."""


class PathTarget:
    """A file or block device; direct I/O where there is such, else the page cache is dropped."""

    def __init__(self, path: Path, sync: Sync, *, writes: bool = True) -> None:
        """Opens it.

        Raises:
            TargetError: it cannot be opened.
        """
        flags = os.O_CLOEXEC | (os.O_RDWR if writes else os.O_RDONLY)
        flags |= os.O_DSYNC if sync == "dsync" else 0
        flags |= os.O_EXCL if writes and is_block_device(path) else 0
        try:
            self._fd, self.is_direct = _open(path, flags)
        except OSError as error:
            raise TargetError(
                f"{path} cannot be opened ({error.strerror}): are you root?"
            ) from error
        self._sync = sync
        self._own = threading.local()
        self._is_device = is_block_device(path)
        whole = size_of(path) if self._is_device else os.fstat(self._fd).st_size
        least = SECTOR if self._is_device else _sector_under(path)
        self.block_bytes = self._smallest_block(least) if self.is_direct else SECTOR
        self.size_bytes = whole // self.block_bytes * self.block_bytes

    def write(self, offset: int, data: memoryview) -> None:
        """As `Target.write`."""
        buffer = self._aligned()
        buffer[: len(data)] = data
        flags = os.RWF_DSYNC if self._sync == "fua" else 0
        try:
            written = os.pwritev(self._fd, [buffer[: len(data)]], offset, flags)
        except OSError as error:
            raise DeviceFailure(f"a write at byte {offset} failed: {error.strerror}") from error
        if written != len(data):
            raise DeviceFailure(f"a write at byte {offset}: {written} of {len(data)} bytes")

    def flush(self) -> None:
        """As `Target.flush`."""
        call = os.fsync if self._sync == "fsync" else os.fdatasync
        try:
            call(self._fd)
        except OSError as error:
            raise DeviceFailure(f"a flush failed: {error.strerror}") from error

    def read(self, offset: int, size: int) -> memoryview:
        """As `Target.read`; the result is overwritten by the thread's next read or write."""
        buffer = self._aligned()
        if not self.is_direct:
            os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_DONTNEED)
        try:
            got = os.preadv(self._fd, [buffer[:size]], offset)
        except OSError as error:
            raise DeviceFailure(f"a read at byte {offset} failed: {error.strerror}") from error
        if got != size:
            raise DeviceFailure(f"a read at byte {offset}: {got} of {size} bytes")
        return buffer[:size]

    def close(self) -> None:
        """As `Target.close`."""
        os.close(self._fd)

    def _aligned(self) -> memoryview:
        """The thread's own buffer: direct I/O wants whole pages."""
        if not hasattr(self._own, "buffer"):
            self._own.buffer = memoryview(mmap.mmap(-1, BUFFER))
        buffer: memoryview = self._own.buffer
        return buffer

    def _smallest_block(self, least: int) -> int:
        """The device's sector: what direct I/O takes.

        A read of a file tells only where something was written: of what was not, any size is read.
        """
        for size in (each for each in (SECTOR, 4096) if each >= least):
            try:
                os.preadv(self._fd, [self._aligned()[:size]], size)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise TargetError(f"cannot be read ({error.strerror})") from error
            else:
                return size
        raise TargetError("direct I/O takes neither 512 nor 4096 bytes here")


def require_free(path: Path, *, destroy_data: bool) -> None:
    """Refuses a block device that holds something, unless that is meant.

    Raises:
        TargetError: not allowed, or in use.
    """
    if not destroy_data:
        raise TargetError(f"{path} is a block device and would lose its data: add --destroy-data")
    reasons = in_use(path)
    if reasons:
        raise TargetError(f"{path} must not be overwritten: {reasons[0]}")


def make_file(path: Path, size_bytes: int) -> None:
    """Makes a file of zeros with all its blocks; one that is there must have this size.

    Raises:
        TargetError: no room, or another file.
    """
    if path.exists():
        there = path.stat().st_size
        if there != size_bytes:
            raise TargetError(
                f"{path} has {there} bytes and --size is {size_bytes}; give its size, or a path "
                "that is free"
            )
        if reasons := file_in_use(path):
            raise TargetError(f"{path} must not be overwritten: {reasons[0]}")
        return
    if room_for(path.parent, size_bytes) < size_bytes:
        raise TargetError(f"{path.parent} has no room for {format_size(size_bytes)}: give --size")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TargetError(f"{path} cannot be made ({error.strerror})") from error
    try:
        os.posix_fallocate(fd, 0, size_bytes)
        os.fsync(fd)
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
    finally:
        os.close(fd)


def _sector_under(path: Path) -> int:
    """The largest sector of the devices under a file; 512 bytes where none is known."""
    devices = devices_of_mount(mount_of(path))
    return max([each.logical_sector or SECTOR for each in devices], default=SECTOR)


def _open(path: Path, flags: int) -> tuple[int, bool]:
    try:
        return os.open(path, flags | os.O_DIRECT), True
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, flags), False

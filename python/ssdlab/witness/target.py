"""Targets of the witness: a file or block device with direct I/O. For a served twin see `nbd.py`.

One class serves files and block devices, because the system calls are the same.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from pathlib import Path
from typing import Final, Protocol

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.storage_stack.blockdev import is_block_device, size_of
from ssdlab.storage_stack.in_use import file_in_use, in_use
from ssdlab.storage_stack.layers import devices_of_mount
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.storage_stack.space import room_for
from ssdlab.units import format_size
from ssdlab.witness.limits import SECTOR, SECTORS_MAX, Sync

BUFFER_BYTES: Final = SECTORS_MAX * SECTOR


class Target(Protocol):
    """A region that threads write and read. Sizes and offsets are in bytes."""

    size_bytes: int
    block_bytes: int

    def write(self, offset: int, data: memoryview) -> None:
        """Writes; durable on return if `sync` is dsync or fua.

        Raises:
            DeviceFailure: the write failed.
        """

    def flush(self) -> None:
        """Makes all completed writes durable.

        Raises:
            DeviceFailure: the flush failed.
        """

    def read(self, offset: int, size: int) -> memoryview:
        """Reads from the device, not from the page cache.

        Raises:
            DeviceFailure: the read failed.
        """

    def close(self) -> None:
        """Closes the target."""


class PathTarget:
    """A file or block device; if direct I/O is not possible, reads drop the page cache first."""

    def __init__(self, path: Path, sync: Sync, *, writes: bool = True) -> None:
        """Opens the file or device; a device to be written is opened exclusively.

        Raises:
            TargetError: it cannot be opened.
        """
        flags = os.O_CLOEXEC | (os.O_RDWR if writes else os.O_RDONLY)
        flags |= os.O_DSYNC if sync == "dsync" else 0
        flags |= os.O_EXCL if writes and is_block_device(path) else 0
        try:
            self._fd, self.is_direct = _open(path, flags)
        except OSError as error:
            raise TargetError(f"{path} cannot be opened ({error.strerror}); try as root") from error
        self._sync = sync
        self._thread = threading.local()
        is_device = is_block_device(path)
        size = size_of(path) if is_device else os.fstat(self._fd).st_size
        sector = SECTOR if is_device else _sector_of_devices(path)
        self.block_bytes = self._smallest_direct_block(sector) if self.is_direct else SECTOR
        self.size_bytes = size // self.block_bytes * self.block_bytes

    def write(self, offset: int, data: memoryview) -> None:
        """As `Target.write`."""
        buffer = self._buffer()
        buffer[: len(data)] = data
        flags = os.RWF_DSYNC if self._sync == "fua" else 0
        try:
            written = os.pwritev(self._fd, [buffer[: len(data)]], offset, flags)
        except OSError as error:
            raise DeviceFailure(f"a write at byte {offset} failed: {error.strerror}") from error
        if written != len(data):
            raise DeviceFailure(f"a write at byte {offset} wrote {written} of {len(data)} bytes")

    def flush(self) -> None:
        """As `Target.flush`."""
        call = os.fsync if self._sync == "fsync" else os.fdatasync
        try:
            call(self._fd)
        except OSError as error:
            raise DeviceFailure(f"a flush failed: {error.strerror}") from error

    def read(self, offset: int, size: int) -> memoryview:
        """As `Target.read`; the thread's next read or write overwrites the result."""
        buffer = self._buffer()
        if not self.is_direct:
            os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_DONTNEED)
        try:
            got = os.preadv(self._fd, [buffer[:size]], offset)
        except OSError as error:
            raise DeviceFailure(f"a read at byte {offset} failed: {error.strerror}") from error
        if got != size:
            raise DeviceFailure(f"a read at byte {offset} returned {got} of {size} bytes")
        return buffer[:size]

    def close(self) -> None:
        """As `Target.close`."""
        os.close(self._fd)

    def _buffer(self) -> memoryview:
        """The thread's buffer, aligned to pages for direct I/O."""
        if not hasattr(self._thread, "buffer"):
            self._thread.buffer = memoryview(mmap.mmap(-1, BUFFER_BYTES))
        buffer: memoryview = self._thread.buffer
        return buffer

    def _smallest_direct_block(self, sector: int) -> int:
        """The smallest block that direct I/O accepts, at least `sector` bytes.

        A trial read alone is not enough for a file: unwritten extents accept any size.
        """
        for size in (each for each in (SECTOR, 4096) if each >= sector):
            try:
                os.preadv(self._fd, [self._buffer()[:size]], size)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise TargetError(f"cannot be read ({error.strerror})") from error
            else:
                return size
        raise TargetError("direct I/O accepts neither 512 nor 4096 bytes here")


def require_unused(path: Path, *, destroy_data: bool) -> None:
    """Refuses to overwrite a block device without --destroy-data, or one that is in use.

    Raises:
        TargetError: the reason.
    """
    if not destroy_data:
        raise TargetError(f"{path} is a block device and would lose its data: add --destroy-data")
    reasons = in_use(path)
    if reasons:
        raise TargetError(f"{path} must not be overwritten: {reasons[0]}")


def make_file(path: Path, size_bytes: int) -> None:
    """Creates a file with all blocks allocated; an existing one must have this size.

    Raises:
        TargetError: no space, another size, or the file is in use.
    """
    if path.exists():
        existing = path.stat().st_size
        if existing != size_bytes:
            raise TargetError(
                f"{path} has {existing} bytes and --size is {size_bytes}; give its size, or "
                "another path"
            )
        if reasons := file_in_use(path):
            raise TargetError(f"{path} must not be overwritten: {reasons[0]}")
        return
    if room_for(path.parent, size_bytes) < size_bytes:
        raise TargetError(
            f"{path.parent} has no space for {format_size(size_bytes)}; give a smaller --size"
        )
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TargetError(f"{path} cannot be created ({error.strerror})") from error
    try:
        os.posix_fallocate(fd, 0, size_bytes)
        os.fsync(fd)
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        os.fsync(folder)
        os.close(folder)
    finally:
        os.close(fd)


def _sector_of_devices(path: Path) -> int:
    """The largest logical sector of the devices under a file; 512 bytes if unknown."""
    devices = devices_of_mount(mount_of(path))
    return max([device.logical_sector or SECTOR for device in devices], default=SECTOR)


def _open(path: Path, flags: int) -> tuple[int, bool]:
    try:
        return os.open(path, flags | os.O_DIRECT), True
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.open(path, flags), False

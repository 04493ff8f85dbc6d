"""Other file systems: a complete copy replaces the file, only while no other program has it open.

The kernel grants a write lease (fcntl F_SETLEASE) only if no other program has the file open or
mapped. A program that opens it later waits; heal notices that and gives up. The copy and the file
exchange their names atomically (renameat2 RENAME_EXCHANGE). The old file is removed only if no
program has opened it by then. The copy has the same content, holes, preallocated space, owner,
mode, times, extended attributes, ACLs and chattr attributes. Trap: XFS itself also preallocates
beyond the end for a while; only space that a program preallocated is kept (FS_XFLAG_PREALLOC,
ioctl_xfs_fsgetxattr(2)).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.methods.rewriter import RewriteResult
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.extents import ExtentFlag, read_extents
from ssdlab.storage_stack.leftovers import remove_if_unlocked

_NAME: Final = re.compile(r"\.ssdlab-heal-[0-9a-f]{12}\.tmp")
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_AT_FDCWD: Final = -100
_GETFLAGS: Final = 0x80086601
_SETFLAGS: Final = 0x40086602
_FSGETXATTR: Final = 0x801C581F
_PREALLOC: Final = 0x2
_KEEP_SIZE: Final = 0x1  # FALLOC_FL_KEEP_SIZE
_COPIED_FLAGS: Final = 0x80_00C8  # sync, nodump, noatime, no copy on write
_SIGNALS: Final = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
COPY_BYTES: Final = 1 << 20
GRACE_S: Final = 0.2
"""By then, a program that looked up the old file just before the exchange has met its lease."""


class FileInUse(Exception):  # noqa: N818 -- not an error: the file is left unchanged
    """Another program has the file open, or is about to open it."""


class Copy:
    """Replaces a file by a copy."""

    def __init__(self, path: Path, *, is_xfs: bool) -> None:
        self._path, self._is_xfs = path, is_xfs

    def rewrite(self, chunk: Range) -> RewriteResult:
        """As `Rewriter.rewrite`; `chunk` is the whole file."""
        # The kernel reports a waiting opener with SIGIO, which would end the process.
        previous = signal.signal(signal.SIGIO, lambda _number, _frame: None)
        try:
            written = self._replace()
        except FileInUse as reason:
            return RewriteResult(0, 0, (chunk,), str(reason))
        except OSError as error:
            raise DeviceFailure(
                f"{self._path} could not be copied ({error.strerror}); it is unchanged"
            ) from error
        finally:
            signal.signal(signal.SIGIO, previous)
        return RewriteResult(chunk.length, written)

    def close(self) -> None:
        """Does nothing: no file stays open between two calls."""

    def _replace(self) -> int:
        fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            _take_lease(fd)
            status = os.fstat(fd)
            if status.st_nlink != 1:
                raise FileInUse("it has several names, and a copy would replace only one")
            temporary, copy = _create_temporary(self._path.parent)
            try:
                written = _copy_content(fd, copy, is_xfs=self._is_xfs)
                _copy_metadata(fd, copy, status)
                os.fsync(copy)
                self._exchange(fd, copy, temporary)
            finally:
                # Closed even if the unlink fails: a lease that outlives this call would end the
                # process with SIGIO as soon as another program opens the file.
                os.close(copy)
                temporary.unlink(missing_ok=True)
            _sync_directory(self._path.parent)
            return written
        finally:
            os.close(fd)

    def _exchange(self, fd: int, copy: int, temporary: Path) -> None:
        """Gives the copy the file's name; undoes that if another program opens the file."""
        _take_lease(copy)
        # Signals are blocked: an interruption must not leave the old file under the temporary name.
        previous = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._check_same(fd)
            _exchange_names(temporary, self._path)
            try:
                _sync_directory(self._path.parent)
                time.sleep(GRACE_S)
                _check_lease(fd)
            except BaseException:
                _exchange_names(temporary, self._path)
                _sync_directory(self._path.parent)
                raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)

    def _check_same(self, fd: int) -> None:
        _check_lease(fd)
        named, opened = self._path.lstat(), os.fstat(fd)
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino) or opened.st_nlink != 1:
            raise FileInUse("it was replaced by another file")


def remove_leftovers(directory: Path) -> list[Path]:
    """Removes the copies that a killed run left in a directory; returns their paths.

    It keeps copies that are in use, which are locked, and other users' copies.
    """
    return [
        path
        for path in sorted(directory.iterdir())
        if _NAME.fullmatch(path.name) and remove_if_unlocked(path, root_may=True)
    ]


def _take_lease(fd: int) -> None:
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise FileInUse("another program has it open") from error
        raise


def _check_lease(fd: int) -> None:
    if fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_WRLCK:
        raise FileInUse("another program is opening it")


def _create_temporary(directory: Path) -> tuple[Path, int]:
    path = directory / f".ssdlab-heal-{secrets.token_hex(6)}.tmp"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        raise TargetError(
            f"{directory} takes no new file ({error.strerror}): run heal as its owner or as root"
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except BaseException:
        os.close(fd)
        path.unlink()
        raise
    return path, fd


def _copy_content(fd: int, copy: int, *, is_xfs: bool) -> int:
    """Copies the data in order, reads the copy back and compares it; returns the bytes copied."""
    size = os.fstat(fd).st_size
    os.ftruncate(copy, size)
    written = 0
    for start, end in _data_ranges(fd, size):
        os.posix_fallocate(copy, start, end - start)
        for offset in range(start, end, COPY_BYTES):
            _check_lease(fd)
            written += _write(copy, os.pread(fd, min(COPY_BYTES, end - offset), offset), offset)
    for start, length in _unwritten_ranges(fd, size, is_xfs=is_xfs):
        _preallocate(copy, start, length)
    os.fdatasync(copy)
    os.posix_fadvise(copy, 0, 0, os.POSIX_FADV_DONTNEED)
    for offset in range(0, size, COPY_BYTES):
        _check_lease(fd)
        if os.pread(fd, COPY_BYTES, offset) != os.pread(copy, COPY_BYTES, offset):
            raise OSError(errno.EIO, "the copy differs when read back")
    return written


def _write(fd: int, content: bytes, offset: int) -> int:
    written = 0
    while written < len(content):
        written += os.pwrite(fd, content[written:], offset + written)
    return written


def _data_ranges(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """The (start, end) ranges of a file that are not holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(fd, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(fd, start, os.SEEK_HOLE)
        yield start, end


def _unwritten_ranges(fd: int, size: int, *, is_xfs: bool) -> list[tuple[int, int]]:
    """The (offset, length) ranges with blocks that were never written, also beyond the end."""
    beyond = not is_xfs
    if is_xfs:
        attributes = fcntl.ioctl(fd, _FSGETXATTR, bytes(28))
        beyond = bool(int.from_bytes(attributes[:4], "little") & _PREALLOC)
    return [
        (extent.logical, extent.length)
        for extent in read_extents(fd) or ()
        if ExtentFlag.UNWRITTEN in extent.flags and (extent.logical < size or beyond)
    ]


def _preallocate(fd: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, _KEEP_SIZE, ctypes.c_int64(offset), ctypes.c_int64(length)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _copy_metadata(fd: int, copy: int, status: os.stat_result) -> None:
    """Copies owner, mode, extended attributes and flags, and finally the times."""
    os.fchown(copy, status.st_uid, status.st_gid)
    os.fchmod(copy, stat.S_IMODE(status.st_mode))
    for name in os.listxattr(fd):
        os.setxattr(copy, name, os.getxattr(fd, name))
    _copy_flags(fd, copy)
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_flags(fd: int, copy: int) -> None:
    try:
        source = int.from_bytes(fcntl.ioctl(fd, _GETFLAGS, bytes(8))[:4], "little")
        current = int.from_bytes(fcntl.ioctl(copy, _GETFLAGS, bytes(8))[:4], "little")
    except OSError:  # this file system has no flags
        return
    new = current & ~_COPIED_FLAGS | source & _COPIED_FLAGS
    if new != current:
        fcntl.ioctl(copy, _SETFLAGS, new.to_bytes(8, "little"))


def _exchange_names(one: Path, other: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    names = (os.fsencode(one), os.fsencode(other))
    if libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

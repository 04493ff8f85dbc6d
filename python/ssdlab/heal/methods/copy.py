"""Any other file system: a whole copy takes the file's place, only while nobody has the file open.

A write lease (fcntl F_SETLEASE) is had only where nobody else has the file open or mapped; whoever
opens it then waits, and we see that and give up. The copy and the file exchange their names in one
step (renameat2 RENAME_EXCHANGE); only when still nobody has come is the old one removed. Copied:
content with its holes, reserved space, owner, mode, times, extended attributes and ACLs, attributes
(chattr). Trap: XFS also reserves beyond the end by itself, for a while; only what a program
reserved is kept (FS_XFLAG_PREALLOC, ioctl_xfs_fsgetxattr(2)).
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
from ssdlab.heal.methods.rewriter import Rewritten
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.extents import ExtentFlag, read_extents

_NAME: Final = re.compile(r"\.ssdlab-heal-[0-9a-f]{12}\.tmp")
_EXCHANGE: Final = 2  # RENAME_EXCHANGE
_AT_FDCWD: Final = -100
_GETFLAGS: Final = 0x80086601
_SETFLAGS: Final = 0x40086602
_FSGETXATTR: Final = 0x801C581F
_PREALLOC: Final = 0x2
_KEEP_SIZE: Final = 0x1  # FALLOC_FL_KEEP_SIZE
_KEPT_FLAGS: Final = 0x80_00C8  # sync, nodump, noatime, no copy on write
_SIGNALS: Final = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
PIECE: Final = 1 << 20
GRACE_S: Final = 0.2
"""An opener that found the old file just before the exchange has come to its lease by then."""


class InUse(Exception):  # noqa: N818 -- not an error: the file is left as it is
    """Somebody else has the file open, or wants to."""


class Copy:
    """A file opened for a copy that takes its place."""

    def __init__(self, path: Path, *, is_xfs: bool) -> None:
        self._path, self._is_xfs = path, is_xfs

    def rewrite(self, chunk: Range) -> Rewritten:
        """As `Rewriter.rewrite`; `chunk` is the whole file."""
        # The kernel tells of a waiting opener by SIGIO, which would end the process.
        earlier = signal.signal(signal.SIGIO, lambda _number, _frame: None)
        try:
            written = self._replace()
        except InUse as reason:
            return Rewritten(0, 0, (chunk,), str(reason))
        except OSError as error:
            raise DeviceFailure(
                f"{self._path} could not be copied ({error.strerror}); it is as it was"
            ) from error
        finally:
            signal.signal(signal.SIGIO, earlier)
        return Rewritten(chunk.length, written)

    def close(self) -> None:
        """As `Rewriter.close`: nothing is held between two calls."""

    def _replace(self) -> int:
        fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            _lease(fd)
            status = os.fstat(fd)
            if status.st_nlink != 1:
                raise InUse("it has several names, which a copy would part")
            temporary, copy = _named_copy(self._path.parent)
            try:
                written = _fill(fd, copy, is_xfs=self._is_xfs)
                _dress(fd, copy, status)
                os.fsync(copy)
                self._exchange(fd, copy, temporary)
            finally:
                # Closed even if the name stays: a lease that outlives this call would end the
                # process by SIGIO as soon as somebody opens the file.
                os.close(copy)
                temporary.unlink(missing_ok=True)
            _sync_directory(self._path.parent)
            return written
        finally:
            os.close(fd)

    def _exchange(self, fd: int, copy: int, temporary: Path) -> None:
        """Lets the copy take the name; takes that back where somebody came meanwhile."""
        _lease(copy)
        # Between the exchange and its end no signal: the old file must not go unseen.
        earlier = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
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
            signal.pthread_sigmask(signal.SIG_SETMASK, earlier)

    def _check_same(self, fd: int) -> None:
        _check_lease(fd)
        named, held = self._path.lstat(), os.fstat(fd)
        if (named.st_dev, named.st_ino) != (held.st_dev, held.st_ino) or held.st_nlink != 1:
            raise InUse("its name went to another file meanwhile")


def remove_leftovers(directory: Path) -> list[Path]:
    """Removes copies that a killed run left in a directory; returns which.

    One in use is locked and stays, and so does another user's.
    """
    return [
        path
        for path in sorted(directory.iterdir())
        if _NAME.fullmatch(path.name) and _remove_if_left(path)
    ]


def _remove_if_left(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or os.geteuid() not in (0, status.st_uid):
            return False
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def _lease(fd: int) -> None:
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise InUse("somebody has it open") from error
        raise


def _check_lease(fd: int) -> None:
    if fcntl.fcntl(fd, fcntl.F_GETLEASE) != fcntl.F_WRLCK:
        raise InUse("somebody wants to open it")


def _named_copy(directory: Path) -> tuple[Path, int]:
    path = directory / f".ssdlab-heal-{secrets.token_hex(6)}.tmp"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        raise TargetError(
            f"{directory} takes no copy ({error.strerror}): heal it as its owner or as root"
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except BaseException:
        os.close(fd)
        path.unlink()
        raise
    return path, fd


def _fill(fd: int, copy: int, *, is_xfs: bool) -> int:
    """Copies what is there, in order, and compares what then stands on the drive; returns bytes."""
    size = os.fstat(fd).st_size
    os.ftruncate(copy, size)
    written = 0
    for start, end in _filled(fd, size):
        os.posix_fallocate(copy, start, end - start)
        for offset in range(start, end, PIECE):
            _check_lease(fd)
            written += _write(copy, os.pread(fd, min(PIECE, end - offset), offset), offset)
    for start, length in _reserved(fd, size, is_xfs=is_xfs):
        _reserve(copy, start, length)
    os.fdatasync(copy)
    os.posix_fadvise(copy, 0, 0, os.POSIX_FADV_DONTNEED)
    for offset in range(0, size, PIECE):
        _check_lease(fd)
        if os.pread(fd, PIECE, offset) != os.pread(copy, PIECE, offset):
            raise OSError(errno.EIO, "the copy reads back otherwise")
    return written


def _write(fd: int, content: bytes, offset: int) -> int:
    put = 0
    while put < len(content):
        put += os.pwrite(fd, content[put:], offset + put)
    return put


def _filled(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """Parts of a file that are no hole."""
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


def _reserved(fd: int, size: int, *, is_xfs: bool) -> list[tuple[int, int]]:
    """Ranges (offset, length) that have blocks but were never written, also beyond the end."""
    beyond = not is_xfs
    if is_xfs:
        told = fcntl.ioctl(fd, _FSGETXATTR, bytes(28))
        beyond = bool(int.from_bytes(told[:4], "little") & _PREALLOC)
    return [
        (extent.logical, extent.length)
        for extent in read_extents(fd) or ()
        if ExtentFlag.UNWRITTEN in extent.flags and (extent.logical < size or beyond)
    ]


def _reserve(fd: int, offset: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, _KEEP_SIZE, ctypes.c_int64(offset), ctypes.c_int64(length)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _dress(fd: int, copy: int, status: os.stat_result) -> None:
    """Gives the copy all that the file has besides content; times last."""
    os.fchown(copy, status.st_uid, status.st_gid)
    os.fchmod(copy, stat.S_IMODE(status.st_mode))
    for name in os.listxattr(fd):
        os.setxattr(copy, name, os.getxattr(fd, name))
    _keep_flags(fd, copy)
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))


def _keep_flags(fd: int, copy: int) -> None:
    try:
        wanted = int.from_bytes(fcntl.ioctl(fd, _GETFLAGS, bytes(8))[:4], "little")
        has = int.from_bytes(fcntl.ioctl(copy, _GETFLAGS, bytes(8))[:4], "little")
    except OSError:  # this file system has none
        return
    new = has & ~_KEPT_FLAGS | wanted & _KEPT_FLAGS
    if new != has:
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

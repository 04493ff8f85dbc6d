"""Makes the Nth system call of a heal fail.

It replaces the functions of `os`, `fcntl` and the C library that heal calls; calls from other
modules are not affected. The counter is in shared memory, so that it includes forked processes. A
failing write to a device leaves garbage in its first page, as a drive can. Not covered: calls of
the native module (measurements, syncfs), and close(2).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

SHORT = 0
"""Not an errno: the read or write transfers half of the requested bytes."""
FAULTS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EINTR": errno.EINTR, "short": SHORT}
_OS = (
    "open", "pread", "preadv", "pwrite", "pwritev", "fsync", "fdatasync", "ftruncate", "fstat",
    "posix_fallocate", "posix_fadvise", "lseek", "unlink", "rename", "fchown", "fchmod", "utime",
    "listxattr", "pipe", "fork", "pidfd_open", "write",
)  # fmt: skip
_FCNTL = ("ioctl", "fcntl", "flock")
_LIBC = ("renameat2", "sync_file_range", "fallocate", "syscall")
_TRANSFERS = {"pread", "preadv", "pwrite", "pwritev"}
_HEAL = ("ssdlab.heal", "ssdlab.storage_stack.extents")
_LIBRARY = {"pathlib", "contextlib", __name__}


class Injection:
    """Counts the calls of a heal; call number `at`, from 0, fails with `fault`."""

    def __init__(self, at: int = -1, fault: int = errno.EIO) -> None:
        self.at, self.fault = at, fault
        self._count = mmap.mmap(-1, 8)
        self.names: list[str] = []

    @property
    def count(self) -> int:
        """Calls so far, in all processes."""
        return int(struct.unpack("=Q", self._count[:8])[0])

    @property
    def happened(self) -> bool:
        """Whether the fault was injected."""
        return self.count > self.at

    def fails(self, name: str) -> bool:
        """Counts a call; returns whether it must fail."""
        number = self.count
        self._count[:8] = struct.pack("=Q", number + 1)
        self.names.append(name)
        return number == self.at

    def call(self, name: str, real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Makes the call, or lets it fail."""
        if not _by_heal() or not self.fails(name):
            return real(*arguments, **named)
        if self.fault == SHORT and name in _TRANSFERS:
            return real(arguments[0], _half(arguments[1]), *arguments[2:])
        number = self.fault or errno.EIO
        if name == "pwritev":  # only devices: files and the journal are written with `pwrite`
            garbage = memoryview(mmap.mmap(-1, 4096))
            garbage[:] = b"\xaa" * 4096
            real(arguments[0], [garbage], *arguments[2:])
        if name in _LIBC:
            ctypes.set_errno(number)
            return -1
        raise OSError(number, os.strerror(number))


def _half(request: Any) -> Any:
    """Half of a length, of bytes, or of a list of one buffer; whole pages if there are two."""
    if isinstance(request, int):
        return request // 2
    buffer = request[0] if isinstance(request, list) else request
    length = len(buffer) // 2
    part = buffer[: length // 4096 * 4096 or length]
    return [part] if isinstance(request, list) else part


def _by_heal() -> bool:
    frame = sys._getframe(2)
    while frame.f_globals.get("__name__") in _LIBRARY:
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).startswith(_HEAL)


class _Library:
    """The C library, with some of its functions counted."""

    def __init__(self, injection: Injection, real: ctypes.CDLL) -> None:
        self._injection, self._real = injection, real

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if name not in _LIBC:
            return real
        return lambda *arguments: self._injection.call(name, real, *arguments)


@contextmanager
def injected(at: int = -1, fault: int = errno.EIO) -> Iterator[Injection]:
    """Counts the calls of heal inside the block; call number `at` fails."""
    injection, library = Injection(at, fault), ctypes.CDLL

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **named: injection.call(name, real, *arguments, **named)

    def loaded(*arguments: Any, **named: Any) -> Any:
        real = library(*arguments, **named)
        return _Library(injection, real) if _by_heal() else real

    with ExitStack() as undo:
        for module, names in ((os, _OS), (fcntl, _FCNTL)):
            for name in names:
                undo.enter_context(patch.object(module, name, wrapped(name, getattr(module, name))))
        undo.enter_context(patch.object(ctypes, "CDLL", loaded))
        yield injection

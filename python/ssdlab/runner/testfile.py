"""The test file in a directory: made, locked while in use, always removed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ssdlab.errors import TargetError
from ssdlab.units import format_size

_NAME: Final = re.compile(r"ssdlab-test-[0-9a-f]{12}\.tmp")


class TestFile:
    """A preallocated file that is gone when the block ends, however it ends.

    While it is in use it is locked (flock). One that a killed run left behind is not, and the
    next run in the same directory removes it.
    """

    __test__ = False  # not a test for pytest to collect

    def __init__(self, directory: Path, size_bytes: int) -> None:
        """Makes the file and reserves its space.

        Raises:
            TargetError: the directory takes no file, or not one of this size.
        """
        self.path, self._fd = _locked_file(directory)
        try:
            _reserve(self._fd, directory, size_bytes)
        except BaseException:
            self.remove()
            raise

    @property
    def fd(self) -> int:
        """Its descriptor, for questions about its extents and cached pages."""
        return self._fd

    def remove(self) -> None:
        """Removes the file; its space is free when the last descriptor is closed."""
        self.path.unlink(missing_ok=True)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        """The file itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Removes it."""
        self.remove()


def _locked_file(directory: Path) -> tuple[Path, int]:
    """A new, empty, locked file that is still there.

    Before its lock is taken, another run may hold it for a leftover: then it makes another one.
    """
    while True:
        path = directory / f"ssdlab-test-{secrets.token_hex(6)}.tmp"
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(path, flags, 0o600)
        except OSError as error:
            raise TargetError(
                f"{directory}: no test file can be made there ({error.strerror}); give a directory "
                "that you may write to"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            is_there = os.fstat(fd).st_nlink > 0
        except BaseException:
            path.unlink(missing_ok=True)
            os.close(fd)
            raise
        if is_there:
            return path, fd
        os.close(fd)


def remove_leftovers(directory: Path) -> list[Path]:
    """Removes test files that killed runs left in a directory; returns which.

    A file that a running ssdlab holds is locked and stays; so does what is no plain file or
    belongs to another user.
    """
    return [path for path in files_in_use(directory) if _remove_if_left(path)]


def files_in_use(directory: Path) -> list[Path]:
    """Files in a directory that are named as test files.

    Those of running ssdlabs, once what killed runs left has been removed.
    """
    return [path for path in sorted(directory.iterdir()) if _NAME.fullmatch(path.name)]


def _remove_if_left(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return False
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def _reserve(fd: int, directory: Path, size_bytes: int) -> None:
    try:
        os.posix_fallocate(fd, 0, size_bytes)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EINVAL):
            os.ftruncate(fd, size_bytes)
            return
        raise TargetError(
            f"{directory}: no room for a test file of {format_size(size_bytes)} "
            f"({error.strerror}); give a smaller --size or another directory"
        ) from error

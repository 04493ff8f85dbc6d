"""The test file in a directory: created, locked while in use, always removed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ssdlab.errors import TargetError
from ssdlab.storage_stack.leftovers import remove_if_unlocked
from ssdlab.units import format_size

_NAME: Final = re.compile(r"ssdlab-test-[0-9a-f]{12}\.tmp")


class TestFile:
    """A preallocated file, removed at the end of the `with` block.

    It is locked (flock) while in use. A file that a killed run left behind is not locked, and the
    next run in the directory removes it.
    """

    __test__ = False  # not a test for pytest to collect

    def __init__(self, directory: Path, size_bytes: int) -> None:
        """Creates the file and reserves its space.

        Raises:
            TargetError: no file can be created, or there is not enough space.
        """
        self.path, self._fd = _locked_file(directory)
        try:
            _reserve(self._fd, directory, size_bytes)
        except BaseException:
            self.remove()
            raise

    @property
    def fd(self) -> int:
        """An open descriptor, to query extents and cached pages."""
        return self._fd

    def remove(self) -> None:
        """Removes the file; its space is freed when the last descriptor is closed."""
        self.path.unlink(missing_ok=True)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        """Returns the file."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Removes the file."""
        self.remove()


def _locked_file(directory: Path) -> tuple[Path, int]:
    """Creates and locks an empty file.

    Between creation and lock another run may remove the file as a leftover; then try again.
    """
    while True:
        path = directory / f"ssdlab-test-{secrets.token_hex(6)}.tmp"
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(path, flags, 0o600)
        except OSError as error:
            raise TargetError(
                f"{directory}: no test file can be created there ({error.strerror}); give a "
                "directory that you can write to"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            exists = os.fstat(fd).st_nlink > 0
        except BaseException:
            path.unlink(missing_ok=True)
            os.close(fd)
            raise
        if exists:
            return path, fd
        os.close(fd)


def remove_leftovers(directory: Path) -> list[Path]:
    """Removes and returns the test files that killed runs left in a directory.

    Keeps files locked by a running ssdlab, files of other users, and anything that is not a
    regular file.
    """
    return [path for path in files_in_use(directory) if remove_if_unlocked(path)]


def files_in_use(directory: Path) -> list[Path]:
    """Paths named like test files. After `remove_leftovers` running ssdlab processes own them."""
    return [path for path in sorted(directory.iterdir()) if _NAME.fullmatch(path.name)]


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

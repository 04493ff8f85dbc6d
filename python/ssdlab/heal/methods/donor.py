"""A donor: a file without a name that gives its blocks away, gone with its descriptor.

Even after a kill or a power cut: the kernel frees what has neither name nor user (O_TMPFILE).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ssdlab.errors import TargetError
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.attributes import Attribute
from ssdlab.storage_stack.extents import merged, read_extents

_FS_IOC_SETFLAGS: Final = 0x40086602
FRAGMENT_LEAST: Final = 4 << 20
"""Fragments of this size are good enough: what counts is that they are written in order."""
_NOT_HERE: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)


class Donor:
    """Blocks on the file system of a directory."""

    def __init__(self, directory: Path, attributes: Attribute | None = None) -> None:
        """Makes it, empty.

        Raises:
            TargetError: the directory takes no such file.
        """
        flags = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC | os.O_DIRECT
        try:
            self.fd = os.open(directory, flags, 0o600)
        except OSError as error:
            what = "unnamed files" if error.errno in _NOT_HERE else "a file of yours"
            raise TargetError(
                f"{directory} takes no {what} ({error.strerror}): heal it as its owner or as root"
            ) from error
        # btrfs shares no blocks between files with checksums and without.
        if attributes is not None and Attribute.NO_COPY_ON_WRITE in attributes:
            wanted = struct.pack("=L4x", int(Attribute.NO_COPY_ON_WRITE))
            try:
                fcntl.ioctl(self.fd, _FS_IOC_SETFLAGS, wanted)
            except OSError:
                os.close(self.fd)
                raise

    def reserve(self, offset: int, length: int) -> int:
        """Takes blocks for a range, written to yet or not; returns in how many fragments.

        Raises:
            OSError: ENOSPC.
        """
        os.posix_fallocate(self.fd, offset, length)
        return len(merged(read_extents(self.fd, offset, length, sync=False) or ()))

    def suits(self, fd: int, part: Range, offset: int) -> bool:
        """Takes blocks from `offset` on for a part of a file; whether they lie well enough.

        In no more fragments than the file's own, or in large ones.

        Raises:
            OSError: ENOSPC.
        """
        now = len(merged(read_extents(fd, part.offset, part.length) or ()))
        return self.reserve(offset, part.length) <= max(now, part.length // FRAGMENT_LEAST, 2)

    def give_back(self) -> None:
        """Frees what blocks it has, at once."""
        os.ftruncate(self.fd, 0)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Frees it."""
        os.close(self.fd)

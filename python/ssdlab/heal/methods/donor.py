"""A donor: an unnamed file (O_TMPFILE) that provides newly allocated blocks.

The kernel frees its blocks when the descriptor is closed, also after a kill or a power cut.
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
LARGE_FRAGMENT_BYTES: Final = 4 << 20
"""Fragments of this size are acceptable: what matters is that they are written in order."""
_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)


class Donor:
    """An unnamed file on the file system of a directory."""

    def __init__(self, directory: Path, attributes: Attribute | None = None) -> None:
        """Creates the file, empty.

        Raises:
            TargetError: it cannot be created in this directory.
        """
        flags = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC | os.O_DIRECT
        try:
            self.fd = os.open(directory, flags, 0o600)
        except OSError as error:
            what = "unnamed files (O_TMPFILE)" if error.errno in _UNSUPPORTED else "new files"
            raise TargetError(
                f"{directory} takes no {what} ({error.strerror}): run heal as its owner or as root"
            ) from error
        # btrfs does not share blocks between files with and without checksums.
        if attributes is not None and Attribute.NO_COPY_ON_WRITE in attributes:
            wanted = struct.pack("=L4x", int(Attribute.NO_COPY_ON_WRITE))
            try:
                fcntl.ioctl(self.fd, _FS_IOC_SETFLAGS, wanted)
            except OSError:
                os.close(self.fd)
                raise

    def allocate(self, offset: int, length: int) -> int:
        """Allocates blocks for a range; returns the number of fragments.

        Raises:
            OSError: ENOSPC.
        """
        os.posix_fallocate(self.fd, offset, length)
        return len(merged(read_extents(self.fd, offset, length, sync=False) or ()))

    def allocate_for(self, fd: int, part: Range, offset: int) -> bool:
        """Allocates blocks at `offset` for a part of a file; False if they are too fragmented.

        They are not if they have at most as many fragments as the file's own blocks, or large ones.

        Raises:
            OSError: ENOSPC.
        """
        current = len(merged(read_extents(fd, part.offset, part.length) or ()))
        fragments = self.allocate(offset, part.length)
        return fragments <= max(current, part.length // LARGE_FRAGMENT_BYTES, 2)

    def free_blocks(self) -> None:
        """Frees all its blocks."""
        os.ftruncate(self.fd, 0)

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it, which frees its blocks."""
        os.close(self.fd)

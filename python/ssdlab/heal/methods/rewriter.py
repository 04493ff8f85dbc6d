"""The interface of the rewriting methods, and the unnamed file that provides new blocks."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from ssdlab.errors import TargetError
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.extents import merged, read_extents
from ssdlab.storage_stack.file_info import Attribute, FileInfo

FRAGMENTED: Final = "free space is more fragmented than the file"
_FS_IOC_SETFLAGS: Final = 0x40086602
LARGE_FRAGMENT_BYTES: Final = 4 << 20
"""Fragments of this size are acceptable: what matters is that they are written in order."""
_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The result of rewriting one range.

    `moved_bytes` have new blocks. `written_bytes` went to the drive: more, if a concurrent writer
    made a second copy necessary. `left` has the parts that keep their old blocks; `reason`: why.
    """

    moved_bytes: int
    written_bytes: int
    left: tuple[Range, ...] = ()
    reason: str = ""


class Rewriter(Protocol):
    """A file opened for rewriting. Its content is preserved, also with concurrent writers."""

    def rewrite(self, chunk: Range) -> RewriteResult:
        """Moves a range of whole blocks to new blocks; returns after the data is on the drive.

        Raises:
            DeviceFailure: the kernel refused or the drive failed; the content is unchanged.
        """

    def close(self) -> None:
        """Closes the file; no other file is left behind."""


def open_same_file(info: FileInfo, flags: int = 0) -> int:
    """Opens the file that `info` describes for reading and writing; returns the descriptor.

    Raises:
        TargetError: it cannot be opened for writing (a running program, for example), or another
            file has its name now.
    """
    try:
        fd = os.open(info.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags)
    except OSError as error:
        raise TargetError(f"it cannot be opened for writing ({error.strerror})") from error
    try:
        status = os.fstat(fd)
    except OSError:
        os.close(fd)
        raise
    if (status.st_dev, status.st_ino) != (info.device_number, info.inode):
        os.close(fd)
        raise TargetError("it was replaced by another file")
    return fd


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

        At most as many fragments as the file's own blocks have, or large fragments, are accepted.

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

    def __exit__(self, *_: object) -> None:
        """Closes it, which frees its blocks."""
        os.close(self.fd)

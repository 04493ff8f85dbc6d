"""The interface of the rewriting methods, and the result of rewriting one range."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final, Protocol

from ssdlab.errors import TargetError
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.file_info import FileInfo

FRAGMENTED: Final = "free space is more fragmented than the file"


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The result of rewriting one range.

    `moved_bytes` have new blocks. `written_bytes` went to the drive: more, if a concurrent writer
    made a second copy necessary. `left` has the parts that keep their old blocks, `reason` why.
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

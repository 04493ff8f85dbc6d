"""What every way of rewriting offers: one range after the other, and what became of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final, Protocol

from ssdlab.errors import TargetError
from ssdlab.heal.pieces import Range
from ssdlab.storage_stack.file_info import FileInfo

FRAGMENTED: Final = "free space is more fragmented than the file"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What became of a range; in bytes.

    `moved` have a new place, `written` went to the drive for that (more where a writer came
    between). `left` says what kept its old place, and `why`.
    """

    moved: int
    written: int
    left: tuple[Range, ...] = ()
    why: str = ""


class Rewriter(Protocol):
    """A file opened for rewriting. Content never changes, whoever writes to it meanwhile."""

    def rewrite(self, chunk: Range) -> Rewritten:
        """Gives a range of whole blocks a new place; all is on the drive when it returns.

        Raises:
            DeviceFailure: the kernel refuses or the drive fails; the file is as it was.
        """

    def close(self) -> None:
        """Lets go of the file; nothing is left beside it."""


def open_seen(seen: FileInfo, flags: int = 0) -> int:
    """Opens the file that was looked at for reading and writing; its descriptor.

    Raises:
        TargetError: it cannot be written (a program that runs), or its name went to another file.
    """
    try:
        fd = os.open(seen.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags)
    except OSError as error:
        raise TargetError(f"it cannot be opened for writing ({error.strerror})") from error
    try:
        status = os.fstat(fd)
    except OSError:
        os.close(fd)
        raise
    if (status.st_dev, status.st_ino) != (seen.device_number, seen.inode):
        os.close(fd)
        raise TargetError("its name went to another file meanwhile")
    return fd

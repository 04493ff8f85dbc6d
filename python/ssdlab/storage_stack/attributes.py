"""What a file's own attributes (chattr) do to a measurement; a mount's options do not tell them.

A new file inherits those of its directory, so ask about the directory before making a test file.
Source: ioctl_iflags(2), include/uapi/linux/fs.h.
"""

from __future__ import annotations

import enum
import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError
from ssdlab.warning import MeasurementWarning

_FS_IOC_GETFLAGS: Final = 0x80086601  # the kernel writes an int although its number says long
_UNSUPPORTED: Final = (errno.ENOTTY, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class Attribute(enum.IntFlag):
    """Attributes that matter here (FS_*_FL)."""

    COMPRESSED = 0x4
    IMMUTABLE = 0x10
    APPEND_ONLY = 0x20
    NO_COMPRESSION = 0x400
    ENCRYPTED = 0x800
    JOURNAL_DATA = 0x4000
    EXTENTS = 0x8_0000  # ext4: mapped by extents, not by ext2's tables
    VERITY = 0x10_0000
    NO_COPY_ON_WRITE = 0x80_0000
    DAX = 0x200_0000
    INLINE_DATA = 0x1000_0000


_MEANING: Final = (
    (
        Attribute.IMMUTABLE,
        MeasurementWarning("immutable", "chattr +i: it cannot be written.", fatal=True),
    ),
    (
        Attribute.APPEND_ONLY,
        MeasurementWarning("append-only", "chattr +a: no overwriting.", fatal=True),
    ),
    (
        Attribute.VERITY,
        MeasurementWarning("verity", "fs-verity: it cannot be written.", fatal=True),
    ),
    (
        Attribute.JOURNAL_DATA,
        MeasurementWarning(
            "data-journal", "chattr +j: direct I/O silently goes through the page cache."
        ),
    ),
    (
        Attribute.COMPRESSED,
        MeasurementWarning(
            "compressed", "chattr +c: the drive gets fewer bytes than were written."
        ),
    ),
    (
        Attribute.ENCRYPTED,
        MeasurementWarning(
            "encrypted", "fscrypt: direct I/O may go through the page cache, and costs CPU."
        ),
    ),
    (
        Attribute.DAX,
        MeasurementWarning("dax", "chattr +x: mapped straight to memory; there is no block I/O."),
    ),
    (
        Attribute.INLINE_DATA,
        MeasurementWarning("inline", "The data is in the inode: it has no blocks of its own."),
    ),
)


def attributes_of(path: Path) -> Attribute | None:
    """Attributes of an existing file or directory; None: this file system has none.

    Raises:
        TargetError: it cannot be opened for reading.
    """
    try:
        # O_NONBLOCK: a FIFO must not hang us.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise TargetError(f"{path} cannot be opened for reading ({error.strerror})") from error
    try:
        answer = fcntl.ioctl(fd, _FS_IOC_GETFLAGS, bytes(8))
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    finally:
        os.close(fd)
    return Attribute(struct.unpack_from("=L", answer)[0])


def attribute_warnings(path: Path) -> list[MeasurementWarning]:
    """Warnings about a measurement on this file, or on one made in this directory.

    Codes: immutable, append-only, verity (fatal), data-journal, compressed, encrypted, dax,
    inline.

    Raises:
        TargetError: it cannot be opened for reading.
    """
    attributes = attributes_of(path) or Attribute(0)
    return [warning for attribute, warning in _MEANING if attribute in attributes]

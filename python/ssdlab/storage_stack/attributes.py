"""Warnings about a file's own attributes (chattr), which do not show in the mount options.

A new file inherits the attributes of its directory: check the directory before you create a test
file.
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

_FS_IOC_GETFLAGS: Final = 0x80086601  # writes an int; the number says long
_UNSUPPORTED: Final = (errno.ENOTTY, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class Attribute(enum.IntFlag):
    """The inode flags that affect a measurement (FS_*_FL)."""

    COMPRESSED = 0x4
    IMMUTABLE = 0x10
    APPEND_ONLY = 0x20
    NO_COMPRESSION = 0x400
    ENCRYPTED = 0x800
    JOURNAL_DATA = 0x4000
    EXTENTS = 0x8_0000  # ext4: mapped by extents, not by ext2's indirect blocks
    VERITY = 0x10_0000
    NO_COPY_ON_WRITE = 0x80_0000
    DAX = 0x200_0000
    INLINE_DATA = 0x1000_0000


_WARNINGS: Final = {
    Attribute.IMMUTABLE: MeasurementWarning(
        "immutable",
        "It has chattr +i (immutable) and cannot be written: remove the attribute with chattr -i.",
        fatal=True,
    ),
    Attribute.APPEND_ONLY: MeasurementWarning(
        "append-only",
        "It has chattr +a (append-only), so data cannot be overwritten: remove the attribute with "
        "chattr -a.",
        fatal=True,
    ),
    Attribute.VERITY: MeasurementWarning(
        "verity", "It has fs-verity, which makes it read-only: use another file.", fatal=True
    ),
    Attribute.JOURNAL_DATA: MeasurementWarning(
        "data-journal",
        "With chattr +j (data journalling), ext4 silently turns direct I/O into page-cache I/O: "
        "remove the attribute with chattr -j.",
    ),
    Attribute.COMPRESSED: MeasurementWarning(
        "compressed",
        "With chattr +c, the file system compresses, so the drive gets fewer bytes than the test "
        "writes: remove the attribute with chattr -c.",
    ),
    Attribute.ENCRYPTED: MeasurementWarning(
        "encrypted",
        "fscrypt encrypts its files, which uses CPU time, and direct I/O may fall back to the page "
        "cache: use a directory that is not encrypted.",
    ),
    Attribute.DAX: MeasurementWarning(
        "dax",
        "With chattr +x (DAX), files are mapped directly to memory and the test does no block I/O: "
        "remove the attribute with chattr -x.",
    ),
    Attribute.INLINE_DATA: MeasurementWarning(
        "inline",
        "The data is inline in the inode and has no blocks of its own: use a larger file.",
    ),
}


def attributes_of(path: Path) -> Attribute | None:
    """Attributes of an existing file or directory; None if its file system has no attributes.

    Raises:
        TargetError: it cannot be opened for reading.
    """
    try:
        # O_NONBLOCK: opening a FIFO must not hang.
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
    """Warnings about a measurement on this file, or on a new file in this directory.

    Codes: immutable, append-only, verity (fatal), data-journal, compressed, encrypted, dax,
    inline.

    Raises:
        TargetError: it cannot be opened for reading.
    """
    attributes = attributes_of(path) or Attribute(0)
    return [warning for attribute, warning in _WARNINGS.items() if attribute in attributes]

"""One file: attributes (chattr), extents, mount, free space, drives; read-only.

Mount options do not show these attributes. A new file inherits those of its directory: check the
directory before you create a test file.

Sources: ioctl_iflags(2), include/uapi/linux/fs.h, Documentation/ABI/testing/sysfs-fs-ext4
(journal_task), fs/xfs/libxfs/xfs_fs.h (XFS_IOC_FSGEOMETRY), proc(5) for /proc/swaps.
"""

from __future__ import annotations

import enum
import errno
import fcntl
import os
import stat
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError
from ssdlab.storage_stack.blockdev import SYS, BlockDevice, device_by_number
from ssdlab.storage_stack.extents import Extent, read_extents
from ssdlab.storage_stack.filesystem import live_options
from ssdlab.storage_stack.layers import drives_of_mount
from ssdlab.storage_stack.mounts import PROC, Mount, mount_of
from ssdlab.storage_stack.pseudofile import read_text, unescape
from ssdlab.storage_stack.space import Space, space_on
from ssdlab.warning import MeasurementWarning

_FS_IOC_GETFLAGS: Final = 0x80086601  # writes an int; the number says long
_UNSUPPORTED: Final = (errno.ENOTTY, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_XFS_GEOMETRY: Final = 0x8100_587E  # _IOR('X', 126, struct xfs_fsop_geom of 256 bytes)
_XFS_FLAGS_OFFSET: Final = 92
_XFS_REFLINK: Final = 1 << 20


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


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The state of one file; sizes in bytes.

    `names` is the number of hard links. `extents` is None without FIEMAP. `has_journal` is for
    ext2, ext3 and ext4; `shares_blocks` (files can share blocks: reflinks) for XFS and btrfs; both
    are None on other file systems. `mount.options` are the live options.
    """

    path: Path
    inode: int
    device_number: int
    size_bytes: int
    block_bytes: int
    names: int
    is_plain: bool
    is_swap: bool
    may_write: bool
    attributes: Attribute
    extents: tuple[Extent, ...] | None
    mount: Mount
    has_journal: bool | None
    shares_blocks: bool | None
    space: Space
    drives: tuple[BlockDevice, ...]


def read_file_info(path: Path, proc: Path = PROC, sys: Path = SYS) -> FileInfo:
    """Reads the state of a file; follows symbolic links, and writes its dirty pages first.

    Raises:
        TargetError: it does not exist or cannot be opened.
    """
    try:
        resolved = path.resolve(strict=True)
        status = resolved.stat()
    except OSError as error:
        reason = error.strerror or error
        raise TargetError(f"{path}: {reason}; give a file on the drive") from error
    mount = mount_of(resolved, proc)
    options = live_options(mount, proc, sys)
    is_plain = stat.S_ISREG(status.st_mode)
    extents, shares = _read_layout(resolved, mount) if is_plain else (None, None)
    return FileInfo(
        path=resolved,
        inode=status.st_ino,
        device_number=status.st_dev,
        size_bytes=status.st_size,
        block_bytes=max(512, os.statvfs(resolved).f_bsize),
        names=status.st_nlink,
        is_plain=is_plain,
        is_swap=str(resolved) in swap_files(proc),
        may_write=os.geteuid() in (0, status.st_uid) and os.access(resolved, os.W_OK),
        attributes=(attributes_of(resolved) or Attribute(0)) if is_plain else Attribute(0),
        extents=extents,
        mount=replace(mount, options=options),
        has_journal=_has_journal(mount, sys),
        shares_blocks=shares,
        space=space_on(resolved),
        drives=drives_of_mount(mount, sys),
    )


def swap_files(proc: Path = PROC) -> frozenset[str]:
    """Paths of all active swap files and devices."""
    lines = (read_text(proc / "swaps") or "").splitlines()[1:]
    return frozenset(unescape(line.split()[0]) for line in lines if line)


def _read_layout(path: Path, mount: Mount) -> tuple[tuple[Extent, ...] | None, bool | None]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise TargetError(f"{path} cannot be opened for reading ({error.strerror})") from error
    try:
        return read_extents(fd), _shares_blocks(fd, mount)
    finally:
        os.close(fd)


def _shares_blocks(fd: int, mount: Mount) -> bool | None:
    if mount.fs_type == "btrfs":
        return True
    if mount.fs_type != "xfs":
        return None
    try:
        answer = fcntl.ioctl(fd, _XFS_GEOMETRY, bytes(256))
    except OSError:
        return False
    return bool(struct.unpack_from("=L", answer, _XFS_FLAGS_OFFSET)[0] & _XFS_REFLINK)


def _has_journal(mount: Mount, sys: Path) -> bool | None:
    """Whether ext2, ext3 or ext4 has a journal: without one, journal_task is "<none>"."""
    if not mount.fs_type.startswith("ext"):
        return None
    device = device_by_number(mount.major, mount.minor, sys)
    task = None if device is None else read_text(sys / "fs" / "ext4" / device.name / "journal_task")
    return task is not None and task != "<none>"

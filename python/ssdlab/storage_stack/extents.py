"""Where the bytes of a file are on its device (FIEMAP).

Source: Documentation/filesystems/fiemap.rst and include/uapi/linux/fiemap.h. Caution: without
FIEMAP_FLAG_SYNC, written data may still wait for delayed allocation and have no address. On btrfs
an address is logical (the chunk tree maps it). `physical` is an offset in the file system's
device, which may be a partition.
"""

from __future__ import annotations

import enum
import errno
import fcntl
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

_FS_IOC_FIEMAP: Final = 0xC020660B  # _IOWR('f', 11, struct fiemap of 32 bytes)
_HEADER: Final = struct.Struct("=QQLLLL")  # start, length, flags, mapped, capacity, reserved
_EXTENT: Final = struct.Struct("=QQQ16xL12x")  # logical, physical, length, flags
_SYNC: Final = 0x1
_EXTENTS_PER_CALL: Final = 1024  # 56 KiB
_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS)


class ExtentFlag(enum.IntFlag):
    """Flags of an extent (FIEMAP_EXTENT_*)."""

    LAST = 0x1
    UNKNOWN = 0x2  # the address is not known
    DELALLOC = 0x4  # waits for delayed allocation: no address yet
    ENCODED = 0x8  # compressed: cannot be read by address
    ENCRYPTED = 0x80
    NOT_ALIGNED = 0x100
    INLINE = 0x200  # in a metadata block
    TAIL = 0x400  # shares a block with the data of other files
    UNWRITTEN = 0x800  # allocated, never written: reads as zeros without touching the flash
    MERGED = 0x1000
    SHARED = 0x2000  # with another file or a snapshot: a write goes to a new address


_NO_DATA: Final = ExtentFlag.UNWRITTEN | ExtentFlag.DELALLOC | ExtentFlag.UNKNOWN
_UNADDRESSED: Final = (
    ExtentFlag.UNKNOWN | ExtentFlag.DELALLOC | ExtentFlag.ENCODED | ExtentFlag.INLINE
)
_LIST_FLAGS: Final = ExtentFlag.LAST | ExtentFlag.MERGED


@dataclass(frozen=True, slots=True)
class Extent:
    """`length` bytes at `logical` in the file and `physical` on the device; all in bytes."""

    logical: int
    physical: int
    length: int
    flags: ExtentFlag

    @property
    def end(self) -> int:
        """Offset of the first byte of the file after the extent."""
        return self.logical + self.length

    @property
    def is_written(self) -> bool:
        """Whether a read of the extent reads the device: it is written and has an address."""
        return not self.flags & _NO_DATA


def read_extents(
    fd: int, offset: int = 0, length: int | None = None, *, sync: bool = True
) -> tuple[Extent, ...] | None:
    """Extents that overlap [offset, offset + length) of the file, by ascending `logical`.

    Without `length`, up to the end of the file. The first and last extent may extend beyond the
    range. Holes have no extent. `sync` first writes delayed data to the device. None if the file
    system has no FIEMAP (tmpfs, many network and FUSE file systems).

    Raises:
        OSError: any other error, such as a bad descriptor or an I/O error.
    """
    end = (1 << 63) - 1 if length is None else offset + length
    extents: list[Extent] = []
    position = offset
    while position < end:
        batch = _fiemap(fd, position, end - position, sync=sync)
        if batch is None:
            return None
        extents += batch
        if not batch or ExtentFlag.LAST in batch[-1].flags:
            break
        assert batch[-1].end > position, f"FIEMAP does not advance at {position}: {batch[-1]}"
        position, sync = batch[-1].end, False
    return tuple(extents)


def _fiemap(fd: int, start: int, length: int, *, sync: bool) -> list[Extent] | None:
    request = bytearray(_HEADER.size + _EXTENTS_PER_CALL * _EXTENT.size)
    _HEADER.pack_into(request, 0, start, length, _SYNC if sync else 0, 0, _EXTENTS_PER_CALL, 0)
    try:
        fcntl.ioctl(fd, _FS_IOC_FIEMAP, request, True)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    mapped = _HEADER.unpack_from(request)[3]
    rows = memoryview(request)[_HEADER.size : _HEADER.size + mapped * _EXTENT.size]
    return [
        Extent(logical, physical, length, ExtentFlag(flags))
        for logical, physical, length, flags in _EXTENT.iter_unpack(rows)
    ]


def merged(extents: Iterable[Extent]) -> tuple[Extent, ...]:
    """Join extents that are adjacent in the file and on the device and have equal flags.

    File systems split contiguous data (ext4 at 128 MiB); after joining, the count is the number of
    fragments. Extents without a real address (delayed, compressed, inline) are not joined.
    """
    joined: list[Extent] = []
    for extent in extents:
        if joined and _are_contiguous(joined[-1], extent):
            whole = joined[-1].length + extent.length
            joined[-1] = replace(joined[-1], length=whole, flags=extent.flags)
        else:
            joined.append(extent)
    return tuple(joined)


def _are_contiguous(left: Extent, right: Extent) -> bool:
    return (
        right.logical == left.end
        and right.physical == left.physical + left.length
        and left.flags & ~_LIST_FLAGS == right.flags & ~_LIST_FLAGS
        and not left.flags & _UNADDRESSED
    )


def unwritten_bytes(fd: int, offset: int = 0, length: int | None = None) -> int | None:
    """Bytes of the range without data on the device: holes and unwritten extents.

    They read as zeros without touching the flash. Without `length`, up to the end of the file; a
    range beyond the end counts as a hole. Delayed data is written to the device first. None if the
    file system has no FIEMAP: the caller must warn.

    Raises:
        OSError: as `read_extents`.
    """
    if length is None:
        length = max(0, os.fstat(fd).st_size - offset)
    extents = read_extents(fd, offset, length)
    if extents is None:
        return None
    return length - _written_within(extents, offset, offset + length)


def _written_within(extents: Iterable[Extent], start: int, end: int) -> int:
    return sum(
        max(0, min(extent.end, end) - max(extent.logical, start))
        for extent in extents
        if extent.is_written
    )


def all_flags(extents: Iterable[Extent]) -> ExtentFlag:
    """The union of the extents' flags."""
    flags = ExtentFlag(0)
    for extent in extents:
        flags |= extent.flags
    return flags

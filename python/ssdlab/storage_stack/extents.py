"""Where the bytes of a file are on its device: FIEMAP, in pure Python.

Source: Documentation/filesystems/fiemap.rst and include/uapi/linux/fiemap.h. Traps: without
FIEMAP_FLAG_SYNC, written data may still be "delayed" with no address; on btrfs an address is
logical (the chunk tree maps it on); `physical` is relative to the file system's device, not to
the disk a partition is on.
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
_HEADER: Final = struct.Struct("=QQLLLL")  # start, length, flags, mapped, room, reserved
_EXTENT: Final = struct.Struct("=QQQ16xL12x")  # logical, physical, length, flags
_SYNC: Final = 0x1
_PAGE: Final = 1024  # extents asked for in one call: 56 KiB
_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS)


class ExtentFlag(enum.IntFlag):
    """What the kernel says about an extent (FIEMAP_EXTENT_*)."""

    LAST = 0x1
    UNKNOWN = 0x2  # no address known
    DELALLOC = 0x4  # not on the device yet
    ENCODED = 0x8  # compressed: cannot be read by address
    ENCRYPTED = 0x80
    NOT_ALIGNED = 0x100
    INLINE = 0x200  # in a metadata block
    TAIL = 0x400  # shares a block with other files
    UNWRITTEN = 0x800  # allocated, never written: reads as zeros without touching the flash
    MERGED = 0x1000
    SHARED = 0x2000  # with another file or a snapshot: a write goes elsewhere


_NOT_THERE: Final = ExtentFlag.UNWRITTEN | ExtentFlag.DELALLOC | ExtentFlag.UNKNOWN
_NO_PLACE: Final = ExtentFlag.UNKNOWN | ExtentFlag.DELALLOC | ExtentFlag.ENCODED | ExtentFlag.INLINE
_OF_THE_LIST: Final = ExtentFlag.LAST | ExtentFlag.MERGED


@dataclass(frozen=True, slots=True)
class Extent:
    """A run of a file's bytes: `logical` in the file, `physical` on its device; all in bytes."""

    logical: int
    physical: int
    length: int
    flags: ExtentFlag

    @property
    def end(self) -> int:
        """First byte of the file after the extent."""
        return self.logical + self.length

    @property
    def is_written(self) -> bool:
        """Whether a read of it must fetch data: not unwritten, delayed or without address."""
        return not self.flags & _NOT_THERE


def read_extents(
    fd: int, offset: int = 0, length: int | None = None, *, sync: bool = True
) -> tuple[Extent, ...] | None:
    """Extents that touch [offset, offset + length) of the file, by rising `logical`.

    To the end of the file without `length`. The first and last may stick out of the range. Holes
    are what no extent covers. `sync` writes delayed data out first. None: this file system
    cannot tell (no FIEMAP: tmpfs, many network and FUSE ones).

    Raises:
        OSError: the kernel refuses for another reason (a bad descriptor, an I/O error).
    """
    end = (1 << 63) - 1 if length is None else offset + length
    found: list[Extent] = []
    position = offset
    while position < end:
        page = _one_page(fd, position, end - position, sync=sync)
        if page is None:
            return None
        found += page
        if not page or ExtentFlag.LAST in page[-1].flags:
            break
        assert page[-1].end > position, f"FIEMAP does not advance at {position}: {page[-1]}"
        position, sync = page[-1].end, False
    return tuple(found)


def _one_page(fd: int, start: int, length: int, *, sync: bool) -> list[Extent] | None:
    request = bytearray(_HEADER.size + _PAGE * _EXTENT.size)
    _HEADER.pack_into(request, 0, start, length, _SYNC if sync else 0, 0, _PAGE, 0)
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
    """Join neighbours that continue each other in the file and on the device, with equal flags.

    File systems split what lies together (ext4 at 128 MiB); joined, the count is the number of
    fragments. Extents without a true address (delayed, compressed, inline) stay single.
    """
    joined: list[Extent] = []
    for extent in extents:
        if joined and _continues(joined[-1], extent):
            whole = joined[-1].length + extent.length
            joined[-1] = replace(joined[-1], length=whole, flags=extent.flags)
        else:
            joined.append(extent)
    return tuple(joined)


def _continues(left: Extent, right: Extent) -> bool:
    return (
        right.logical == left.end
        and right.physical == left.physical + left.length
        and left.flags & ~_OF_THE_LIST == right.flags & ~_OF_THE_LIST
        and not left.flags & _NO_PLACE
    )


def unwritten_bytes(fd: int, offset: int = 0, length: int | None = None) -> int | None:
    """Bytes of the range that hold no data on the device: holes and never-written extents.

    To the end of the file without `length`; a range beyond the end counts as a hole. Such bytes
    read as zeros without touching the flash. Delayed data is written out first. None: this file
    system cannot tell, so warn.

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
    """Every flag that any of the extents carries, to ask e.g. `ExtentFlag.SHARED in ...`."""
    flags = ExtentFlag(0)
    for extent in extents:
        flags |= extent.flags
    return flags

"""Other block devices on the same storage: two loop devices on one file, a disk on two paths.

O_EXCL covers one block device only: while /dev/loop0 is mounted, /dev/loop1 on the same file can
still be opened. So each device is mapped to areas of its storage: a backing file (known by device
and inode number) or a disk (by WWID, else model, serial number and size). Devices whose areas
overlap are siblings.

Not detected: two network block devices exported by one server without an identifier, and two
device-mapper tables that map the same sectors.

Source: loop(4) (LOOP_GET_STATUS64), Documentation/ABI/stable/sysfs-block (wwid, serial).
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.storage_stack.blockdev import (
    SYS,
    BlockDevice,
    device_by_name,
    device_by_node,
    directory_of,
)
from ssdlab.storage_stack.pseudofile import read_int, read_text

_LOOP_GET_STATUS64: Final = 0x4C05
_LOOP_INFO_BYTES: Final = 232
_UNKNOWN_SIZE: Final = 1 << 63
"""Stands for the size in bytes of a device whose size is not known."""


@dataclass(frozen=True, slots=True)
class Area:
    """Bytes `start` to `end` of the storage that the text `storage` identifies."""

    storage: str
    start: int
    end: int

    def part(self, offset: int, length: int) -> Area:
        """The part of this area that begins at `offset`, of at most `length` bytes."""
        start = self.start + offset
        return Area(self.storage, start, min(self.end, start + length))

    def overlaps(self, other: Area) -> bool:
        """Whether both areas share a byte."""
        same = self.storage == other.storage
        return same and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Sibling:
    """A device that shares bytes with another one; `storage` describes where.

    `is_below`: it is in the stack of the other device (a partition below LVM, a path of a multipath
    device). That stack holds it, which is not a conflict.
    """

    device: BlockDevice
    storage: str
    is_below: bool


def siblings(device: BlockDevice, sys: Path = SYS) -> list[Sibling]:
    """Other devices that share bytes with `device`, including its disk or partitions, by name."""
    members = list(_members(device, sys))
    # A write to the device also writes to the devices that it is composed of.
    areas = [area_of(each, sys) for each in (device, *members)]
    below = {member.name for member in members}
    result = []
    for entry in sorted((sys / "class" / "block").iterdir()):
        other = None if entry.name == device.name else device_by_name(entry.name, sys)
        if other is None:
            continue
        area = area_of(other, sys)
        if any(area.overlaps(own) for own in areas):
            result.append(Sibling(other, _display_name(other, area, sys), other.name in below))
    return result


def area_of(device: BlockDevice, sys: Path = SYS) -> Area:
    """The area of the storage that a device covers."""
    size = _UNKNOWN_SIZE if device.size is None else device.size
    whole = device_by_name(device.whole_disk, sys) if device.is_partition else None
    if whole is not None:
        return area_of(whole, sys).part(device.start or 0, size)
    loop = directory_of(device, sys) / "loop"
    backing = read_text(loop / "backing_file")
    if backing is None:
        return Area(_disk_identity(device, sys), 0, size)
    lower = device_by_node(backing, sys)
    below = Area(f"file {_backing_inode(device, backing, sys)}", 0, _UNKNOWN_SIZE)
    if lower is not None and lower.name != device.name:
        below = area_of(lower, sys)
    return below.part(read_int(loop / "offset") or 0, size)


def loops_on(path: Path, sys: Path = SYS) -> list[BlockDevice]:
    """The loop devices backed by the regular file at `path`, under any of its names."""
    storage = f"file {_inode(path)}"
    entries = sorted((sys / "class" / "block").glob("loop*/loop"))
    loops = (device_by_name(entry.parent.name, sys) for entry in entries)
    return [loop for loop in loops if loop is not None and area_of(loop, sys).storage == storage]


def backing_files(devices: list[BlockDevice], sys: Path = SYS) -> dict[tuple[int, int], Path]:
    """The backing files of the loop devices among `devices`, by (st_dev, st_ino)."""
    files = {}
    for device in devices:
        name = read_text(directory_of(device, sys) / "loop" / "backing_file")
        if name is not None and device_by_node(name, sys) is None and Path(name).exists():
            status = Path(name).stat()
            files[status.st_dev, status.st_ino] = Path(name)
    return files


def _members(device: BlockDevice, sys: Path) -> Iterator[BlockDevice]:
    """The slaves of a device-mapper, md or bcache device, recursively."""
    directory = directory_of(device, sys)
    slaves = (directory.parent if device.is_partition else directory) / "slaves"
    backing = read_text(directory / "loop" / "backing_file")
    lower = device_by_node(backing, sys) if backing else None
    if lower is not None and lower.name != device.name:
        yield from _members(lower, sys)
    for entry in sorted(slaves.iterdir()) if slaves.is_dir() else ():
        member = device_by_name(entry.name, sys)
        if member is not None:
            yield member
            yield from _members(member, sys)


def _disk_identity(device: BlockDevice, sys: Path) -> str:
    """A text that is the same for all block devices that are paths to one disk."""
    directory = directory_of(device, sys)
    wwid = read_text(directory / "wwid") or read_text(directory / "device" / "wwid")
    if wwid is not None:
        return f"disk {wwid}"
    if device.serial is not None:
        model = f"{device.model} " if device.model else ""
        return f"disk {model}serial {device.serial}, {device.size} bytes"
    return f"disk {device.name}"


def _display_name(device: BlockDevice, area: Area, sys: Path) -> str:
    """The storage as messages name it: a backing file by its path instead of its inode."""
    whole = device_by_name(device.whole_disk, sys) or device
    backing = read_text(directory_of(whole, sys) / "loop" / "backing_file")
    return f"file {backing}" if backing and area.storage.startswith("file ") else area.storage


def _backing_inode(device: BlockDevice, backing: str, sys: Path) -> str:
    """Device and inode number of a backing file from the loop driver, else from its path.

    The driver also knows files that were renamed, removed, or are in another mount namespace.
    """
    if sys != SYS:  # a captured tree: its loop devices are not this machine's
        return _inode(Path(backing))
    try:
        fd = os.open(device.node, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_LOOP_INFO_BYTES))
        finally:
            os.close(fd)
    except OSError:
        return _inode(Path(backing))
    number, inode = struct.unpack_from("=QQ", status)
    # The kernel packs a device number as MMMmmmMM (huge_encode_dev).
    minor = (number & 0xFF) | ((number >> 12) & 0xFFF00)
    return f"{(number >> 8) & 0xFFF}:{minor} inode {inode}"


def _inode(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return f"{os.major(status.st_dev)}:{os.minor(status.st_dev)} inode {status.st_ino}"

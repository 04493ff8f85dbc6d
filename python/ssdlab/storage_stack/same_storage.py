"""Other block devices that reach the same bytes: two loop devices on one file, a disk by two paths.

The kernel's exclusive open does not protect against these: it covers one block device only, so a
file system mounted from /dev/loop0 leaves /dev/loop1 on the same file free. Each device is
therefore reduced to areas of a storage: a backing file (device and inode number) or a disk (WWID,
else model, serial number and size). Devices whose areas overlap are siblings.

Not recognised: two network block devices that one server exports without an identifier, and two
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
    device_called,
    device_named,
    directory_of,
)
from ssdlab.storage_stack.pseudofile import read_int, read_text

_LOOP_GET_STATUS64: Final = 0x4C05
_LOOP_INFO_BYTES: Final = 232
_ENDLESS: Final = 1 << 63
"""The end of a device whose size the kernel does not tell."""


@dataclass(frozen=True, slots=True)
class Area:
    """Bytes `start` to `end` of a storage, which `storage` identifies in words."""

    storage: str
    start: int
    end: int

    def part(self, offset: int, length: int) -> Area:
        """The area of a device that lies in this one, `offset` bytes from its start."""
        start = self.start + offset
        return Area(self.storage, start, min(self.end, start + length))

    def overlaps(self, other: Area) -> bool:
        """Whether both have a byte in common."""
        same = self.storage == other.storage
        return same and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Sibling:
    """A device that shares bytes with another one; `storage` says for people where they lie.

    `is_below` says that it is a member of the other one's stack: a partition below LVM, the slaves
    of a multipath device. Then it is held by that stack, which is no danger.
    """

    device: BlockDevice
    storage: str
    is_below: bool


def siblings(device: BlockDevice, sys: Path = SYS) -> list[Sibling]:
    """All other devices that share bytes with `device`, by name.

    Among them are its own disk and its own partitions.
    """
    reached = list(_reached(device, sys))
    below = {member.name for member in _members(device, sys)}
    found = []
    for entry in sorted((sys / "class" / "block").iterdir()):
        other = None if entry.name == device.name else device_named(entry.name, sys)
        if other is None:
            continue
        here = area_of(other, sys)
        if any(here.overlaps(area) for area in reached):
            found.append(Sibling(other, _shown(other, here, sys), other.name in below))
    return found


def area_of(device: BlockDevice, sys: Path = SYS) -> Area:
    """Where the bytes of a device lie."""
    size = _ENDLESS if device.size is None else device.size
    whole = device_named(device.whole_disk, sys) if device.is_partition else None
    if whole is not None:
        return area_of(whole, sys).part(device.start or 0, size)
    loop = directory_of(device, sys) / "loop"
    backing = read_text(loop / "backing_file")
    if backing is None:
        return Area(_disk(device, sys), 0, size)
    lower = device_called(backing, sys)
    below = Area(f"file {_file(device, backing, sys)}", 0, _ENDLESS)
    if lower is not None and lower.name != device.name:
        below = area_of(lower, sys)
    return below.part(read_int(loop / "offset") or 0, size)


def loops_on(path: Path, sys: Path = SYS) -> list[BlockDevice]:
    """The loop devices whose backing file is the regular file at `path`, under any name."""
    storage = f"file {_number(path)}"
    entries = sorted((sys / "class" / "block").glob("loop*/loop"))
    loops = (device_named(entry.parent.name, sys) for entry in entries)
    return [loop for loop in loops if loop is not None and area_of(loop, sys).storage == storage]


def backing_files(devices: list[BlockDevice], sys: Path = SYS) -> dict[tuple[int, int], Path]:
    """The backing files of those that are loop devices, by (st_dev, st_ino)."""
    found = {}
    for device in devices:
        name = read_text(directory_of(device, sys) / "loop" / "backing_file")
        if name is not None and device_called(name, sys) is None and Path(name).exists():
            status = Path(name).stat()
            found[status.st_dev, status.st_ino] = Path(name)
    return found


def _reached(device: BlockDevice, sys: Path) -> Iterator[Area]:
    """Its own area and, because a write to it ends there, those of its members."""
    yield area_of(device, sys)
    for member in _members(device, sys):
        yield area_of(member, sys)


def _members(device: BlockDevice, sys: Path) -> Iterator[BlockDevice]:
    """What device-mapper, md or bcache made it from, and what these were made from."""
    directory = directory_of(device, sys)
    slaves = (directory.parent if device.is_partition else directory) / "slaves"
    backing = read_text(directory / "loop" / "backing_file")
    lower = device_called(backing, sys) if backing else None
    if lower is not None and lower.name != device.name:
        yield from _members(lower, sys)
    for entry in sorted(slaves.iterdir()) if slaves.is_dir() else ():
        member = device_named(entry.name, sys)
        if member is not None:
            yield member
            yield from _members(member, sys)


def _disk(device: BlockDevice, sys: Path) -> str:
    """What two paths to one disk have in common."""
    directory = directory_of(device, sys)
    wwid = read_text(directory / "wwid") or read_text(directory / "device" / "wwid")
    if wwid is not None:
        return f"disk {wwid}"
    if device.serial is not None:
        model = f"{device.model} " if device.model else ""
        return f"disk {model}serial {device.serial}, {device.size} bytes"
    return f"disk {device.name}"


def _shown(device: BlockDevice, area: Area, sys: Path) -> str:
    """The storage by its path where it is a file."""
    whole = device_named(device.whole_disk, sys) or device
    backing = read_text(directory_of(whole, sys) / "loop" / "backing_file")
    return f"file {backing}" if backing and area.storage.startswith("file ") else area.storage


def _file(device: BlockDevice, backing: str, sys: Path) -> str:
    """A backing file by its number, asked of the loop driver; else by its name.

    The driver also knows the number of a file that was renamed, removed, or lies in another mount
    namespace.
    """
    if sys != SYS:  # captured elsewhere: the driver here knows other devices
        return _number(Path(backing))
    try:
        fd = os.open(device.node, os.O_RDONLY | os.O_CLOEXEC)
        try:
            told = fcntl.ioctl(fd, _LOOP_GET_STATUS64, bytes(_LOOP_INFO_BYTES))
        finally:
            os.close(fd)
    except OSError:
        return _number(Path(backing))
    number, inode = struct.unpack_from("=QQ", told)
    # The kernel packs a device number as MMMmmmMM (huge_encode_dev).
    minor = (number & 0xFF) | ((number >> 12) & 0xFFF00)
    return f"{(number >> 8) & 0xFFF}:{minor} inode {inode}"


def _number(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return str(path)
    return f"{os.major(status.st_dev)}:{os.minor(status.st_dev)} inode {status.st_ino}"

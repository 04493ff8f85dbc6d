"""Reasons not to overwrite a block device: everything that uses it, as sentences.

Each check of /proc and /sys gives a sentence that says what to undo. The last check opens the
device with O_EXCL, which also fails for users in other mount namespaces, ZFS pools and external
journals. O_EXCL does not detect a program that has the device open without a claim (a virtual
machine, a database), so open file descriptors are checked too. Nor does it detect another device
on the same storage, so each sibling (`same_storage`) is checked in the same way.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ssdlab.storage_stack.blockdev import (
    SYS,
    BlockDevice,
    device_at,
    device_by_name,
    device_by_node,
    directory_of,
    partitions_of,
)
from ssdlab.storage_stack.layers import devices_of_mount, layers_under
from ssdlab.storage_stack.mounts import PROC, read_mounts
from ssdlab.storage_stack.pseudofile import read_text, unescape
from ssdlab.storage_stack.same_storage import Sibling, backing_files, loops_on, siblings


def in_use(path: Path, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """Reasons not to overwrite the block device at `path`; empty if it is free.

    Checks the device, its partitions, a partition's whole disk, and other devices on the same
    storage for mounts (on btrfs, of any member), swap, holders (device-mapper, md, bcache), loop
    devices, programs that have the device or its backing file open for writing, and a failing
    exclusive open. A check that cannot run is also a reason. The result may change at once, so
    overwrite the device through a descriptor opened with O_EXCL.

    Raises:
        TargetError: not a block device.
    """
    device = device_at(path, sys)
    others = _siblings_outside_family(device, sys)
    return [
        *recorded_uses(device, proc, sys),
        *_open_for_writing(device, others, proc, sys),
        *_exclusive_open(path),
        *(reason for other in others for reason in _exclusive_open_of_sibling(other, sys)),
    ]


def file_in_use(path: Path, sys: Path = SYS) -> list[str]:
    """Reasons not to overwrite the regular file at `path`: loop devices that it backs."""
    return [
        f"{path} is the backing file of {loop.node}: losetup --detach {loop.node} first"
        for loop in loops_on(path, sys)
    ]


def recorded_uses(device: BlockDevice, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """The reasons in `proc` and `sys` alone; these also work on captured trees."""
    mounted = _mounted(family_of(device, sys), proc, sys)
    return [*mounted, *uses_except_mounts(device, proc, sys)]


def uses_except_mounts(device: BlockDevice, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """Like `recorded_uses`, but the device itself may be mounted; its siblings may not."""
    family = family_of(device, sys)
    loops = (reason for _, reason in _loops(family, sys))
    own = [*_swapped(family, proc, sys), *_held(family, sys), *loops]
    stack = {layer.device.name for layer in layers_under(device, sys, proc)}
    return own + [
        f"it {_shares(other)}, and {reason}"
        for other in _siblings_outside_family(device, sys)
        for reason in _uses_of_sibling(other, stack, proc, sys)
    ]


def _siblings_outside_family(device: BlockDevice, sys: Path) -> list[Sibling]:
    family = family_of(device, sys)
    return [other for other in siblings(device, sys) if other.device.name not in family]


def _shares(other: Sibling) -> str:
    return f"shares bytes with {other.device.node} ({other.storage})"


def _uses_of_sibling(other: Sibling, stack: set[str], proc: Path, sys: Path) -> list[str]:
    """Like `recorded_uses` of the sibling, except uses by the stack of the device to overwrite."""
    alone = {other.device.name: other.device}
    held = [] if other.is_below else _held(alone, sys)
    looped = [reason for name, reason in _loops(alone, sys) if name not in stack]
    return [*_mounted(alone, proc, sys), *_swapped(alone, proc, sys), *held, *looped]


def _exclusive_open_of_sibling(other: Sibling, sys: Path) -> list[str]:
    """Opens a sibling with O_EXCL, unless its partitions or the device's stack may claim it.

    Any use of a partition also claims its disk, and a stack claims its members.
    """
    if other.is_below or partitions_of(other.device, sys):
        return []
    try:
        os.close(os.open(other.device.node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return [
                f"it {_shares(other)}, which is claimed exclusively (EBUSY): stop its user first"
            ]
    return []


def family_of(device: BlockDevice, sys: Path = SYS) -> dict[str, BlockDevice]:
    """By name: the device, its partitions, and a partition's whole disk.

    Other partitions of the disk are not included: they may be in use.
    """
    members = [device, *partitions_of(device, sys)]
    if device.is_partition and (whole := device_by_name(device.whole_disk, sys)):
        members.append(whole)
    return {member.name: member for member in members}


def _mounted(family: dict[str, BlockDevice], proc: Path, sys: Path) -> Iterator[str]:
    for mount in read_mounts(proc):
        for device in devices_of_mount(mount, sys):
            if device.name in family:
                where = f"{device.node} is mounted at {mount.mount_point} ({mount.fs_type})"
                is_root = mount.mount_point == Path("/")
                yield f"{where}: {'this system runs from it' if is_root else 'umount it first'}"


def _swapped(family: dict[str, BlockDevice], proc: Path, sys: Path) -> Iterator[str]:
    for line in (read_text(proc / "swaps") or "").splitlines()[1:]:
        device = device_by_node(unescape(line.split()[0]), sys)
        if device is not None and device.name in family:
            yield f"{device.node} is swap space: swapoff it first"


def _held(family: dict[str, BlockDevice], sys: Path) -> Iterator[str]:
    for device in family.values():
        holders = directory_of(device, sys) / "holders"
        for holder in sorted(holders.iterdir()) if holders.is_dir() else ():
            mapped_name = read_text(holder / "dm" / "name")
            suffix = f" ({mapped_name})" if mapped_name else ""
            yield f"{device.node} is a part of {holder.name}{suffix}: stop that device first"
        if (directory_of(device, sys) / "bcache").is_dir():
            yield f"{device.node} is registered with bcache: stop that first"


def _loops(family: dict[str, BlockDevice], sys: Path) -> Iterator[tuple[str, str]]:
    """Name and reason of each loop device that one of these devices backs."""
    for entry in sorted((sys / "class" / "block").glob("loop*")):
        backing = read_text(entry / "loop" / "backing_file")
        device = device_by_node(backing, sys) if backing else None
        if device is not None and device.name in family:
            reason = f"{device.node} is the backing of {entry.name}: losetup --detach it first"
            yield entry.name, reason


def _open_for_writing(
    device: BlockDevice, others: list[Sibling], proc: Path, sys: Path
) -> Iterator[str]:
    members = [*family_of(device, sys).values(), *(other.device for other in others)]
    numbers = {os.makedev(member.major, member.minor): member.node for member in members}
    files = backing_files(members, sys)
    for process in sorted(proc.glob("[0-9]*"), key=lambda entry: int(entry.name)):
        if process.name == str(os.getpid()):
            continue
        for node in _written_by(process, numbers, files):
            name = read_text(process / "comm") or "?"
            yield f"{node} is open for writing in process {process.name} ({name}): stop it"


def _written_by(
    process: Path, numbers: dict[int, Path], files: dict[tuple[int, int], Path]
) -> set[Path]:
    """The device nodes and backing files that a process has open for writing."""
    written: set[Path] = set()
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # it ended, or belongs to another user
        return written
    for descriptor in descriptors:
        try:
            status = descriptor.stat()
            file = files.get((status.st_dev, status.st_ino))
            node = numbers.get(status.st_rdev) if stat.S_ISBLK(status.st_mode) else file
            if node is None:
                continue
            fields = (process / "fdinfo" / descriptor.name).read_text().split()
        except OSError:
            continue
        if int(fields[fields.index("flags:") + 1], 8) & os.O_ACCMODE != os.O_RDONLY:
            written.add(node)
    return written


def _exclusive_open(path: Path) -> list[str]:
    """Opens with O_EXCL, which fails while another user has claimed the device."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            claimed = f"{path} is claimed exclusively by the kernel or a program (EBUSY)"
            return [f"{claimed}: find it with lsblk, zpool status or lsof, and stop it first"]
        return [f"{path} cannot be opened to check that it is free ({error.strerror})"]
    return []

"""Why a block device must not be destroyed: everything that rests on it, as sentences.

Each look at /proc and /sys gives a sentence that tells what to undo; the last look asks the kernel
itself (O_EXCL), which also knows of users in other mount namespaces, ZFS pools and external
journals. Trap: O_EXCL does not see a program that holds the bare device open without claiming it
(a virtual machine, a database), so open descriptors are looked at too. Nor does it see another
device on the same storage, so each sibling (`same_storage`) is looked at in the same way.
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
    device_called,
    device_named,
    directory_of,
    partitions_of,
)
from ssdlab.storage_stack.layers import devices_of_mount, layers_under
from ssdlab.storage_stack.mounts import PROC, read_mounts
from ssdlab.storage_stack.pseudofile import read_text, unescape
from ssdlab.storage_stack.same_storage import Sibling, backing_files, loops_on, siblings


def in_use(path: Path, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """Reasons why the block device at `path` must not be destroyed; empty if none was found.

    Looks at the device, at its partitions, of a partition at its whole disk, and at other devices
    on the same storage: mounts (of btrfs, all its devices), swap, holders (device-mapper, md,
    bcache), loop devices on it, programs that have it or its backing file open for writing, and an
    exclusive open. Not being able to look is a reason as well. It may be in use a moment later:
    destroy through a descriptor opened O_EXCL.

    Raises:
        TargetError: not a block device.
    """
    device = device_at(path, sys)
    others = _beside(device, sys)
    return [
        *recorded_uses(device, proc, sys),
        *_open_for_writing(device, others, proc, sys),
        *_claim(path),
        *(reason for other in others for reason in _claim_of_sibling(other, sys)),
    ]


def file_in_use(path: Path, sys: Path = SYS) -> list[str]:
    """Reasons why the regular file at `path` must not be overwritten: loop devices on it."""
    return [
        f"{path} is the backing file of {loop.node}: losetup --detach {loop.node} first"
        for loop in loops_on(path, sys)
    ]


def recorded_uses(device: BlockDevice, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """The reasons that files in `proc` and `sys` tell; also good for a captured machine."""
    mounted = _mounted(family_of(device, sys), proc, sys)
    return [*mounted, *uses_beside_mounts(device, proc, sys)]


def uses_beside_mounts(device: BlockDevice, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """As `recorded_uses`, for a device that is known to be mounted; siblings must not be."""
    family = family_of(device, sys)
    own = [*_swapped(family, proc, sys), *_held(family, sys), *_looped(family, sys)]
    stack = {layer.device.name for layer in layers_under(device, sys, proc)}
    return own + [
        f"it {_shares(other)}, and {reason}"
        for other in _beside(device, sys)
        for reason in _uses_of_sibling(other, stack, proc, sys)
    ]


def _beside(device: BlockDevice, sys: Path) -> list[Sibling]:
    """Its siblings outside its family, whose uses are its own."""
    family = family_of(device, sys)
    return [other for other in siblings(device, sys) if other.device.name not in family]


def _shares(other: Sibling) -> str:
    return f"shares bytes with {other.device.node} ({other.storage})"


def _uses_of_sibling(other: Sibling, stack: set[str], proc: Path, sys: Path) -> list[str]:
    """As `recorded_uses`, but for uses by the stack of the device itself."""
    alone = {other.device.name: other.device}
    held = [] if other.is_below else _held(alone, sys)
    looped = [reason for name, reason in _loops(alone, sys) if name not in stack]
    return [*_mounted(alone, proc, sys), *_swapped(alone, proc, sys), *held, *looped]


def _claim_of_sibling(other: Sibling, sys: Path) -> list[str]:
    """An exclusive open, where no user that is already known would refuse it.

    A disk is claimed by each use of one of its partitions, and a member by its stack.
    """
    if other.is_below or partitions_of(other.device, sys):
        return []
    try:
        os.close(os.open(other.device.node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return [f"it {_shares(other)}, which is claimed exclusively (EBUSY)"]
    return []


def family_of(device: BlockDevice, sys: Path = SYS) -> dict[str, BlockDevice]:
    """By name: the device, its partitions, and the disk it is a partition of.

    Not its sister partitions: they may be in use while this one is destroyed.
    """
    members = [device, *partitions_of(device, sys)]
    if device.is_partition and (whole := device_named(device.whole_disk, sys)):
        members.append(whole)
    return {member.name: member for member in members}


def _mounted(family: dict[str, BlockDevice], proc: Path, sys: Path) -> Iterator[str]:
    for mount in read_mounts(proc):
        for device in devices_of_mount(mount, sys):
            if device.name in family:
                where = f"{device.node} is mounted at {mount.mount_point} ({mount.fs_type})"
                yield f"{where}: umount it first"


def _swapped(family: dict[str, BlockDevice], proc: Path, sys: Path) -> Iterator[str]:
    for line in (read_text(proc / "swaps") or "").splitlines()[1:]:
        device = device_called(unescape(line.split()[0]), sys)
        if device is not None and device.name in family:
            yield f"{device.node} is swap space: swapoff it first"


def _held(family: dict[str, BlockDevice], sys: Path) -> Iterator[str]:
    for device in family.values():
        holders = directory_of(device, sys) / "holders"
        for holder in sorted(holders.iterdir()) if holders.is_dir() else ():
            known = read_text(holder / "dm" / "name")
            also = f" ({known})" if known else ""
            yield f"{device.node} is a part of {holder.name}{also}: stop that device first"
        if (directory_of(device, sys) / "bcache").is_dir():
            yield f"{device.node} is registered with bcache: stop that first"


def _looped(family: dict[str, BlockDevice], sys: Path) -> Iterator[str]:
    return (reason for _, reason in _loops(family, sys))


def _loops(family: dict[str, BlockDevice], sys: Path) -> Iterator[tuple[str, str]]:
    """Loop devices on one of these, each with the reason."""
    for entry in sorted((sys / "class" / "block").glob("loop*")):
        backing = read_text(entry / "loop" / "backing_file")
        device = device_called(backing, sys) if backing else None
        if device is not None and device.name in family:
            reason = f"{device.node} is the backing of {entry.name}: losetup --detach it first"
            yield entry.name, reason


def _open_for_writing(
    device: BlockDevice, others: list[Sibling], proc: Path, sys: Path
) -> Iterator[str]:
    members = [*family_of(device, sys).values(), *(each.device for each in others)]
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
    """Which of these devices and files the process has open for writing."""
    found: set[Path] = set()
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # it ended, or is another user's
        return found
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
            found.add(node)
    return found


def _claim(path: Path) -> list[str]:
    """Ask the kernel: an exclusive open fails while anything else has claimed the device."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return [f"{path} is claimed exclusively by the kernel or a program (EBUSY)"]
        return [f"{path} cannot be opened to see whether it is free ({error.strerror})"]
    return []

"""Why a block device must not be destroyed: everything that rests on it, as sentences.

Each look at /proc and /sys gives a sentence that tells what to undo; the last look asks the kernel
itself (O_EXCL), which also knows of users in other mount namespaces, ZFS pools and external
journals. Trap: O_EXCL does not see a program that holds the bare device open without claiming it
(a virtual machine, a database), so open descriptors are looked at too.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from ssdlab.stack.blockdev import (
    SYS,
    BlockDevice,
    device_at,
    device_called,
    device_named,
    directory_of,
    partitions_of,
)
from ssdlab.stack.layers import devices_of_mount
from ssdlab.stack.mounts import PROC, read_mounts
from ssdlab.stack.pseudofile import read_text, unescape


def in_use(path: Path, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """Reasons why the block device at `path` must not be destroyed; empty if none was found.

    Looks at the device, at its partitions, and, of a partition, at its whole disk: mounts (of
    btrfs, all its devices), swap, holders (device-mapper, md, bcache), loop devices on it,
    programs that have it open for writing, and an exclusive open. Not being able to look is a
    reason as well. It may be in use a moment later: destroy through a descriptor opened O_EXCL.

    Raises:
        TargetError: not a block device.
    """
    device = device_at(path, sys)
    return [*recorded_uses(device, proc, sys), *_open_for_writing(device, proc, sys), *_claim(path)]


def recorded_uses(device: BlockDevice, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """The reasons that files in `proc` and `sys` tell; also good for a captured machine."""
    mounted = _mounted(family_of(device, sys), proc, sys)
    return [*mounted, *uses_beside_mounts(device, proc, sys)]


def uses_beside_mounts(device: BlockDevice, proc: Path = PROC, sys: Path = SYS) -> list[str]:
    """As `recorded_uses`, for one who knows that it is mounted."""
    family = family_of(device, sys)
    return [*_swapped(family, proc, sys), *_held(family, sys), *_looped(family, sys)]


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
    for entry in sorted((sys / "class" / "block").glob("loop*")):
        backing = read_text(entry / "loop" / "backing_file")
        device = device_called(backing, sys) if backing else None
        if device is not None and device.name in family:
            yield f"{device.node} is the backing of {entry.name}: losetup --detach it first"


def _open_for_writing(device: BlockDevice, proc: Path, sys: Path) -> Iterator[str]:
    family = family_of(device, sys)
    numbers = {os.makedev(member.major, member.minor) for member in family.values()}
    for process in sorted(proc.glob("[0-9]*"), key=lambda entry: int(entry.name)):
        if process.name != str(os.getpid()) and _writes_to(process, numbers):
            name = read_text(process / "comm") or "?"
            yield f"{device.node} is open for writing in process {process.name} ({name}): stop it"


def _writes_to(process: Path, numbers: set[int]) -> bool:
    """Whether one descriptor of the process is a writable one of these devices."""
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:  # it ended, or is another user's
        return False
    for descriptor in descriptors:
        try:
            if descriptor.stat().st_rdev not in numbers:
                continue
            fields = (process / "fdinfo" / descriptor.name).read_text().split()
        except OSError:
            continue
        if int(fields[fields.index("flags:") + 1], 8) & os.O_ACCMODE != os.O_RDONLY:
            return True
    return False


def _claim(path: Path) -> list[str]:
    """Ask the kernel: an exclusive open fails while anything else has claimed the device."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return [f"{path} is claimed exclusively by the kernel or a program (EBUSY)"]
        return [f"{path} cannot be opened to see whether it is free ({error.strerror})"]
    return []

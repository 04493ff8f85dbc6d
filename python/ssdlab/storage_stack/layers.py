"""The devices under a mount or a device, layer by layer, down to the drives.

Below a partition is its disk; below a device-mapper, md or bcache device its slaves; below a loop
device the file system of its backing file; below a btrfs file system all its members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ssdlab.snapshot import Pool
from ssdlab.storage_stack.blockdev import (
    SYS,
    BlockDevice,
    device_by_name,
    device_by_node,
    device_by_number,
    directory_of,
)
from ssdlab.storage_stack.mounts import PROC, Mount, longest_prefix, read_mounts
from ssdlab.storage_stack.pseudofile import read_text

Tables = Mapping[str, tuple[str, ...]]
"""For each device-mapper name, the words of its table that `trim.tables` keeps."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One device of a stack: `depth` 0 is the top; `is_drive` means that no device is below."""

    device: BlockDevice
    depth: int
    is_drive: bool


def devices_of_mount(mount: Mount, sys: Path = SYS) -> tuple[BlockDevice, ...]:
    """The block devices of a mount: one, several (btrfs), or none (tmpfs, NFS, overlay, ZFS).

    sysfs does not list the members of a ZFS pool: `devices_of` finds them by `Roots.pools`.
    """
    device = device_by_number(mount.major, mount.minor, sys)
    if device is None:
        device = device_by_node(mount.source, sys)
    if device is None:
        return ()
    if mount.fs_type == "btrfs":
        return btrfs_members(device, sys) or (device,)
    return (device,)


def btrfs_members(device: BlockDevice, sys: Path = SYS) -> tuple[BlockDevice, ...]:
    """All members of the mounted btrfs file system on `device`; empty if it has none."""
    for entry in sorted((sys / "fs" / "btrfs").glob(f"*/devices/{device.name}")):
        names = sorted(member.name for member in entry.parent.iterdir())
        return tuple(member for name in names if (member := device_by_name(name, sys)))
    return ()


def layers_under(device: BlockDevice, sys: Path = SYS, proc: Path = PROC) -> tuple[Layer, ...]:
    """`device` and everything under it, from the top down, depth first; each device once."""
    layers: dict[str, Layer] = {}

    def descend(upper: BlockDevice, depth: int) -> None:
        if upper.name in layers:
            return
        below = directly_below(upper, sys, proc)
        layers[upper.name] = Layer(upper, depth, is_drive=not below)
        for lower in below:
            descend(lower, depth + 1)

    descend(device, 0)
    return tuple(layers.values())


def directly_below(
    device: BlockDevice, sys: Path = SYS, proc: Path = PROC
) -> tuple[BlockDevice, ...]:
    """The devices directly below one: its disk, its slaves, or those that hold its backing file."""
    if device.is_partition:
        whole = device_by_name(device.whole_disk, sys)
        return () if whole is None else (whole,)
    backing = _backing(device, sys)
    if backing is not None:
        lower = device_by_node(backing, sys)
        if lower is not None:
            return (lower,)
        mount = backing_mount(device, sys, proc)
        return () if mount is None else devices_of_mount(mount, sys)
    slaves = directory_of(device, sys) / "slaves"
    names = sorted(entry.name for entry in slaves.iterdir()) if slaves.is_dir() else []
    return tuple(lower for name in names if (lower := device_by_name(name, sys)))


def backing_mount(device: BlockDevice, sys: Path = SYS, proc: Path = PROC) -> Mount | None:
    """The mount of a loop device's backing file; None if the device is backed by no file."""
    backing = _backing(device, sys)
    if backing is None or device_by_node(backing, sys) is not None:
        return None
    return longest_prefix(Path(backing), read_mounts(proc), None)


def _backing(device: BlockDevice, sys: Path) -> str | None:
    return read_text(directory_of(device, sys) / "loop" / "backing_file")


def drives_under(
    device: BlockDevice, sys: Path = SYS, proc: Path = PROC
) -> tuple[BlockDevice, ...]:
    """The drives under `device`: the device itself if it is one, several for a RAID."""
    layers = layers_under(device, sys, proc)
    return tuple(layer.device for layer in layers if layer.is_drive)


def drives_of_mount(mount: Mount, sys: Path = SYS, proc: Path = PROC) -> tuple[BlockDevice, ...]:
    """The drives under a mount, each once; empty if the mount has no block device."""
    drives: dict[str, BlockDevice] = {}
    for device in devices_of_mount(mount, sys):
        for drive in drives_under(device, sys, proc):
            drives.setdefault(drive.name, drive)
    return tuple(drives.values())


@dataclass(frozen=True, slots=True)
class Roots:
    """The system directories of this machine or of a captured tree.

    `tables` come from `trim.tables.read_tables`, which only root can read; `pools` from
    `zfs.read_pools`.
    """

    sys: Path = SYS
    proc: Path = PROC
    etc: Path = Path("/etc")
    run: Path = Path("/run")
    tables: Tables = field(default_factory=dict)
    pools: Mapping[str, Pool] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Whether the directories are this machine's, not those of a captured tree."""
        return self.proc == PROC


LIVE = Roots()


def pool_of(mount: Mount, roots: Roots) -> Pool | None:
    """The ZFS pool of a mounted dataset; None for other file systems, or without zpool."""
    return roots.pools.get(mount.source.split("/")[0]) if mount.fs_type == "zfs" else None


def devices_of(mount: Mount, roots: Roots) -> tuple[BlockDevice, ...]:
    """The block devices of a mount, also the members of its ZFS pool, in the pool's order."""
    pool = pool_of(mount, roots)
    if pool is None:
        return devices_of_mount(mount, roots.sys)
    devices: dict[str, BlockDevice] = {}
    for member in pool.members:
        device = device_by_node(member.node, roots.sys)
        if device is not None:
            devices[device.name] = device
        elif not member.node.startswith("/dev/"):
            below = longest_prefix(Path(member.node), read_mounts(roots.proc), None)
            found = () if below is None else devices_of_mount(below, roots.sys)
            devices |= {each.name: each for each in found}
    return tuple(devices.values())

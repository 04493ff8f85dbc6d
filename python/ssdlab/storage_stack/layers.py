"""Which devices lie under a mount or a device, layer by layer, down to the drives themselves.

A partition lies on its disk; device-mapper, md and bcache devices on their slaves; a loop device
on the file system of its backing file; a btrfs file system on all its devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssdlab.storage_stack.blockdev import (
    SYS,
    BlockDevice,
    device_called,
    device_named,
    device_numbered,
    directory_of,
)
from ssdlab.storage_stack.mounts import PROC, Mount, longest_prefix, read_mounts
from ssdlab.storage_stack.pseudofile import read_text


@dataclass(frozen=True, slots=True)
class Layer:
    """One device and its place: `depth` 0 is the top, `is_drive` says that nothing lies below."""

    device: BlockDevice
    depth: int
    is_drive: bool


def devices_of_mount(mount: Mount, sys: Path = SYS) -> tuple[BlockDevice, ...]:
    """Block devices a mount stands on: one, several (btrfs), none (tmpfs, nfs, overlay).

    ZFS pools are not resolved (their members are known to ZFS alone): none.
    """
    device = device_numbered(mount.major, mount.minor, sys)
    if device is None:
        device = device_called(mount.source, sys)
    if device is None:
        return ()
    if mount.fs_type == "btrfs":
        return btrfs_members(device, sys) or (device,)
    return (device,)


def btrfs_members(device: BlockDevice, sys: Path = SYS) -> tuple[BlockDevice, ...]:
    """All devices of the mounted btrfs file system that `device` belongs to; none if to none."""
    for entry in sorted((sys / "fs" / "btrfs").glob(f"*/devices/{device.name}")):
        names = sorted(member.name for member in entry.parent.iterdir())
        return tuple(found for name in names if (found := device_named(name, sys)))
    return ()


def layers_under(device: BlockDevice, sys: Path = SYS, proc: Path = PROC) -> tuple[Layer, ...]:
    """`device` and everything under it, from the top down, depth first; each device once."""
    found: list[Layer] = []
    _descend(device, 0, found, sys=sys, proc=proc)
    return tuple(found)


def _descend(device: BlockDevice, depth: int, found: list[Layer], *, sys: Path, proc: Path) -> None:
    if any(layer.device.name == device.name for layer in found):
        return
    below = directly_below(device, sys, proc)
    found.append(Layer(device, depth, is_drive=not below))
    for lower in below:
        _descend(lower, depth + 1, found, sys=sys, proc=proc)


def directly_below(
    device: BlockDevice, sys: Path = SYS, proc: Path = PROC
) -> tuple[BlockDevice, ...]:
    """What a device stands on: its disk, its members, the devices of its backing file; or none."""
    if device.is_partition:
        whole = device_named(device.whole_disk, sys)
        return () if whole is None else (whole,)
    backing = _backing(device, sys)
    if backing is not None:
        lower = device_called(backing, sys)
        if lower is not None:
            return (lower,)
        mount = backing_mount(device, sys, proc)
        return () if mount is None else devices_of_mount(mount, sys)
    slaves = directory_of(device, sys) / "slaves"
    names = sorted(entry.name for entry in slaves.iterdir()) if slaves.is_dir() else []
    return tuple(found for name in names if (found := device_named(name, sys)))


def backing_mount(device: BlockDevice, sys: Path = SYS, proc: Path = PROC) -> Mount | None:
    """The mount that holds a loop device's backing file; None where it has no such file."""
    backing = _backing(device, sys)
    if backing is None or device_called(backing, sys) is not None:
        return None
    return longest_prefix(Path(backing), read_mounts(proc), None)


def _backing(device: BlockDevice, sys: Path) -> str | None:
    return read_text(directory_of(device, sys) / "loop" / "backing_file")


def drives_under(
    device: BlockDevice, sys: Path = SYS, proc: Path = PROC
) -> tuple[BlockDevice, ...]:
    """The drives at the bottom of `device`: itself if nothing lies below; several for a RAID."""
    layers = layers_under(device, sys, proc)
    return tuple(layer.device for layer in layers if layer.is_drive)


def drives_of_mount(mount: Mount, sys: Path = SYS, proc: Path = PROC) -> tuple[BlockDevice, ...]:
    """The drives at the bottom of a mount, each once; none where it stands on no block device."""
    found: dict[str, BlockDevice] = {}
    for device in devices_of_mount(mount, sys):
        for drive in drives_under(device, sys, proc):
            found.setdefault(drive.name, drive)
    return tuple(found.values())

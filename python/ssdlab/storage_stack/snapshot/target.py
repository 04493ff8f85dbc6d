"""The mounts and devices of a target and of its machine, as one snapshot."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ssdlab.errors import TargetError
from ssdlab.snapshot import Device, Mounted, Snapshot, Swap, Unread
from ssdlab.storage_stack.blockdev import (
    BlockDevice,
    device_at,
    device_by_name,
    device_by_node,
    is_block_device,
)
from ssdlab.storage_stack.filesystem import live_options, mount_warnings
from ssdlab.storage_stack.health.report import read_health
from ssdlab.storage_stack.health.smart import Runner, run_program
from ssdlab.storage_stack.layers import (
    Roots,
    devices_of,
    drives_of_mount,
    drives_under,
    layers_under,
    pool_of,
)
from ssdlab.storage_stack.mounts import Mount, longest_prefix, mount_of, read_mounts
from ssdlab.storage_stack.pseudofile import read_text, unescape
from ssdlab.storage_stack.raid import Volume, read_members, volume_of
from ssdlab.storage_stack.snapshot.devices import devices_under
from ssdlab.storage_stack.trim.stack import (
    discards_online,
    trim_layers_of_device,
    trim_layers_of_mount,
)
from ssdlab.storage_stack.zfs import read_properties

_KIB: Final = 1024
_ISSUE: Final = re.compile(r"^\s*issue_discards\s*=\s*(\d)", re.MULTILINE)
_MEMORY: Final = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)


class Sizes(NamedTuple):
    """Sizes of a file system in bytes: block size, total, free for ordinary users."""

    block: int
    total: int
    free: int


def sizes_of(mount_point: Path) -> Sizes | None:
    """The sizes that statvfs returns; None on error."""
    try:
        stat = os.statvfs(mount_point)
    except OSError:
        return None
    return Sizes(stat.f_frsize, stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize)


def is_installed(program: str) -> bool:
    """Whether a program is in PATH."""
    return shutil.which(program) is not None


@dataclass(frozen=True)
class Probes:
    """Sources other than /sys and /proc; replace them to examine a captured machine."""

    as_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    kernel: str = field(default_factory=platform.release)
    sizes: Callable[[Path], Sizes | None] = sizes_of
    run: Runner = run_program
    installed: Callable[[str], bool] = is_installed


def swaps(roots: Roots) -> tuple[Swap, ...]:
    """All active swap spaces, each with its drives."""
    lines = (read_text(roots.proc / "swaps") or "").splitlines()[1:]
    return tuple(_swap(line.split(), roots) for line in lines if line.strip())


def _swap(fields: list[str], roots: Roots) -> Swap:
    name = unescape(fields[0])
    drives = _drives(name, roots)
    return Swap(
        name=name,
        size_bytes=int(fields[2]) * _KIB,
        used_bytes=int(fields[3]) * _KIB,
        drives=tuple(drive.name for drive in drives),
        in_memory=bool(drives) and all(drive.transport == "ram" for drive in drives),
    )


def _drives(name: str, roots: Roots) -> tuple[BlockDevice, ...]:
    device = device_by_node(name, roots.sys)
    if device is not None:
        return drives_under(device, roots.sys, roots.proc)
    mount = longest_prefix(Path(name), read_mounts(roots.proc), None)
    return () if mount is None else drives_of_mount(mount, roots.sys, roots.proc)


def memory_bytes(roots: Roots) -> int | None:
    """Total memory of the machine (MemTotal)."""
    match = _MEMORY.search(read_text(roots.proc / "meminfo") or "")
    return None if match is None else int(match[1]) * _KIB


def lvm_discards(roots: Roots) -> bool | None:
    """Whether LVM discards the space that it frees (issue_discards); None without lvm.conf."""
    text = read_text(roots.etc / "lvm" / "lvm.conf")
    if text is None:
        return None
    match = _ISSUE.search(text)
    return match is not None and match[1] != "0"


_NO_HEALTH: Final = frozenset(
    {"virtio", "xen", "hyper-v", "loop", "ram", "nbd", "dm", "dm-crypt", "dm-lvm", "md", "bcache"}
    | {"pmem", "mmc", "iscsi", "unknown"}
)
"""Transports of devices without SMART."""


def read_snapshot(target: str, roots: Roots, probes: Probes) -> Snapshot:
    """Reads the storage stack under a file, a directory or a block device.

    Raises:
        TargetError: it does not exist or cannot be reached.
    """
    mounts, tops = _mounts_and_devices(target, roots)
    devices, unread = _with_health(devices_under(tops, roots), roots, probes)
    layers = () if mounts else (row for top in tops for row in trim_layers_of_device(top, roots))
    return Snapshot(
        target=target,
        as_root=probes.as_root,
        kernel=probes.kernel,
        memory_bytes=memory_bytes(roots),
        mounts=tuple(_mounted(mount, roots, probes) for mount in mounts),
        devices=tuple(devices),
        layers=tuple(layers),
        swaps=swaps(roots),
        lvm_discards=lvm_discards(roots),
        unread=(*unread, *_unread_tables(devices, roots, probes)),
    )


def _mounts_and_devices(target: str, roots: Roots) -> tuple[list[Mount], list[BlockDevice]]:
    path = Path(target)
    if target.startswith("/dev/") and not roots.is_live:
        device = device_by_node(target, roots.sys)
    else:
        device = device_at(path, roots.sys) if is_block_device(path) else None
    if device is not None:
        return _mounts_on(device, roots)
    if roots.is_live:
        if not path.exists():
            raise TargetError(f"{target} does not exist: give a file, a directory or a device")
        mount: Mount | None = mount_of(path, roots.proc)
    else:
        mount = longest_prefix(path, read_mounts(roots.proc), None)
    assert mount is not None, "every path is below /"
    return [mount], list(devices_of(mount, roots))


def _mounts_on(device: BlockDevice, roots: Roots) -> tuple[list[Mount], list[BlockDevice]]:
    """Mounts on a device (each file system once) and their devices, or no mounts and the device."""
    mounts: dict[tuple[str, str, int, int], Mount] = {}
    tops: list[BlockDevice] = []
    for mount in read_mounts(roots.proc):
        key = (mount.source, mount.fs_type, mount.major, mount.minor)
        devices = devices_of(mount, roots)
        if key not in mounts and any(_is_above(top, device, roots) for top in devices):
            mounts[key] = mount
            tops += devices
    return list(mounts.values()), tops or [device]


def _is_above(top: BlockDevice, device: BlockDevice, roots: Roots) -> bool:
    under = layers_under(top, roots.sys, roots.proc)
    return any(layer.device.name == device.name for layer in under)


def _mounted(mount: Mount, roots: Roots, probes: Probes) -> Mounted:
    sizes = probes.sizes(mount.mount_point)
    return Mounted(
        mount_point=str(mount.mount_point),
        fs_type=mount.fs_type,
        source=mount.source,
        options=tuple(dict.fromkeys(live_options(mount, roots.proc, roots.sys))),
        devices=tuple(device.name for device in devices_of(mount, roots)),
        block_bytes=None if sizes is None else sizes.block,
        total_bytes=None if sizes is None else sizes.total,
        free_bytes=None if sizes is None else sizes.free,
        discards_online=discards_online(mount, roots),
        pool=(pool := pool_of(mount, roots)),
        properties={} if pool is None else read_properties(mount.source, probes.run),
        layers=trim_layers_of_mount(mount, roots),
        warnings={
            warning.code: warning.sentence
            for warning in mount_warnings(mount, roots.proc, roots.sys)
        },
    )


def _with_health(
    devices: Sequence[Device], roots: Roots, probes: Probes
) -> tuple[list[Device], list[Unread]]:
    completed: list[Device] = []
    unread: list[Unread] = []
    for device in devices:
        if not device.is_drive or device.transport in _NO_HEALTH:
            completed.append(device)
            continue
        obstacle = _smartctl_obstacle(probes)
        block = device_by_name(device.name, roots.sys)
        volume = None if block is None else volume_of(block, roots.sys)
        if volume is not None:
            with_members, missing = _volume(device, volume, obstacle, probes)
            known = {each.name for each in completed}  # volumes may share their drives
            completed += [each for each in with_members if each.name not in known]
            unread += missing
            continue
        health = None if block is None or obstacle else read_health(block, probes.run)
        if health is None:
            command = f"sudo smartctl -x {device.node}"
            why = (
                obstacle or "smartctl got no answer: a bridge or controller may need its -d option"
            )
            unread.append(Unread(f"health of {device.name}", obstacle or why, command))
        completed.append(msgspec.structs.replace(device, health=health))
    return completed, unread


def _volume(
    device: Device, volume: Volume, obstacle: str, probes: Probes
) -> tuple[list[Device], list[Unread]]:
    """A volume of a RAID controller and the drives behind it."""
    members = None if obstacle else read_members(device, volume, probes.run)
    if members is None:
        why = obstacle or "smartctl found none"
        command = "sudo smartctl --scan-open; smartctl(8), option -d"
        return [device], [Unread(f"drives of the RAID volume {device.name}", why, command)]
    rotating = {drive.rotational for drive in members.drives}
    described = members.description
    above = msgspec.structs.replace(
        device,
        is_drive=False,
        below=tuple(drive.name for drive in members.drives),
        members_of="controller" if described is None else "volume",
        array_level=(described and described.level) or device.array_level,
        cache_type=(described and described.cache) or device.cache_type,
        rotational=rotating.pop() if len(rotating) == 1 else device.rotational,
    )
    silent = [drive for drive in members.drives if drive.smart_type is None]
    name = described.program if described is not None else ""
    why = f"only {name} knows it: smartctl does not reach it here"
    unread = [Unread(f"health of {drive.name}", why, "smartctl(8), option -d") for drive in silent]
    return [above, *members.drives], unread


def _smartctl_obstacle(probes: Probes) -> str:
    if not probes.installed("smartctl"):
        return "smartctl (package smartmontools) is not installed"
    return "" if probes.as_root else "it takes root"


def _unread_tables(devices: Sequence[Device], roots: Roots, probes: Probes) -> list[Unread]:
    mapped = [device for device in devices if device.transport.startswith("dm")]
    if not mapped or roots.tables:
        return []
    why = "it takes root" if not probes.as_root else "dmsetup printed none"
    names = ", ".join(device.mapped_name or device.name for device in mapped)
    return [Unread(f"device-mapper tables of {names}", why, "sudo dmsetup table")]

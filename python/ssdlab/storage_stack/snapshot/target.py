"""Which mounts and devices a target means, and the snapshot of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from ssdlab.errors import TargetError
from ssdlab.snapshot import Device, Layer, Mounted, Snapshot, Unread
from ssdlab.storage_stack.blockdev import (
    BlockDevice,
    device_at,
    device_called,
    device_named,
    is_block_device,
)
from ssdlab.storage_stack.filesystem import live_options, mount_warnings
from ssdlab.storage_stack.health.report import health
from ssdlab.storage_stack.layers import devices_of_mount, layers_under
from ssdlab.storage_stack.mounts import Mount, longest_prefix, mount_of, read_mounts
from ssdlab.storage_stack.snapshot.devices import devices_under
from ssdlab.storage_stack.snapshot.machine import lvm_discards, memory_bytes, swaps
from ssdlab.storage_stack.snapshot.probes import Probes, is_live
from ssdlab.storage_stack.trim import (
    Passage,
    Roots,
    discards_online,
    passages_of_device,
    passages_of_mount,
)

_NO_HEALTH: Final = frozenset(
    {"virtio", "xen", "hyper-v", "loop", "ram", "nbd", "dm", "dm-crypt", "dm-lvm", "md", "bcache"}
    | {"pmem", "mmc", "iscsi", "unknown"}
)
"""Transports behind which no drive answers smartctl."""


def look(target: str, roots: Roots, probes: Probes) -> Snapshot:
    """Reads all that lies under a file, a directory or a block device.

    Raises:
        TargetError: it does not exist or cannot be reached.
    """
    mounts, tops = _meant(target, roots)
    devices = devices_under(tops, roots)
    asked, unread = _with_health(devices, roots, probes)
    return Snapshot(
        target=target,
        as_root=probes.as_root,
        kernel=probes.kernel,
        memory_bytes=memory_bytes(roots),
        mounts=tuple(_mounted(mount, roots, probes) for mount in mounts),
        devices=tuple(asked),
        layers=() if mounts else tuple(_layers_of(tops, roots)),
        swaps=swaps(roots),
        lvm_discards=lvm_discards(roots),
        unread=(*unread, *_untold(devices, roots, probes)),
    )


def _meant(target: str, roots: Roots) -> tuple[list[Mount], list[BlockDevice]]:
    path = Path(target)
    if target.startswith("/dev/") and not is_live(roots):
        device = device_called(target, roots.sys)
    else:
        device = device_at(path, roots.sys) if is_block_device(path) else None
    if device is not None:
        return _upon(device, roots)
    if is_live(roots):
        if not path.exists():
            raise TargetError(f"{target} does not exist: give a file, a directory or a device")
        mount: Mount | None = mount_of(path, roots.proc)
    else:
        mount = longest_prefix(path, read_mounts(roots.proc), None)
    assert mount is not None, "every path is below /"
    return [mount], list(devices_of_mount(mount, roots.sys))


def _upon(device: BlockDevice, roots: Roots) -> tuple[list[Mount], list[BlockDevice]]:
    """The mounts that stand on a device, each file system once; without any, the device alone."""
    found: dict[tuple[str, str, int, int], Mount] = {}
    tops: list[BlockDevice] = []
    for mount in read_mounts(roots.proc):
        key = (mount.source, mount.fs_type, mount.major, mount.minor)
        devices = devices_of_mount(mount, roots.sys)
        if key not in found and any(_stands_on(top, device, roots) for top in devices):
            found[key] = mount
            tops += devices
    return list(found.values()), tops or [device]


def _stands_on(top: BlockDevice, device: BlockDevice, roots: Roots) -> bool:
    under = layers_under(top, roots.sys, roots.proc)
    return any(layer.device.name == device.name for layer in under)


def _mounted(mount: Mount, roots: Roots, probes: Probes) -> Mounted:
    sizes = probes.sizes(mount.mount_point)
    return Mounted(
        mount_point=str(mount.mount_point),
        fs_type=mount.fs_type,
        source=mount.source,
        options=tuple(dict.fromkeys(live_options(mount, roots.proc, roots.sys))),
        devices=tuple(device.name for device in devices_of_mount(mount, roots.sys)),
        block_bytes=None if sizes is None else sizes.block,
        total_bytes=None if sizes is None else sizes.total,
        free_bytes=None if sizes is None else sizes.free,
        discards_online=discards_online(mount, roots),
        layers=tuple(_layer(row) for row in passages_of_mount(mount, roots)),
        doubts={
            warning.code: warning.sentence
            for warning in mount_warnings(mount, roots.proc, roots.sys)
        },
    )


def _layers_of(tops: Sequence[BlockDevice], roots: Roots) -> list[Layer]:
    return [_layer(row) for top in tops for row in passages_of_device(top, roots)]


def _layer(row: Passage) -> Layer:
    return Layer(row.layer, row.device, row.passes, row.why, row.of_below, row.below_file)


def _with_health(
    devices: Sequence[Device], roots: Roots, probes: Probes
) -> tuple[list[Device], list[Unread]]:
    asked: list[Device] = []
    unread: list[Unread] = []
    for device in devices:
        if not device.is_drive or device.transport in _NO_HEALTH:
            asked.append(device)
            continue
        why = _why_not(probes)
        block = None if why else device_named(device.name, roots.sys)
        found = None if block is None else health(block, probes.run)
        if found is None:
            command = f"sudo smartctl -x {device.node}"
            reason = why or "smartctl got no answer: a bridge or controller may need its -d option"
            unread.append(Unread(f"health of {device.name}", reason, command))
        asked.append(msgspec.structs.replace(device, health=found))
    return asked, unread


def _why_not(probes: Probes) -> str:
    if not probes.installed("smartctl"):
        return "smartctl (package smartmontools) is not installed"
    return "" if probes.as_root else "it takes root"


def _untold(devices: Sequence[Device], roots: Roots, probes: Probes) -> list[Unread]:
    """What a device-mapper table would tell."""
    mapped = [device for device in devices if device.transport.startswith("dm")]
    if not mapped or roots.tables:
        return []
    why = "it takes root" if not probes.as_root else "dmsetup gave none"
    names = ", ".join(device.mapped_name or device.name for device in mapped)
    return [Unread(f"device-mapper tables of {names}", why, "sudo dmsetup table")]

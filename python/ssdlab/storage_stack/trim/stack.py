"""The layers under a mount or a device, from the top down, and the one that blocks a TRIM."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ssdlab.snapshot import TrimLayer
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.layers import backing_mount, devices_of_mount, directly_below
from ssdlab.storage_stack.mounts import Mount
from ssdlab.storage_stack.roots import LIVE, Roots
from ssdlab.storage_stack.trim.devices import device_layer
from ssdlab.storage_stack.trim.filesystems import file_system_layer, schedule_layer


def trim_layers_of_mount(mount: Mount, roots: Roots = LIVE) -> tuple[TrimLayer, ...]:
    """The schedule, the file system, and each device under it once, depth first."""
    layers = [schedule_layer(mount, roots), file_system_layer(mount)]
    visited: set[str] = set()
    for device in devices_of_mount(mount, roots.sys):
        layers += _descend(device, roots, visited)
    return tuple(layers)


def trim_layers_of_device(device: BlockDevice, roots: Roots = LIVE) -> tuple[TrimLayer, ...]:
    """The device and each one under it once, depth first."""
    return tuple(_descend(device, roots, set()))


def _descend(device: BlockDevice, roots: Roots, visited: set[str]) -> list[TrimLayer]:
    if device.name in visited:
        return []
    visited.add(device.name)
    below = directly_below(device, roots.sys, roots.proc)
    layers: list[TrimLayer] = []
    mount = backing_mount(device, roots.sys, roots.proc)
    if mount is not None:
        layers += [schedule_layer(mount, roots), file_system_layer(mount)]
    for lower in below:
        layers += _descend(lower, roots, visited)
    if device.transport == "loop":
        layers = [replace(layer, below_file=True) for layer in layers]
    return [device_layer(device, below, roots), *layers]


def blocking_layer(layers: Iterable[TrimLayer]) -> TrimLayer | None:
    """The topmost layer that itself blocks a TRIM, down to a loop device's file; None if none does.

    The schedule does not count: it says whether discards are sent, not whether they arrive.
    """
    for layer in layers:
        is_own = not (layer.of_below or layer.below_file or layer.layer == "schedule")
        if layer.passes == "no" and is_own:
            return layer
    return None

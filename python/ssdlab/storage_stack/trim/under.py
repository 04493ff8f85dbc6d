"""The rows of all layers under a mount or a device, from the top down, and the one that stops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.layers import backing_mount, devices_of_mount, directly_below
from ssdlab.storage_stack.mounts import Mount
from ssdlab.storage_stack.trim.devices import device_row
from ssdlab.storage_stack.trim.filesystems import file_system_row, schedule_row
from ssdlab.storage_stack.trim.passage import Passage, Roots

_HERE = Roots()


def passages_of_mount(mount: Mount, roots: Roots = _HERE) -> tuple[Passage, ...]:
    """The schedule, the file system, and each device under it once, depth first."""
    rows = [schedule_row(mount, roots), file_system_row(mount)]
    seen: set[str] = set()
    for device in devices_of_mount(mount, roots.sys):
        rows += _descend(device, roots, seen)
    return tuple(rows)


def passages_of_device(device: BlockDevice, roots: Roots = _HERE) -> tuple[Passage, ...]:
    """The device and each one under it once, depth first."""
    return tuple(_descend(device, roots, set()))


def _descend(device: BlockDevice, roots: Roots, seen: set[str]) -> list[Passage]:
    if device.name in seen:
        return []
    seen.add(device.name)
    below = directly_below(device, roots.sys, roots.proc)
    rows = [device_row(device, below, roots)]
    under: list[Passage] = []
    mount = backing_mount(device, roots.sys, roots.proc)
    if mount is not None:
        under += [schedule_row(mount, roots), file_system_row(mount)]
    for lower in below:
        under += _descend(lower, roots, seen)
    if device.transport == "loop":
        under = [replace(row, below_file=True) for row in under]
    return rows + under


def stopper(rows: Iterable[Passage]) -> Passage | None:
    """The topmost layer that passes none by itself, down to a loop device; None: no layer does.

    The schedule is no layer: it says whether anybody asks, not whether the answer gets through.
    """
    for row in rows:
        if row.passes == "no" and row.layer != "schedule" and not (row.of_below or row.below_file):
            return row
    return None

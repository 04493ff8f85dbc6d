"""What a resync of an md array left on its members: all of their blocks count as in use.

A resync copies unused blocks too. A drive that reports its blocks in use (NVMe: NUSE; a loop
device: its backing file) shows that until they are trimmed. Sources: md(4) and the kernel's
admin-guide/md.rst (level, sync_action, component_size).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ssdlab.storage_stack.blockdev import (
    SYS,
    BlockDevice,
    device_by_name,
    directory_of,
    partitions_of,
)
from ssdlab.storage_stack.layers import drives_under
from ssdlab.storage_stack.pseudofile import read_int, read_text
from ssdlab.storage_stack.trim.devices import used_bytes
from ssdlab.warning import MeasurementWarning

REDUNDANT: Final = frozenset({"raid1", "raid10", "raid4", "raid5", "raid6"})
"""Levels of md with a resync."""


def component_bytes(directory: Path) -> int | None:
    """What an array in `directory` uses of each member; None for other devices."""
    size = read_int(directory / "md" / "component_size")
    return size << 10 if size else None


def arrays_on(drive: BlockDevice, sys: Path = SYS) -> tuple[BlockDevice, ...]:
    """The md arrays that a whole drive or its partitions are members of."""
    below = (drive, *partitions_of(drive, sys))
    holders = [directory_of(device, sys) / "holders" for device in below]
    names = {entry.name for folder in holders if folder.is_dir() for entry in folder.iterdir()}
    found = (device_by_name(name, sys) for name in sorted(names) if name.startswith("md"))
    return tuple(device for device in found if device is not None)


def resync_warnings(
    devices: Iterable[BlockDevice], sys: Path = SYS
) -> tuple[MeasurementWarning, ...]:
    """Warnings about the redundant md arrays among `devices`: resync-running, all-in-use."""
    return tuple(warning for device in devices for warning in _of_array(device, sys))


def _of_array(array: BlockDevice, sys: Path) -> Iterator[MeasurementWarning]:
    directory = directory_of(array, sys)
    level = read_text(directory / "md" / "level")
    if level not in REDUNDANT:
        return
    action = read_text(directory / "md" / "sync_action")
    if action not in {None, "idle", "frozen"}:
        yield MeasurementWarning(
            "resync-running",
            f"{array.name} ({level}) is running a {action}, which may write every block of a "
            "member: trim again when it has finished (cat /proc/mdstat).",
        )
    component = component_bytes(directory)
    members = drives_under(array, sys)
    full = [d.name for d in members if component and (used_bytes(d, sys) or 0) >= component]
    if full:
        yield MeasurementWarning(
            "all-in-use",
            f"{', '.join(full)}: all blocks of {array.name} ({level}) count as in use, as after a "
            "resync: free space is not spare until it is trimmed (sudo ssdlab trim DIRECTORY).",
        )

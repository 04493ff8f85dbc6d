"""Finds the blocks of the test file on its device, and selects the ones to read back.

Only the middle of each extent is read: a discard unit that is partly outside the extent correctly
stays mapped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.experiments.trim.content import BLOCK, Span
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.extents import Extent, ExtentFlag, all_flags
from ssdlab.storage_stack.filesystem import COPY_ON_WRITE
from ssdlab.storage_stack.layers import devices_of_mount
from ssdlab.storage_stack.mounts import Mount
from ssdlab.units import format_size

_NO_ADDRESS: Final = (
    ExtentFlag.UNKNOWN
    | ExtentFlag.DELALLOC
    | ExtentFlag.ENCODED
    | ExtentFlag.ENCRYPTED
    | ExtentFlag.NOT_ALIGNED
    | ExtentFlag.INLINE
    | ExtentFlag.TAIL
    | ExtentFlag.UNWRITTEN
    | ExtentFlag.SHARED
)


@dataclass(frozen=True)
class FileBlocks:
    """Spans to read back, in the file and on its device, and the file's extents on the device.

    `why_not` says why nothing can be read back; "" if blocks can. Without `extents`, FITRIM cannot
    be limited to the file's blocks.
    """

    in_file: tuple[Span, ...] = ()
    on_device: tuple[Span, ...] = ()
    extents: tuple[Span, ...] = ()
    why_not: str = ""


def device_below(mount: Mount) -> BlockDevice | None:
    """The block device behind a file system's FIEMAP addresses; None unless exactly one."""
    devices = devices_of_mount(mount)
    if len(devices) != 1 or mount.fs_type in COPY_ON_WRITE:
        return None
    return devices[0] if _is_node_of(devices[0].node, devices[0]) else None


def _is_node_of(node: Path, device: BlockDevice) -> bool:
    """Whether the node in /dev is this device and not another one."""
    try:
        return node.stat().st_rdev == os.makedev(device.major, device.minor)
    except OSError:
        return False


def blocks_of(extents: Iterable[Extent], unit: int) -> FileBlocks:
    """The blocks to read back; `unit` is the discard granularity in bytes."""
    listed = list(extents)
    if not listed or all_flags(listed) & _NO_ADDRESS:
        return FileBlocks(why_not="the file system does not report readable addresses")
    whole = tuple((extent.physical, extent.length) for extent in listed)
    spans = [(extent, middle(extent.physical, extent.length, unit)) for extent in listed]
    usable = [(extent, span) for extent, span in spans if span[1] > 0]
    if not usable:
        return FileBlocks(
            extents=whole,
            why_not=f"no extent of the file is as large as four discard units of "
            f"{format_size(unit)}; give a larger --size",
        )
    return FileBlocks(
        in_file=tuple((e.logical + span[0] - e.physical, span[1]) for e, span in usable),
        on_device=tuple(span for _, span in usable),
        extents=whole,
    )


def middle(start: int, length: int, unit: int) -> Span:
    """The whole units at least one unit away from both ends; an empty span if there are none."""
    unit = max(unit, BLOCK)
    first = -(-(start + unit) // unit) * unit
    last = (start + length - unit) // unit * unit
    return (first, max(0, last - first))

"""Which blocks of the device are the file's, and which of them are looked at.

Looked at is the middle of each extent: at its ends a drive's or file system's unit of discards may
stick out, and stays mapped rightly.
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

_NO_PLACE: Final = (
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
class Places:
    """Spans to look at, in the file and on its device, and whole extents on the device.

    `why_not` says why there is nothing to look at; "" where there is. Without extents the file
    system cannot be asked to discard just them.
    """

    in_file: tuple[Span, ...] = ()
    on_device: tuple[Span, ...] = ()
    extents: tuple[Span, ...] = ()
    why_not: str = ""


def device_below(mount: Mount) -> BlockDevice | None:
    """The one block device whose bytes a file system's addresses count; None if there is none."""
    devices = devices_of_mount(mount)
    if len(devices) != 1 or mount.fs_type in COPY_ON_WRITE:
        return None
    return devices[0] if _is_node_of(devices[0].node, devices[0]) else None


def _is_node_of(node: Path, device: BlockDevice) -> bool:
    """Whether /dev has the device under its usual name: never another device in its place."""
    try:
        return node.stat().st_rdev == os.makedev(device.major, device.minor)
    except OSError:
        return False


def places_of(extents: Iterable[Extent], unit: int) -> Places:
    """Where to look, at `unit` bytes from both ends of each extent and in whole units."""
    listed = list(extents)
    if not listed or all_flags(listed) & _NO_PLACE:
        return Places(why_not="the file system does not tell addresses that can be read")
    whole = tuple((extent.physical, extent.length) for extent in listed)
    spans = [(extent, middle(extent.physical, extent.length, unit)) for extent in listed]
    kept = [(extent, span) for extent, span in spans if span[1] > 0]
    if not kept:
        return Places(
            extents=whole,
            why_not=f"no piece of the file is as large as four units of {format_size(unit)}, in "
            "which discards are done; give a larger --size",
        )
    return Places(
        in_file=tuple((e.logical + span[0] - e.physical, span[1]) for e, span in kept),
        on_device=tuple(span for _, span in kept),
        extents=whole,
    )


def middle(start: int, length: int, unit: int) -> Span:
    """Whole units that lie at least one unit from both ends; a length of 0 where there are none."""
    unit = max(unit, BLOCK)
    first = -(-(start + unit) // unit) * unit
    last = (start + length - unit) // unit * unit
    return (first, max(0, last - first))

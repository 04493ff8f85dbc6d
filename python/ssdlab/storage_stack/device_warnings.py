"""Warnings about kinds of devices: RAM disks, loop devices, virtual disks, network, RAID, USB.

Check each layer (`layers.layers_under`), not only the device on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ssdlab.storage_stack.blockdev import SYS, BlockDevice, directory_of
from ssdlab.storage_stack.pseudofile import read_int
from ssdlab.warning import MeasurementWarning

VIRTUAL: Final = frozenset({"virtio", "xen", "hyper-v"})
NETWORK: Final = frozenset({"nbd", "iscsi", "nvme-tcp", "nvme-rdma", "nvme-fc"})
COMPOSED: Final = frozenset({"md", "dm", "bcache"})


def device_warnings(device: BlockDevice, sys: Path = SYS) -> list[MeasurementWarning]:
    """Warnings about a measurement on this device.

    Codes: memory (fatal), page-cache-below, virtual, network, rotational, composed, usb.
    """
    return list(_warnings(device, sys))


def _warnings(device: BlockDevice, sys: Path) -> Iterator[MeasurementWarning]:
    name, transport = device.name, device.transport
    if transport == "ram":
        # The error raised for a fatal warning adds which target to use instead.
        yield MeasurementWarning("memory", f"{name} is a RAM disk, not a drive.", fatal=True)
    if transport == "loop" and read_int(directory_of(device, sys) / "loop" / "dio") == 0:
        yield MeasurementWarning(
            "page-cache-below",
            f"{name} is a loop device without direct I/O, so reads come from the page cache of "
            "its backing file: attach it with losetup --direct-io=on.",
        )
    if transport in VIRTUAL:
        yield MeasurementWarning(
            "virtual",
            f"{name} is a virtual machine's disk ({transport}): the host may cache, limit or "
            "stripe its I/O, and its drive is unknown; to measure the drive, run ssdlab on the "
            "host.",
        )
    if transport in NETWORK:
        yield MeasurementWarning(
            "network",
            f"{name} is attached over {transport}, so each result includes the network: to "
            "measure the drive, run ssdlab on the machine that has it.",
        )
    # Virtual disks often report wrongly that they rotate.
    if device.rotational and transport not in VIRTUAL | {"loop", "nbd"}:
        yield MeasurementWarning(
            "rotational",
            f"{name} reports that it is a rotating disk, so seeks and not flash determine the "
            "results: use an SSD; if this is one, its bridge or controller reports it wrongly.",
        )
    if transport in COMPOSED:
        yield MeasurementWarning(
            "composed",
            f"{name} ({transport}) combines or maps other devices, so the results are not those "
            "of one drive: measure each device below it too.",
        )
    if transport == "usb":
        yield MeasurementWarning(
            "usb",
            f"{name} is behind a USB bridge, which limits throughput and often blocks TRIM: to "
            "measure the drive, attach it to a SATA port or M.2 slot.",
        )

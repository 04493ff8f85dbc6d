"""Warnings about kinds of devices: RAM disks, loop devices, virtual disks, network, RAID, USB.

Check each layer (`layers.layers_under`), not only the device on top.
"""

from __future__ import annotations

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
    checks = (
        _memory(device),
        _loop(device, sys),
        _virtual(device),
        _network(device),
        _rotational(device),
        _composed(device),
        _usb(device),
    )
    return [warning for warning in checks if warning is not None]


def _memory(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport != "ram":
        return None
    # The refusal of a fatal warning adds what to give instead.
    return MeasurementWarning("memory", f"{device.name} is a RAM disk, not a drive.", fatal=True)


def _loop(device: BlockDevice, sys: Path) -> MeasurementWarning | None:
    direct = read_int(directory_of(device, sys) / "loop" / "dio")
    if device.transport != "loop" or direct != 0:
        return None
    sentence = (
        f"{device.name} is a loop device without direct I/O, so reads come from the page cache of "
        "its backing file: attach it with losetup --direct-io=on."
    )
    return MeasurementWarning("page-cache-below", sentence)


def _virtual(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport not in VIRTUAL:
        return None
    sentence = (
        f"{device.name} is a virtual machine's disk ({device.transport}): the host may cache, "
        "limit or stripe its I/O, and its drive is unknown; to measure the drive, run ssdlab on "
        "the host."
    )
    return MeasurementWarning("virtual", sentence)


def _network(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport not in NETWORK:
        return None
    sentence = (
        f"{device.name} is attached over {device.transport}, so each result includes the network: "
        "to measure the drive, run ssdlab on the machine that has it."
    )
    return MeasurementWarning("network", sentence)


def _rotational(device: BlockDevice) -> MeasurementWarning | None:
    if not device.rotational or device.transport in VIRTUAL | {"loop", "nbd"}:
        return None  # virtual disks often report this wrongly
    sentence = (
        f"{device.name} reports that it is a rotating disk, so seeks and not flash determine the "
        "results: use an SSD; if this is one, its bridge or controller reports it wrongly."
    )
    return MeasurementWarning("rotational", sentence)


def _composed(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport not in COMPOSED:
        return None
    sentence = (
        f"{device.name} ({device.transport}) combines or maps other devices, so the results are "
        "not those of one drive: measure each device below it too."
    )
    return MeasurementWarning("composed", sentence)


def _usb(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport != "usb":
        return None
    sentence = (
        f"{device.name} is behind a USB bridge, which limits throughput and often blocks TRIM: to "
        "measure the drive, attach it to a SATA port or M.2 slot."
    )
    return MeasurementWarning("usb", sentence)

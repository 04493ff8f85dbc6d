"""What the kind of a device does to a measurement: memory, a page cache below, a guest's disk.

Ask about each layer (`layers.layers_under`), not only about the device on top.
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

    Codes: memory (fatal), page-cache-below, virtual, network, rotational, composed, usb. A drive
    that lies about flushes is not seen here.
    """
    examined = (
        _memory(device),
        _loop(device, sys),
        _virtual(device),
        _network(device),
        _rotational(device),
        _composed(device),
        _usb(device),
    )
    return [warning for warning in examined if warning is not None]


def _memory(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport != "ram":
        return None
    return MeasurementWarning(
        "memory", f"{device.name} is a disk in memory: there is no drive.", fatal=True
    )


def _loop(device: BlockDevice, sys: Path) -> MeasurementWarning | None:
    direct = read_int(directory_of(device, sys) / "loop" / "dio")
    if device.transport != "loop" or direct != 0:
        return None
    sentence = (
        f"{device.name} is a loop device without direct I/O: reads come from the page cache of "
        "its backing file; attach it with losetup --direct-io=on."
    )
    return MeasurementWarning("page-cache-below", sentence)


def _virtual(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport not in VIRTUAL:
        return None
    sentence = (
        f"{device.name} is a virtual machine's disk ({device.transport}): the host may cache, "
        "limit and spread its I/O, and what drive is behind it cannot be seen."
    )
    return MeasurementWarning("virtual", sentence)


def _network(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport not in NETWORK:
        return None
    sentence = f"{device.name} is reached over {device.transport}: the network is in each number."
    return MeasurementWarning("network", sentence)


def _rotational(device: BlockDevice) -> MeasurementWarning | None:
    if not device.rotational or device.transport in VIRTUAL | {"loop", "nbd"}:
        return None  # virtual disks often claim it without reason
    sentence = f"{device.name} says it is a rotating disk: seeks, not flash, decide its times."
    return MeasurementWarning("rotational", sentence)


def _composed(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport not in COMPOSED:
        return None
    sentence = f"{device.name} ({device.transport}) joins or transforms devices: measure those too."
    return MeasurementWarning("composed", sentence)


def _usb(device: BlockDevice) -> MeasurementWarning | None:
    if device.transport != "usb":
        return None
    sentence = f"{device.name} is behind a USB bridge, which limits it and often stops TRIM."
    return MeasurementWarning("usb", sentence)

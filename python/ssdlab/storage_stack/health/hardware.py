"""Link speed and temperature of a drive, from sysfs.

Source: Documentation/ABI/testing/sysfs-bus-pci (current_link_speed, current_link_width), sysfs-ata
(sata_spd), sysfs-bus-usb (speed); hwmon: Documentation/hwmon/sysfs-interface, drivetemp, and the
NVMe driver's own sensors. Link speeds account for the line code (8b/10b, 128b/130b) but not for
protocol overhead, so they are upper bounds of the throughput.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from ssdlab.storage_stack.blockdev import SYS, BlockDevice, directory_of
from ssdlab.storage_stack.pseudofile import read_int, read_text

_PCIE_CODE_RATE: Final = {2.5: 0.8, 5.0: 0.8}
"""Code rate by line rate in GT/s: 8b/10b up to 5 GT/s; faster links use 128b/130b."""
_NUMBER: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)")
_SENSORS: Final = ("hwmon*", "hwmon/hwmon*", "device/hwmon/hwmon*")
"""Sensor directories in a drive's `device`: nvme, drivetemp, and nvme before Linux 5.15."""


@dataclass(frozen=True, slots=True)
class Temperature:
    """Degrees Celsius; `limit` is the drive's warning temperature, else its critical one."""

    celsius: float
    limit: float | None


def link_bytes_per_s(device: BlockDevice, sys: Path = SYS) -> float | None:
    """Link speed in bytes per second for each direction; None if not known."""
    directory = _disk_directory(device, sys)
    if device.transport == "nvme":
        return next(_pcie_speeds(directory, "current"), None)
    if device.transport == "sata":
        return _sata(directory, sys)
    if device.transport == "usb":
        return _usb(directory)
    return None


def best_link_bytes_per_s(device: BlockDevice, sys: Path = SYS) -> float | None:
    """The highest link speed that the drive and its port both support; None if not known."""
    directory = _disk_directory(device, sys)
    if device.transport == "nvme":
        # The lower of two maxima: that of the drive's PCIe function and that of its port.
        return min(islice(_pcie_speeds(directory, "max"), 2), default=None)
    if device.transport == "sata":
        return _sata(directory, sys, "hw_sata_spd_limit")
    return None


def temperature(device: BlockDevice, sys: Path = SYS) -> Temperature | None:
    """The temperature of the drive's first sensor; None if it has none."""
    for sensor in _sensors(_disk_directory(device, sys) / "device"):
        millidegrees = read_int(sensor / "temp1_input")
        if millidegrees is not None:
            limits = (read_int(sensor / name) for name in ("temp1_max", "temp1_crit"))
            limit = next(filter(None, limits), None)
            return Temperature(millidegrees / 1000, None if limit is None else limit / 1000)
    return None


def _disk_directory(device: BlockDevice, sys: Path) -> Path:
    directory = directory_of(device, sys)
    return directory.parent if device.is_partition else directory


def _sensors(device: Path) -> Iterator[Path]:
    for pattern in _SENSORS:
        yield from sorted(device.glob(pattern))


def _pcie_speeds(directory: Path, which: str) -> Iterator[float]:
    """Speeds of the drive's own PCIe function first, then of each bridge above it."""
    # With NVMe multipath the disk is below its subsystem, which has links to its controllers.
    controllers = sorted((directory / "device").glob("nvme[0-9]*"))
    for path in (directory, *(controller.resolve() for controller in controllers)):
        for above in path.parents:
            speed = _first_number(read_text(above / f"{which}_link_speed"))
            width = _first_number(read_text(above / f"{which}_link_width"))
            if speed and width:
                yield speed * 1e9 / 8 * _PCIE_CODE_RATE.get(speed, 128 / 130) * width


def _sata(directory: Path, sys: Path, which: str = "sata_spd") -> float | None:
    for part in directory.parts:
        if match := re.fullmatch(r"ata([0-9]+)", part):
            text = read_text(sys / "class" / "ata_link" / f"link{match[1]}" / which)
            speed = _first_number(text)
            return speed * 1e9 / 8 * 0.8 if speed else None  # 8b/10b
    return None


def _usb(directory: Path) -> float | None:
    for parent in directory.parents:
        if (parent / "idVendor").exists():
            speed = _first_number(read_text(parent / "speed"))  # in Mbit/s
            code_rate = 1.0 if speed and speed <= 480 else 0.8 if speed == 5000 else 128 / 132
            return speed * 1e6 / 8 * code_rate if speed else None
    return None


def _first_number(text: str | None) -> float | None:
    match = _NUMBER.search(text or "")
    return float(match[1]) if match else None

"""What the hardware tells beside its blocks: how fast a drive's link is, how warm it is.

Source: Documentation/ABI/testing/sysfs-bus-pci (current_link_speed, current_link_width), sysfs-ata
(sata_spd), sysfs-bus-usb (speed); hwmon: Documentation/hwmon/sysfs-interface, drivetemp, and the
NVMe driver's own sensors. Link speeds are those of the payload's encoding, before protocol: no
transfer can be faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.storage_stack.blockdev import SYS, BlockDevice, directory_of
from ssdlab.storage_stack.pseudofile import read_int, read_text

_PCIE_LINES: Final = {2.5: 0.8, 5.0: 0.8}
"""Share of a lane's transfers that are payload up to 5 GT/s: 8 bits in 10; above, 128 in 130."""
_NUMBER: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)")
_SENSORS: Final = ("hwmon*", "hwmon/hwmon*", "device/hwmon/hwmon*")
"""Where a drive's sensors are below its `device`: nvme, drivetemp, nvme before Linux 5.15."""


@dataclass(frozen=True, slots=True)
class Temperature:
    """Of a drive, in degrees Celsius; `limit` is where it begins to protect itself, if it says."""

    celsius: float
    limit: float | None


def link_bytes_per_s(device: BlockDevice, sys: Path = SYS) -> float | None:
    """What the drive's link can carry each way in bytes a second; None where nothing tells."""
    directory = _whole(device, sys)
    if device.transport == "nvme":
        return _pcie(directory)
    if device.transport == "sata":
        return _sata(directory, sys)
    if device.transport == "usb":
        return _usb(directory)
    return None


def best_link_bytes_per_s(device: BlockDevice, sys: Path = SYS) -> float | None:
    """What the drive and its port together could carry, were the link at its best; None: not told.

    Of PCIe what both say of themselves, of SATA the limit of the link's hardware.
    """
    directory = _whole(device, sys)
    if device.transport == "nvme":
        return _pcie_at_best(directory)
    if device.transport == "sata":
        return _sata(directory, sys, "hw_sata_spd_limit")
    return None


def temperature(device: BlockDevice, sys: Path = SYS) -> Temperature | None:
    """How warm the drive is, by its first sensor; None where it has none."""
    for place in _sensors(_whole(device, sys) / "device"):
        found = read_int(place / "temp1_input")
        if found is not None:
            limits = (read_int(place / name) for name in ("temp1_max", "temp1_crit"))
            limit = next((each for each in limits if each), None)
            return Temperature(found / 1000, None if limit is None else limit / 1000)
    return None


def _whole(device: BlockDevice, sys: Path) -> Path:
    directory = directory_of(device, sys)
    return directory.parent if device.is_partition else directory


def _sensors(device: Path) -> Iterator[Path]:
    for pattern in _SENSORS:
        yield from sorted(device.glob(pattern))


def _pcie(directory: Path) -> float | None:
    return next(_pcie_ends(directory, "current"), None)


def _pcie_at_best(directory: Path) -> float | None:
    """The weaker of the drive's function and the port right above it."""
    ends = [found for found, _ in zip(_pcie_ends(directory, "max"), range(2), strict=False)]
    return min(ends, default=None)


def _pcie_ends(directory: Path, which: str) -> Iterator[float]:
    """Of the drive's own function first, then of what is above it, towards the processor."""
    # With multipath the disk hangs below its subsystem, and the controllers are links there.
    controllers = sorted((directory / "device").glob("nvme[0-9]*"))
    for path in (directory, *(each.resolve() for each in controllers)):
        for above in path.parents:
            speed = _first_number(read_text(above / f"{which}_link_speed"))
            width = _first_number(read_text(above / f"{which}_link_width"))
            if speed and width:
                yield speed * 1e9 / 8 * _PCIE_LINES.get(speed, 128 / 130) * width


def _sata(directory: Path, sys: Path, which: str = "sata_spd") -> float | None:
    for part in directory.parts:
        if match := re.fullmatch(r"ata([0-9]+)", part):
            text = read_text(sys / "class" / "ata_link" / f"link{match[1]}" / which)
            speed = _first_number(text)
            return speed * 1e9 / 8 * 0.8 if speed else None  # 8 bits in 10
    return None


def _usb(directory: Path) -> float | None:
    for place in directory.parents:
        if (place / "idVendor").exists():
            speed = _first_number(read_text(place / "speed"))  # in Mbit/s
            share = 1.0 if speed and speed <= 480 else 0.8 if speed == 5000 else 128 / 132
            return speed * 1e6 / 8 * share if speed else None
    return None


def _first_number(text: str | None) -> float | None:
    match = _NUMBER.search(text or "")
    return float(match[1]) if match else None

"""Link speed and temperature of drives in captured sysfs trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdlab.storage_stack.blockdev import BlockDevice, device_by_name
from ssdlab.storage_stack.health.hardware import Temperature, link_bytes_per_s, temperature

PORT = "devices/pci0000:00/0000:00:1d.0"
NVME = f"{PORT}/0000:03:00.0/nvme/nvme0"


def _device(captured: Any, name: str) -> BlockDevice:
    device = device_by_name(name, captured.sys)
    assert device is not None
    return device


def _write(directory: Path, **texts: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (directory / name).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("speed", "width", "megabytes"),
    [
        ("2.5 GT/s PCIe", "1", 250),
        ("5.0 GT/s PCIe", "4", 2000),
        ("8.0 GT/s PCIe", "4", 3938),
        ("16.0 GT/s PCIe", "4", 7877),
        ("32.0 GT/s PCIe", "2", 7877),
    ],
)
def test_an_nvme_link_has_the_speed_and_width_of_the_drive_and_not_of_its_port(
    captured: Any, speed: str, width: str, megabytes: int
) -> None:
    captured.disk("nvme0n1", "259:0", NVME)
    function = captured.sys / PORT / "0000:03:00.0"
    _write(function, current_link_speed=speed, current_link_width=width)
    _write(captured.sys / PORT, current_link_speed="16.0 GT/s PCIe", current_link_width="16")
    found = link_bytes_per_s(_device(captured, "nvme0n1"), captured.sys)
    assert found == pytest.approx(megabytes * 1e6, rel=0.001)


def test_an_nvme_drive_below_its_subsystem_is_found_by_its_controller(captured: Any) -> None:
    disk = captured.disk("nvme0n1", "259:0", "devices/virtual/nvme-subsystem/nvme-subsys0")
    controller = captured.sys / NVME
    controller.mkdir(parents=True)
    function = captured.sys / PORT / "0000:03:00.0"
    _write(function, current_link_speed="8.0 GT/s PCIe", current_link_width="4")
    (disk.parent / "nvme0").symlink_to(controller)
    (disk / "device").symlink_to(disk.parent)
    found = link_bytes_per_s(_device(captured, "nvme0n1"), captured.sys)
    assert found == pytest.approx(3.938e9, rel=0.001)


def test_a_partition_has_the_sata_link_speed_of_its_disk(captured: Any) -> None:
    disk = captured.disk("sda", "8:0", "devices/pci0000:00/0000:00:1f.2/ata3/host2/block")
    captured.partition(disk, "sda1", "8:1")
    assert link_bytes_per_s(_device(captured, "sda"), captured.sys) is None
    _write(captured.sys / "class/ata_link/link3", sata_spd="6.0 Gbps")
    assert link_bytes_per_s(_device(captured, "sda1"), captured.sys) == 600e6
    _write(captured.sys / "class/ata_link/link3", sata_spd="<unknown>")
    assert link_bytes_per_s(_device(captured, "sda"), captured.sys) is None


@pytest.mark.parametrize(
    ("speed", "megabytes"), [("480", 60), ("5000", 500), ("10000", 1212), ("20000", 2424)]
)
def test_a_usb_link_has_the_speed_of_the_drive_and_not_of_its_hub(
    captured: Any, speed: str, megabytes: int
) -> None:
    bus = "devices/pci0000:00/0000:00:14.0/usb2"
    captured.disk("sdb", "8:16", f"{bus}/2-1/2-1.4/2-1.4:1.0/host6/block")
    _write(captured.sys / bus, speed="20000", idVendor="1d6b")
    _write(captured.sys / bus / "2-1", speed="10000", idVendor="05e3")
    _write(captured.sys / bus / "2-1/2-1.4", speed=speed, idVendor="152d")
    found = link_bytes_per_s(_device(captured, "sdb"), captured.sys)
    assert found == pytest.approx(megabytes * 1e6, rel=0.001)


def test_a_virtual_disk_has_neither_link_speed_nor_temperature(captured: Any) -> None:
    captured.disk("vda", "254:0", "devices/pci0000:00/0000:00:04.0/virtio1/block")
    device = _device(captured, "vda")
    assert link_bytes_per_s(device, captured.sys) is None
    assert temperature(device, captured.sys) is None


@pytest.mark.parametrize("place", ["hwmon3", "hwmon/hwmon0", "device/hwmon/hwmon1"])
def test_the_temperature_is_that_of_the_first_sensor_with_its_limit(
    captured: Any, place: str
) -> None:
    disk = captured.disk("nvme0n1", "259:0", NVME)
    _write(disk / "device" / place, temp1_input="41850", temp1_max="81850", temp1_crit="84850")
    device = _device(captured, "nvme0n1")
    assert temperature(device, captured.sys) == Temperature(41.85, 81.85)


def test_a_limit_of_zero_is_ignored(captured: Any) -> None:
    disk = captured.disk("sda", "8:0", "devices/pci0000:00/0000:00:1f.2/ata3/host2/block")
    _write(disk / "device/hwmon/hwmon2", temp1_input="30000", temp1_max="0", temp1_crit="70000")
    assert temperature(_device(captured, "sda"), captured.sys) == Temperature(30.0, 70.0)

"""Block devices in captured sysfs trees, and real loop devices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssdlab.errors import TargetError
from ssdlab.storage_stack.blockdev import (
    device_at,
    device_by_name,
    device_by_node,
    device_by_number,
    is_block_device,
    partitions_of,
    size_of,
)
from ssdlab.storage_stack.device_warnings import device_warnings

PCI = "devices/pci0000:00/0000:00:1d.0"
NVME = f"{PCI}/0000:01:00.0/nvme/nvme0"
SATA = f"{PCI}/ata3/host2/target2:0:0/2:0:0:0/block"
IDENTITY = {
    "device/model": "KXG50ZNV512G TOSHIBA                    ",
    "device/serial": "68DS10ZYTXXX        ",
    "device/firmware_rev": "AAGA4102",
}


def test_an_nvme_drive_has_identity_queue_limits_and_transport(captured: Any) -> None:
    captured.disk("nvme0n1", "259:0", NVME, IDENTITY)
    device = device_by_name("nvme0n1", captured.sys)
    assert device is not None
    assert device == device_by_number(259, 0, captured.sys)
    assert (device.model, device.serial) == ("KXG50ZNV512G TOSHIBA", "68DS10ZYTXXX")
    assert (device.firmware, device.vendor, device.transport) == ("AAGA4102", None, "nvme")
    assert (device.size, device.logical_sector, device.physical_sector) == (1 << 30, 512, 4096)
    assert (device.scheduler, device.write_cache) == ("none", "write back")
    assert (device.rotational, device.removable, device.read_only) == (False, False, False)
    assert (device.discard_max, device.discard_granularity) == (2147450880, 512)


def test_a_partition_has_its_own_size_and_the_identity_of_its_disk(captured: Any) -> None:
    disk = captured.disk("nvme0n1", "259:0", NVME, IDENTITY)
    captured.partition(disk, "nvme0n1p2", "259:2", start=4096)
    captured.partition(disk, "nvme0n1p1", "259:1")
    part = device_by_number(259, 2, captured.sys)
    assert part is not None
    assert (part.size, part.start, part.whole_disk) == (512 << 20, 4096 * 512, "nvme0n1")
    assert (part.is_partition, part.model, part.transport) == (True, "KXG50ZNV512G TOSHIBA", "nvme")
    whole = device_by_name("nvme0n1", captured.sys)
    assert whole is not None
    assert not whole.is_partition
    assert [partition.name for partition in partitions_of(whole, captured.sys)] == [
        "nvme0n1p1",
        "nvme0n1p2",
    ]
    assert partitions_of(part, captured.sys) == ()


def test_a_scsi_serial_number_is_read_from_vpd_page_80(captured: Any) -> None:
    disk = captured.disk(
        "sda", "8:0", SATA, {"device/model": "Samsung SSD", "device/vendor": "ATA"}
    )
    (disk / "device" / "vpd_pg80").write_bytes(b"\x00\x80\x00\x08S3X1NB0K")
    device = device_by_name("sda", captured.sys)
    assert device is not None
    assert (device.serial, device.vendor) == ("S3X1NB0K", "ATA")


@pytest.mark.parametrize(
    ("name", "where", "files", "transport"),
    [
        ("nvme0n1", NVME, {}, "nvme"),
        (
            "nvme1n1",
            "devices/virtual/nvme-fabrics/ctl/nvme1",
            {"device/transport": "tcp"},
            "nvme-tcp",
        ),
        ("sda", SATA, {}, "sata"),
        ("sdb", f"{PCI}/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block", {}, "usb"),
        ("sdc", f"{PCI}/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block", {}, "sas"),
        ("sdd", "devices/platform/host9/session1/target9:0:0/9:0:0:1/block", {}, "iscsi"),
        ("sde", "devices/pci0000:00/0000:00:05.0/virtio2/host3/target3:0:0/block", {}, "virtio"),
        (
            "vda",
            "devices/pci0000:00/0000:00:02.0/virtio1/block",
            {"device/vendor": "0x1af4"},
            "virtio",
        ),
        ("mmcblk0", "devices/platform/soc/mmc_host/mmc0/mmc0:0001/block", {}, "mmc"),
        ("loop0", "devices/virtual/block", {}, "loop"),
        ("zram0", "devices/virtual/block", {}, "ram"),
        ("dm-0", "devices/virtual/block", {"dm/uuid": "CRYPT-LUKS2-5e-x"}, "dm-crypt"),
        ("dm-1", "devices/virtual/block", {"dm/uuid": "LVM-abc"}, "dm-lvm"),
        ("md0", "devices/virtual/block", {}, "md"),
        ("odd0", "devices/platform/odd/block", {}, "unknown"),
    ],
)
def test_the_transport_is_guessed_from_the_path_in_sysfs(
    captured: Any, name: str, where: str, files: dict[str, str], transport: str
) -> None:
    captured.disk(name, "8:0", where, files)
    device = device_by_name(name, captured.sys)
    assert device is not None
    assert device.transport == transport
    assert device.vendor is None


@pytest.mark.parametrize(
    ("name", "where", "files", "codes"),
    [
        ("nvme0n1", NVME, {}, []),
        ("sda", SATA, {"queue/rotational": "1"}, ["rotational"]),
        ("vda", "devices/pci0/virtio1/block", {"queue/rotational": "1"}, ["virtual"]),
        ("zram0", "devices/virtual/block", {}, ["memory"]),
        ("loop0", "devices/virtual/block", {"loop/dio": "0"}, ["page-cache-below"]),
        ("loop1", "devices/virtual/block", {"loop/dio": "1"}, []),
        ("nbd0", "devices/virtual/block", {}, ["network"]),
        ("md0", "devices/virtual/block", {}, ["composed"]),
        ("sdb", f"{PCI}/usb2/2-1/host6/block", {}, ["usb"]),
    ],
)
def test_each_kind_of_device_has_its_warnings(
    captured: Any, name: str, where: str, files: dict[str, str], codes: list[str]
) -> None:
    captured.disk(name, "8:0", where, files)
    device = device_by_name(name, captured.sys)
    assert device is not None
    assert [warning.code for warning in device_warnings(device, captured.sys)] == codes


def test_attributes_that_the_driver_does_not_report_are_none(captured: Any) -> None:
    disk = captured.disk("sda", "8:0", SATA)
    for name in ("queue/rotational", "queue/write_cache", "queue/discard_max_bytes", "size"):
        (disk / name).unlink()
    device = device_by_name("sda", captured.sys)
    assert device is not None
    assert (device.rotational, device.write_cache) == (None, None)
    assert (device.discard_max, device.size, device.model) == (None, None, None)


def test_a_device_mapper_name_is_resolved(captured: Any) -> None:
    captured.disk("dm-3", "252:3", "devices/virtual/block", {"dm/name": "vg-root"})
    device = device_by_node("/dev/mapper/vg-root", captured.sys)
    assert device is not None
    assert device.name == "dm-3"
    assert device_by_node("/dev/mapper/vg-home", captured.sys) is None
    assert device_by_node("tmpfs", captured.sys) is None


def test_a_real_loop_device_has_the_size_of_its_file(loop_device: Callable[..., Path]) -> None:
    path = loop_device(16, direct_io=False)
    assert is_block_device(path)
    assert size_of(path) == 16 << 20
    device = device_at(path)
    assert (device.node, device.size, device.transport) == (path, 16 << 20, "loop")
    assert [warning.code for warning in device_warnings(device)] == ["page-cache-below"]


def test_a_regular_file_is_not_a_block_device(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not is_block_device(tmp_path / "file")
    assert not is_block_device(tmp_path / "missing")
    for function in (size_of, device_at):
        with pytest.raises(TargetError, match="file is not a block device"):
            function(tmp_path / "file")

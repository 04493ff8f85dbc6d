"""The layers under a device or a mount, down to the drives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ssdlab.storage_stack.blockdev import device_by_name
from ssdlab.storage_stack.layers import (
    devices_of_mount,
    drives_of_mount,
    drives_under,
    layers_under,
)
from ssdlab.storage_stack.mounts import mount_of, read_mounts

VIRTUAL = "devices/virtual/block"


def _raid_with_lvm_on_it(captured: Any) -> None:
    """dm-0 (an LVM volume) on md0 on partitions sda1 and sdb1."""
    volume = captured.disk("dm-0", "252:0", VIRTUAL, {"dm/name": "vg-root", "dm/uuid": "LVM-x"})
    array = captured.disk("md0", "9:0", VIRTUAL)
    captured.rests_on(volume, array)
    for index, name in enumerate(("sda", "sdb")):
        disk = captured.disk(name, f"8:{16 * index}", f"devices/pci0/ata{index}/host{index}/block")
        captured.rests_on(array, captured.partition(disk, f"{name}1", f"8:{16 * index + 1}"))


def test_the_layers_of_an_lvm_volume_on_a_raid_are_in_order_from_the_top_down(
    captured: Any,
) -> None:
    _raid_with_lvm_on_it(captured)
    volume = device_by_name("dm-0", captured.sys)
    assert volume is not None
    layers = layers_under(volume, captured.sys, captured.proc)
    assert [(layer.depth, layer.device.name, layer.is_drive) for layer in layers] == [
        (0, "dm-0", False),
        (1, "md0", False),
        (2, "sda1", False),
        (3, "sda", True),
        (2, "sdb1", False),
        (3, "sdb", True),
    ]
    drives = drives_under(volume, captured.sys, captured.proc)
    assert [drive.name for drive in drives] == ["sda", "sdb"]


def test_a_drive_on_two_paths_is_listed_once(captured: Any) -> None:
    array = captured.disk("md0", "9:0", VIRTUAL)
    disk = captured.disk("sda", "8:0", "devices/pci0/ata1/host0/block")
    for index in (1, 2):
        captured.rests_on(array, captured.partition(disk, f"sda{index}", f"8:{index}"))
    top = device_by_name("md0", captured.sys)
    assert top is not None
    layers = layers_under(top, captured.sys, captured.proc)
    assert [layer.device.name for layer in layers] == ["md0", "sda1", "sda", "sda2"]
    assert [drive.name for drive in drives_under(top, captured.sys, captured.proc)] == ["sda"]


def test_the_drives_of_a_mount_are_those_under_its_device(captured: Any) -> None:
    _raid_with_lvm_on_it(captured)
    captured.mountinfo("22 1 252:0 / / rw - ext4 /dev/mapper/vg-root rw")
    mount = read_mounts(captured.proc)[0]
    drives = drives_of_mount(mount, captured.sys, captured.proc)
    assert [drive.name for drive in drives] == ["sda", "sdb"]


def test_the_devices_of_a_btrfs_mount_are_all_its_members(captured: Any) -> None:
    disks = [
        captured.disk(f"nvme{index}n1", f"259:{index}", f"devices/pci0/nvme/nvme{index}")
        for index in range(3)
    ]
    captured.btrfs("uuid", disks[0], disks[2])
    captured.mountinfo("22 1 0:40 / /data rw - btrfs /dev/nvme0n1 rw")
    devices = devices_of_mount(read_mounts(captured.proc)[0], captured.sys)
    assert [device.name for device in devices] == ["nvme0n1", "nvme2n1"]


def test_a_mount_without_a_device_has_no_drive(captured: Any) -> None:
    captured.mountinfo("22 1 0:40 / /a rw - tmpfs tmpfs rw", "23 1 0:41 / /b rw - nfs host:/x rw")
    for mount in read_mounts(captured.proc):
        assert drives_of_mount(mount, captured.sys, captured.proc) == ()


def test_below_a_loop_device_is_the_drive_of_its_backing_file(captured: Any) -> None:
    disk = captured.disk("sda", "8:0", "devices/pci0/ata1/host0/block")
    captured.partition(disk, "sda1", "8:1")
    captured.disk("loop0", "7:0", VIRTUAL, {"loop/backing_file": "/srv/disk.img"})
    captured.mountinfo("22 1 8:1 / / rw - ext4 /dev/sda1 rw")
    loop = device_by_name("loop0", captured.sys)
    assert loop is not None
    layers = layers_under(loop, captured.sys, captured.proc)
    assert [layer.device.name for layer in layers] == ["loop0", "sda1", "sda"]


def test_a_real_mount_on_a_loop_device_leads_to_the_drive_of_its_image(
    make_filesystem: Callable[..., Path], tmp_path: Path
) -> None:
    for kind in ("ext4", "btrfs"):
        mount = mount_of(make_filesystem(kind, 128))
        (device,) = devices_of_mount(mount)
        assert str(device.node) == mount.source
        assert drives_of_mount(mount) == (drives_of_mount(mount_of(tmp_path)) or (device,))

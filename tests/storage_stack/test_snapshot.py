"""Snapshots of storage stacks on this machine; tests/doctor has captured ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ssdlab.errors import TargetError, UsageError
from ssdlab.snapshot import Snapshot, decode
from ssdlab.storage_stack.layers import Roots
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.storage_stack.snapshot import Probes, file_record, largest, read_snapshot


def _snapshot(target: object) -> Snapshot:
    return read_snapshot(str(target), Roots(), Probes())


def test_a_path_has_its_mount_with_free_space_and_trim_layers(tmp_path: Path) -> None:
    stack = _snapshot(tmp_path)
    (mount,) = stack.mounts
    assert Path(mount.mount_point) == mount_of(tmp_path).mount_point
    assert mount.total_bytes
    assert mount.free_bytes is not None
    assert {row.layer for row in mount.layers} >= {"schedule", "file system"}


def test_a_mounted_loop_device_is_read_with_its_mount(
    make_filesystem: Callable[..., Path],
) -> None:
    point = make_filesystem("ext4", 64)
    source = mount_of(point).source
    by_path, by_device = _snapshot(point), _snapshot(source)
    assert by_path.mounts == by_device.mounts
    assert by_device.devices[0].node == source
    assert by_device.devices[0].layer == "loop"


def test_a_device_without_a_mount_is_read_alone(loop_device: Callable[..., Path]) -> None:
    stack = _snapshot(loop_device(16))
    assert stack.mounts == ()
    assert stack.layers[0].layer == "loop"


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="does not exist"):
        _snapshot(tmp_path / "nowhere")


def test_a_snapshot_survives_a_json_round_trip(tmp_path: Path) -> None:
    stack = _snapshot(tmp_path)
    assert decode(msgspec.json.encode(stack)) == stack
    with pytest.raises(UsageError, match="not a snapshot"):
        decode(b'{"target": 1}')


def test_the_largest_files_are_compared_by_allocated_bytes_and_listed_once(tmp_path: Path) -> None:
    for name, size in (("small", 10_000), ("large", 300_000), ("middle", 100_000)):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "again").hardlink_to(tmp_path / "large")
    (tmp_path / "link").symlink_to(tmp_path / "large")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    files, is_complete = largest(tmp_path, 2, 60)
    assert is_complete
    assert [path.name for path in files] in (["large", "middle"], ["again", "middle"])
    assert largest(tmp_path, 2, 0) == ([], False)


def test_a_file_record_has_extents_and_age(drive_directory: Path) -> None:
    path = drive_directory / "file"
    path.write_bytes(b"x" * (1 << 20))
    with path.open("rb+") as file:
        file.truncate(2 << 20)
        os.fsync(file.fileno())
        os.utime(path, (0, 86_400))
    record, extents = file_record(path)
    assert record.size_bytes == 2 << 20
    assert record.written_days is not None
    assert record.written_days > 10_000
    if record.extents is None:
        pytest.skip("this file system has no FIEMAP")
    assert record.allocated_bytes == sum(extent.length for extent in extents) == 1 << 20
    assert record.ideal_extents == 1


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="not a regular file"):
        file_record(tmp_path)
    with pytest.raises(TargetError, match="cannot be read"):
        file_record(tmp_path / "nowhere")


def test_multipath_usb_and_scsi_attributes_are_read_from_sysfs(captured: Any) -> None:
    bridge = "devices/pci0/usb2/2-1"
    captured.files(f"sys/{bridge}", {"idVendor": "152d", "idProduct": "0578", "speed": "480"})
    cache = {"device/scsi_disk/6:0:0:0/cache_type": "write through"}
    disk = captured.disk("sdb", "8:16", f"{bridge}/2-1:1.0/host6/block", cache)
    names = {"dm/name": "mpatha", "dm/uuid": "mpath-36"}
    captured.rests_on(captured.disk("dm-0", "252:0", "devices/virtual/block", names), disk)
    roots = Roots(captured.sys, captured.proc, captured.etc, captured.run)
    stack = read_snapshot("/dev/mapper/mpatha", roots, Probes(as_root=False, run=lambda _: None))
    top, drive = stack.devices
    assert (top.layer, top.is_multipath, top.below) == ("multipath", True, ("sdb",))
    assert (drive.usb_id, drive.cache_type, drive.is_drive) == ("152d:0578", "write through", True)
    assert drive.link_bytes_per_s == 60e6


def test_the_health_of_an_nvme_drive_over_a_network_is_read(captured: Any) -> None:
    place = "devices/virtual/nvme-fabrics/ctl/nvme1"
    captured.disk("nvme1n1", "259:1", place, {"device/transport": "tcp"})
    roots = Roots(captured.sys, captured.proc, captured.etc, captured.run)
    log = {"nvme_smart_health_information_log": {"percentage_used": 7}}
    probes = Probes(
        as_root=True,
        run=lambda command: json.dumps(log) if command[0] == "smartctl" else None,
        installed=lambda _: True,
    )
    (drive,) = read_snapshot("/dev/nvme1n1", roots, probes).devices
    assert drive.health is not None
    assert (drive.transport, drive.health.worn) == ("nvme-tcp", 7)


def test_a_file_system_mounted_twice_is_listed_once(captured: Any) -> None:
    captured.disk("sda", "8:0", "devices/pci0/ata1/host0/block")
    captured.mountinfo(
        "22 1 8:0 / / rw - ext4 /dev/sda rw", "23 22 8:0 /srv /srv rw - ext4 /dev/sda rw"
    )
    roots = Roots(captured.sys, captured.proc, captured.etc, captured.run)
    stack = read_snapshot("/dev/sda", roots, Probes(as_root=False, run=lambda _: None))
    assert [mount.mount_point for mount in stack.mounts] == ["/"]

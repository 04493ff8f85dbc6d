"""Two device files for one storage: a user of one protects the other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import loop_devices
import pytest

from ssdlab.errors import TargetError
from ssdlab.heal.device.whole import heal_device
from ssdlab.heal.options import DeviceOptions, HealOptions
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.storage_stack.blockdev import device_by_name
from ssdlab.storage_stack.in_use import file_in_use, in_use, recorded_uses
from ssdlab.storage_stack.same_storage import siblings
from ssdlab.target import Consent, parse_target
from ssdlab.witness.target import make_file, require_unused

VIRTUAL = "devices/virtual/block"
PCI = "devices/pci0/host{}/block"


def _uses(captured: Any, name: str) -> list[str]:
    device = device_by_name(name, captured.sys)
    assert device is not None
    return recorded_uses(device, captured.proc, captured.sys)


def _path(captured: Any, name: str, minor: int, **files: str) -> Path:
    attributes = {name.replace("_", "/"): text for name, text in files.items()}
    directory: Path = captured.disk(name, f"8:{minor}", PCI.format(minor), attributes)
    return directory


@pytest.mark.parametrize(
    "identity",
    [
        {"device_wwid": "naa.5000c500a1b2c3d4"},
        {"wwid": "eui.0025385b71b0a1f2"},
        {"device_model": "QEMU DISK", "device_serial": "S1"},
    ],
)
def test_a_disk_by_two_paths_is_protected_by_a_mount_of_the_other_path(
    captured: Any, identity: dict[str, str]
) -> None:
    _path(captured, "sda", 0, **identity)
    other = _path(captured, "sdb", 16, **identity)
    captured.partition(other, "sdb1", "8:17")
    assert _uses(captured, "sda") == []
    captured.mountinfo("22 1 8:17 / /home rw - ext4 /dev/sdb1 rw")
    (reason,) = _uses(captured, "sda")
    assert reason.startswith("it shares bytes with /dev/sdb1 (disk ")
    assert reason.endswith("and /dev/sdb1 is mounted at /home (ext4): umount it first")


def test_disks_of_one_model_with_different_serial_numbers_are_different(captured: Any) -> None:
    _path(captured, "sda", 0, device_model="M", device_serial="S1")
    _path(captured, "sdb", 16, device_model="M", device_serial="S2")
    captured.mountinfo("22 1 8:16 / /home rw - ext4 /dev/sdb rw")
    assert _uses(captured, "sda") == []
    assert len(_uses(captured, "sdb")) == 1


def test_a_partition_on_the_other_path_protects_only_overlapping_partitions(
    captured: Any,
) -> None:
    disks = [_path(captured, name, at, wwid="naa.5") for name, at in (("sda", 0), ("sdb", 16))]
    for disk, at in zip(disks, (1, 17), strict=True):
        captured.partition(disk, f"{disk.name}1", f"8:{at}", start=2048)
        captured.partition(disk, f"{disk.name}2", f"8:{at + 1}", start=2048 + 1048576)
    captured.mountinfo("22 1 8:17 / /home rw - ext4 /dev/sdb1 rw")
    assert len(_uses(captured, "sda1")) == 1
    assert _uses(captured, "sda2") == []


def test_an_unused_multipath_device_is_free(captured: Any) -> None:
    paths = [_path(captured, name, at, wwid="naa.5") for name, at in (("sda", 0), ("sdb", 16))]
    top = captured.disk("dm-0", "252:0", VIRTUAL, {"dm/name": "mpatha"})
    for path in paths:
        captured.rests_on(top, path)
    assert _uses(captured, "dm-0") == []
    assert any("sda is a part of dm-0" in reason for reason in _uses(captured, "sda"))


def test_a_mounted_path_protects_the_multipath_device(captured: Any) -> None:
    first = _path(captured, "sda", 0, wwid="naa.5")
    _path(captured, "sdb", 16, wwid="naa.5")
    top = captured.disk("dm-0", "252:0", VIRTUAL, {"dm/name": "mpatha"})
    captured.rests_on(top, first)
    captured.mountinfo("22 1 8:16 / /home rw - ext4 /dev/sdb rw")
    assert len(_uses(captured, "dm-0")) == 1


def test_two_logical_volumes_on_one_partition_are_different_storage(captured: Any) -> None:
    disk = _path(captured, "sda", 0, wwid="naa.5")
    part = disk / "sda2"
    captured.partition(disk, "sda2", "8:2")
    for name, minor in (("root", 0), ("data", 1)):
        volume = captured.disk(f"dm-{minor}", f"252:{minor}", VIRTUAL, {"dm/name": f"vg-{name}"})
        captured.rests_on(volume, part)
    captured.mountinfo("22 1 252:0 / / rw - ext4 /dev/mapper/vg-root rw")
    assert _uses(captured, "dm-1") == []


def test_a_loop_device_on_a_member_of_a_volume_group_is_not_free(captured: Any) -> None:
    disk = _path(captured, "sda", 0, wwid="naa.5")
    volume = captured.disk("dm-0", "252:0", VIRTUAL, {"dm/name": "vg-root"})
    captured.rests_on(volume, disk)
    captured.disk("loop3", "7:3", VIRTUAL, {"loop/backing_file": "/dev/sda"})
    (reason,) = _uses(captured, "loop3")
    assert "shares bytes with /dev/sda" in reason
    assert "is a part of dm-0 (vg-root)" in reason


@pytest.mark.parametrize(("offset", "is_free"), [("0", False), (str(1 << 30), True)])
def test_two_loop_devices_on_one_file_are_siblings_if_their_ranges_overlap(
    captured: Any, tmp_path: Path, offset: str, *, is_free: bool
) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"")
    other = tmp_path / "hard link"
    other.hardlink_to(image)
    captured.disk("loop3", "7:3", VIRTUAL, {"loop/backing_file": f"{image}", "loop/offset": "0"})
    attributes = {"loop/backing_file": f"{other}", "loop/offset": offset}
    captured.disk("loop4", "7:4", VIRTUAL, attributes)
    captured.mountinfo("22 1 7:3 / /home rw - ext4 /dev/loop3 rw")
    assert (_uses(captured, "loop4") == []) is is_free


@pytest.fixture
def pair(
    make_filesystem: Callable[..., Path], tmp_path: Path
) -> Iterator[tuple[Path, Path, Path, Path]]:
    """A mounted ext4 on one loop device: its mount point, image, device and the second device."""
    point = make_filesystem("ext4", 64)
    (image,) = tmp_path.glob("image-*")
    first = next(iter(_nodes(image)))
    with ExitStack() as undo:
        second, why = loop_devices.attach(image)
        if second is None:
            pytest.skip(f"cannot attach a second loop device: {why}")
        undo.callback(subprocess.run, ["losetup", "--detach", str(second)], check=True)
        yield point, image, first, second


def _nodes(image: Path) -> list[Path]:
    command = ["losetup", "--associated", str(image), "--noheadings", "--output", "NAME"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [Path(line.strip()) for line in done.stdout.splitlines()]


def test_a_device_whose_sibling_is_mounted_is_never_overwritten(
    pair: tuple[Path, Path, Path, Path],
) -> None:
    point, image, first, second = pair
    (point / "kept").write_bytes(b"kept")
    reason = (
        f"it shares bytes with {first} (file {image}), and {first} is mounted at {point} (ext4): "
        "umount it first"
    )
    assert in_use(second)[0] == reason
    consent = Consent(device=str(second))
    run = TargetOptions(parse_target(str(second)), 16 << 20, consent=consent)
    with pytest.raises(TargetError, match="shares bytes with"), open_for_run(run):
        pass
    with pytest.raises(TargetError, match="shares bytes with"):
        require_unused(second, destroy_data=True)
    options = DeviceOptions(HealOptions(dry_run=True), None)
    with pytest.raises(TargetError, match="shares bytes with"):
        heal_device(second, options, print)


def test_an_unused_sibling_does_not_protect_a_free_device(
    loop_device: Callable[..., Path], tmp_path: Path
) -> None:
    first = loop_device(16)
    (image,) = tmp_path.glob("image-*")
    second, why = loop_devices.attach(image)
    if second is None:
        pytest.skip(f"cannot attach a second loop device: {why}")
    try:
        device = device_by_name(second.name)
        assert device is not None
        assert [sibling.device.node for sibling in siblings(device)] == [first]
        assert in_use(second) == []
        script = f"f = open({str(image)!r}, 'r+b', buffering=0); print(flush=True); input()"
        with subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as program:
            assert program.stdout is not None
            program.stdout.readline()
            reasons = in_use(second)
            program.communicate(b"\n")
        assert len(reasons) == 1
        assert f"{image} is open for writing in process {program.pid} (python" in reasons[0]
    finally:
        subprocess.run(["losetup", "--detach", str(second)], check=True)


def test_the_backing_file_of_a_loop_device_is_not_overwritten(
    loop_device: Callable[..., Path], tmp_path: Path
) -> None:
    device = loop_device(16)
    (image,) = tmp_path.glob("image-*")
    other = tmp_path / "link"
    other.symlink_to(image)
    reason = f"{other} is the backing file of {device}: losetup --detach {device} first"
    assert file_in_use(other) == [reason]
    with pytest.raises(TargetError, match="is the backing file of"):
        make_file(other, 16 << 20)
    assert file_in_use(tmp_path / "none") == []

"""Reasons not to overwrite a device, one by one; a free device has none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import btrfs_tools
import pytest

from ssdlab.errors import TargetError
from ssdlab.storage_stack.blockdev import device_by_name
from ssdlab.storage_stack.in_use import in_use, recorded_uses
from ssdlab.storage_stack.mounts import mount_of

VIRTUAL = "devices/virtual/block"


def _uses(captured: Any, name: str) -> list[str]:
    device = device_by_name(name, captured.sys)
    assert device is not None
    return recorded_uses(device, captured.proc, captured.sys)


@pytest.fixture
def disk(captured: Any) -> Path:
    """The unused disk sda with partitions sda1 and sda2."""
    made: Path = captured.disk("sda", "8:0", "devices/pci0/ata1/host0/block")
    captured.partition(made, "sda1", "8:1")
    captured.partition(made, "sda2", "8:2", start=2048 + 1048576)
    return made


def test_an_unused_disk_and_its_partitions_are_free(captured: Any, disk: Path) -> None:
    for name in ("sda", "sda1", "sda2"):
        assert _uses(captured, name) == []


def test_a_mounted_partition_protects_itself_and_its_disk_but_not_other_partitions(
    captured: Any, disk: Path
) -> None:
    captured.mountinfo("22 1 8:1 / /home rw - ext4 /dev/disk/by-label/home rw")
    reason = "/dev/sda1 is mounted at /home (ext4): umount it first"
    assert _uses(captured, "sda") == [reason]
    assert _uses(captured, "sda1") == [reason]
    assert _uses(captured, "sda2") == []


def test_nobody_is_told_to_umount_the_running_system(captured: Any, disk: Path) -> None:
    captured.mountinfo("22 1 8:1 / / rw - ext4 /dev/disk/by-label/root rw")
    reason = "/dev/sda1 is mounted at / (ext4): this system runs from it"
    assert _uses(captured, "sda") == [reason]


def test_a_disk_mounted_as_a_whole_protects_its_partitions(captured: Any, disk: Path) -> None:
    captured.mountinfo("22 1 8:0 / /data rw - xfs /dev/sda rw")
    assert _uses(captured, "sda2") == ["/dev/sda is mounted at /data (xfs): umount it first"]


def test_each_member_of_a_mounted_btrfs_is_in_use(captured: Any, disk: Path) -> None:
    other = captured.disk("sdb", "8:16", "devices/pci0/ata2/host1/block")
    captured.btrfs("uuid", other, disk / "sda2")
    captured.mountinfo("22 1 0:40 / /data rw - btrfs /dev/sdb rw")
    assert _uses(captured, "sda2") == ["/dev/sda2 is mounted at /data (btrfs): umount it first"]
    assert len(_uses(captured, "sda")) == 1
    assert _uses(captured, "sda1") == []


def test_swap_space_is_in_use(captured: Any, disk: Path) -> None:
    captured.swaps("/dev/sda2                               partition\t1000\t0\t-2")
    assert _uses(captured, "sda") == ["/dev/sda2 is swap space: swapoff it first"]
    assert _uses(captured, "sda1") == []


def test_a_device_held_by_another_is_in_use_and_the_holder_is_named(
    captured: Any, disk: Path
) -> None:
    volume = captured.disk("dm-0", "252:0", VIRTUAL, {"dm/name": "vg-root"})
    captured.rests_on(volume, disk / "sda1")
    reason = "/dev/sda1 is a part of dm-0 (vg-root): stop that device first"
    assert _uses(captured, "sda") == _uses(captured, "sda1") == [reason]
    assert _uses(captured, "dm-0") == []
    captured.mountinfo("22 1 252:0 / / rw - ext4 /dev/mapper/vg-root rw")
    assert len(_uses(captured, "dm-0")) == 1


def test_a_device_registered_with_bcache_is_in_use(captured: Any, disk: Path) -> None:
    (disk / "bcache").mkdir()
    assert "bcache" in _uses(captured, "sda")[0]


def test_a_disk_under_a_loop_device_is_in_use(captured: Any, disk: Path) -> None:
    captured.disk("loop3", "7:3", VIRTUAL, {"loop/backing_file": "/dev/sda2"})
    captured.disk("loop4", "7:4", VIRTUAL, {"loop/backing_file": "/srv/image"})
    reason = "/dev/sda2 is the backing of loop3: losetup --detach it first"
    assert _uses(captured, "sda") == [reason]
    assert _uses(captured, "loop4") == []


def test_a_real_loop_device_is_free_until_it_is_mounted(
    loop_device: Callable[..., Path], make_filesystem: Callable[..., Path]
) -> None:
    assert in_use(loop_device(16)) == []
    for kind in ("ext4", "xfs", "btrfs"):
        top = make_filesystem(kind, 128)
        device = mount_of(top).source
        mounted, claimed = in_use(Path(device))
        assert mounted == f"{device} is mounted at {top} ({kind}): umount it first"
        assert "EBUSY" in claimed


def test_a_real_second_device_of_a_btrfs_is_in_use(
    loop_device: Callable[..., Path], make_filesystem: Callable[..., Path]
) -> None:
    second = loop_device(128)
    top = make_filesystem("btrfs", 128)
    assert in_use(second) == []
    added = btrfs_tools.run("btrfs", "-q", "device", "add", str(second), str(top))
    assert added.returncode == 0, added.stderr
    mounted, claimed = in_use(second)
    assert f"{second} is mounted at {top}" in mounted
    assert "EBUSY" in claimed


def test_a_real_swap_space_is_in_use(loop_device: Callable[..., Path]) -> None:
    device = loop_device(16)
    subprocess.run(["mkswap", device], check=True, capture_output=True)
    started = subprocess.run(["swapon", device], check=False, capture_output=True, text=True)
    if started.returncode:
        pytest.skip(f"no swap can be started here: {started.stderr.strip()}")
    try:
        reasons = in_use(device)
    finally:
        subprocess.run(["swapoff", device], check=True)
    assert f"{device} is swap space: swapoff it first" in reasons


def test_a_device_claimed_by_another_program_is_in_use(loop_device: Callable[..., Path]) -> None:
    device = loop_device(16)
    fd = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        (reason,) = in_use(device)
        assert reason.startswith(f"{device} is claimed exclusively by the kernel or a program")
    finally:
        os.close(fd)


@pytest.mark.parametrize(("mode", "count"), [("r+b", 1), ("rb", 0)])
def test_a_program_with_the_device_open_for_writing_is_a_reason_but_not_a_reader(
    loop_device: Callable[..., Path], mode: str, count: int
) -> None:
    device = loop_device(16)
    script = f"f = open({str(device)!r}, {mode!r}, buffering=0); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        reasons = in_use(device)
        program.communicate(b"\n")
    assert len(reasons) == count
    assert all(f"in process {program.pid} (python" in reason for reason in reasons)


def test_a_loop_device_on_a_real_loop_device_keeps_the_lower_one_in_use(
    loop_device: Callable[..., Path],
) -> None:
    lower = loop_device(16)
    upper = subprocess.run(
        ["losetup", "--find", "--show", lower], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        reasons = in_use(lower)
    finally:
        subprocess.run(["losetup", "--detach", upper], check=True)
    backing = f"{lower} is the backing of {Path(upper).name}: losetup --detach it first"
    assert reasons[0] == backing


def test_in_use_refuses_a_regular_file(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="not a block device"):
        in_use(tmp_path)

"""Members of md arrays that count all blocks as in use."""

from __future__ import annotations

from pathlib import Path

import msgspec
from machine import CapturedMachine

from ssdlab.doctor.checks import judge
from ssdlab.snapshot import Device, Snapshot
from ssdlab.storage_stack.blockdev import BlockDevice, device_by_name
from ssdlab.storage_stack.resync import arrays_on, resync_warnings

VIRTUAL = "devices/virtual/block"
COMPONENT_KIB = 128 << 10
SECTORS_FULL = COMPONENT_KIB * 2


def _machine(folder: Path, level: str, nuse: tuple[int, int], action: str) -> CapturedMachine:
    """An array on the first partitions of two NVMe drives."""
    machine = CapturedMachine(folder)
    files = {"md/level": level, "md/sync_action": action, "md/component_size": str(COMPONENT_KIB)}
    array = machine.disk("md0", "9:0", VIRTUAL, files)
    for at, used in enumerate(nuse):
        where = f"devices/pci0000:00/0000:0{at}:00.0/nvme/nvme{at}"
        name = f"nvme{at}n1"
        disk = machine.disk(name, f"259:{at * 2}", where, {"nuse": str(used)})
        part = machine.partition(disk, f"{name}p1", f"259:{at * 2 + 1}")
        machine.rests_on(array, part)
    return machine


def _device(machine: CapturedMachine, name: str) -> BlockDevice:
    device = device_by_name(name, machine.sys)
    assert device is not None
    return device


def _codes(machine: CapturedMachine, name: str = "md0") -> list[str]:
    return [w.code for w in resync_warnings([_device(machine, name)], machine.sys)]


def test_a_member_that_a_resync_filled_is_named(tmp_path: Path) -> None:
    machine = _machine(tmp_path, "raid1", (SECTORS_FULL // 2, SECTORS_FULL), "idle")
    (warning,) = resync_warnings([_device(machine, "md0")], machine.sys)
    assert warning.code == "all-in-use"
    assert "nvme1n1: all blocks of md0 (raid1)" in warning.sentence
    assert "nvme0n1" not in warning.sentence


def test_after_a_trim_nothing_is_said(tmp_path: Path) -> None:
    used = SECTORS_FULL - 8
    assert _codes(_machine(tmp_path, "raid1", (used, used), "idle")) == []


def test_a_running_resync_is_named(tmp_path: Path) -> None:
    assert _codes(_machine(tmp_path, "raid10", (0, 0), "resync")) == ["resync-running"]


def test_striping_has_no_resync(tmp_path: Path) -> None:
    full = (SECTORS_FULL, SECTORS_FULL)
    assert _codes(_machine(tmp_path, "raid0", full, "idle")) == []


def test_the_array_of_a_drive_is_found_by_its_partitions(tmp_path: Path) -> None:
    machine = _machine(tmp_path, "raid1", (0, SECTORS_FULL), "idle")
    arrays = arrays_on(_device(machine, "nvme0n1"), machine.sys)
    assert [array.name for array in arrays] == ["md0"]
    assert arrays_on(_device(machine, "md0"), machine.sys) == ()


def test_the_doctor_names_the_member_too() -> None:
    component = COMPONENT_KIB << 10
    array = Device("md0", "/dev/md0", "md", "md", below=("sda1", "nvme0n1"), array_level="raid1")
    stack = Snapshot(
        target="/dev/md0",
        as_root=True,
        devices=(
            msgspec.structs.replace(array, array_component_bytes=component),
            Device("sda1", "", "partition", "partition", is_partition=True, below=("sda",)),
            Device("sda", "", "drive", "sata", is_drive=True, used_bytes=component),
            Device("nvme0n1", "", "drive", "nvme", is_drive=True, used_bytes=component - 1),
        ),
    )
    verdict = next(each for each in judge(stack) if each.code == "resync-fills")
    assert "; sda count all its blocks as used" in verdict.evidence

"""Layers that are met rarely: each is recognised, or reported as unknown."""

from __future__ import annotations

from pathlib import Path

from machine import CapturedMachine
from reports import programs
from stacks import NVME, SATA, VIRTUAL, Stack, nvme_path, roots_of, sata_path

from ssdlab.doctor.checks import Verdict, judge
from ssdlab.snapshot import Snapshot
from ssdlab.storage_stack.snapshot import read_snapshot
from ssdlab.storage_stack.trim.tables import parse_tables
from ssdlab.storage_stack.zfs import parse_status


def _read(machine: CapturedMachine, tables: str = "") -> Snapshot:
    machine.weekly_trim()
    stack = Stack("/data", programs({}), tables=parse_tables(tables))
    return read_snapshot(stack.target, roots_of(machine, stack), stack.probes())


def _verdict(stack: Snapshot, code: str) -> Verdict:
    return next(verdict for verdict in judge(stack) if verdict.code == code)


def _mapped(machine: CapturedMachine, uuid: str) -> None:
    """A device-mapper device called vol, on a SATA drive."""
    disk = machine.disk("sda", "8:0", sata_path(1), SATA)
    top = machine.disk("dm-0", "252:0", VIRTUAL, {"dm/name": "vol", "dm/uuid": uuid})
    machine.rests_on(top, disk)
    machine.mountinfo("22 1 252:0 / /data rw - xfs /dev/mapper/vol rw")


def test_a_zoned_drive_is_named(tmp_path: Path) -> None:
    machine = CapturedMachine(tmp_path)
    machine.disk("nvme0n1", "259:0", nvme_path(0), {**NVME, "queue/zoned": "host-managed"})
    machine.mountinfo("22 1 259:0 / /data rw - f2fs /dev/nvme0n1 rw")
    assert _verdict(_read(machine), "zoned").value == "host-managed"


def test_a_drive_that_is_not_zoned_is_not(tmp_path: Path) -> None:
    machine = CapturedMachine(tmp_path)
    machine.disk("nvme0n1", "259:0", nvme_path(0), {**NVME, "queue/zoned": "none"})
    machine.mountinfo("22 1 259:0 / /data rw - xfs /dev/nvme0n1 rw")
    assert "zoned" not in {verdict.code for verdict in judge(_read(machine))}


def test_a_usb_bridge_without_uas_takes_one_command_at_a_time(tmp_path: Path) -> None:
    machine = CapturedMachine(tmp_path)
    bridge = "devices/pci0000:00/0000:00:14.0/usb2/2-1"
    machine.files(f"sys/{bridge}", {"idVendor": "152d", "idProduct": "0578", "speed": "5000"})
    where = f"{bridge}/2-1:1.0/host6/target6:0:0/6:0:0:0/block"
    machine.disk("sdb", "8:16", where, {"device/model": "JMS578"})
    driver = machine.sys / bridge / "2-1:1.0" / "driver"
    driver.symlink_to("../../../../../../bus/usb/drivers/usb-storage")
    machine.mountinfo("22 1 8:16 / /data rw - ext4 /dev/sdb rw")
    assert _verdict(_read(machine), "usb-one-command").where == "sdb (USB)"
    driver.unlink()
    driver.symlink_to("../../../../../../bus/usb/drivers/uas")
    assert "usb-one-command" not in {verdict.code for verdict in judge(_read_again(machine))}


def _read_again(machine: CapturedMachine) -> Snapshot:
    stack = Stack("/data", programs({}))
    return read_snapshot(stack.target, roots_of(machine, stack), stack.probes())


def test_an_array_of_dmraid_is_firmware_raid(tmp_path: Path) -> None:
    machine = CapturedMachine(tmp_path)
    _mapped(machine, "DMRAID-isw_abc_Volume0")
    assert "(BIOS)" in _verdict(_read(machine), "firmware-raid").says


def test_vdo_does_not_say_what_it_passes_down(tmp_path: Path) -> None:
    machine = CapturedMachine(tmp_path)
    _mapped(machine, "LVM-1")
    stack = _read(machine, "vol: 0 1000 vdo V4 8:0 262144 4096 32768 16380\n")
    assert _verdict(stack, "trim-unknown").where == "dm-0"
    assert [device.layer for device in stack.devices] == ["VDO", "drive"]


def test_an_unknown_target_of_device_mapper_is_reported(tmp_path: Path) -> None:
    machine = CapturedMachine(tmp_path)
    _mapped(machine, "OTHER-1")
    assert "does not know" in _verdict(_read(machine), "layer-unknown").says


def test_a_drive_that_a_smart_array_passes_through_is_a_drive(tmp_path: Path) -> None:
    machine = CapturedMachine(tmp_path)
    where = "devices/pci0000:00/0000:02:00.0/host0/target0:0:0/0:0:0:0/block"
    machine.disk("sda", "8:0", where, {**SATA, "device/raid_level": "N/A"})
    machine.files("sys/class/scsi_host/host0", {"proc_name": "smartpqi"})
    machine.mountinfo("22 1 8:0 / /data rw - xfs /dev/sda rw")
    assert [(d.layer, d.controller) for d in _read(machine).devices] == [("drive", None)]


def test_members_of_a_pool_belong_to_their_own_vdev() -> None:
    text = (
        "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME  STATE\n\ttank  ONLINE\n"
        "\t  mirror-0  ONLINE\n\t    /dev/sda  ONLINE\n\t    replacing-0  DEGRADED\n"
        "\t      /dev/sdb  ONLINE\n\t    /dev/sdc  ONLINE\n\t  raidz1-1  ONLINE\n"
        "\t    /dev/sdd  ONLINE\n\t  /dev/sde  ONLINE\n\nerrors: No known data errors\n"
    )
    assert [(member.node, member.vdev) for member in parse_status(text)["tank"]] == [
        ("/dev/sda", "mirror-0"),
        ("/dev/sdb", "replacing-0"),
        ("/dev/sdc", "mirror-0"),
        ("/dev/sdd", "raidz1-1"),
        ("/dev/sde", ""),
    ]

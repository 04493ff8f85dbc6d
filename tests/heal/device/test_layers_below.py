"""Layers below a device on which it must not be rewritten in place; captured machines, no root."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import CapturedMachine
from stacks import SATA, VIRTUAL, sata_path

from ssdlab.errors import TargetError
from ssdlab.heal.device.refusal import require_rewritable
from ssdlab.storage_stack.blockdev import device_by_name
from ssdlab.storage_stack.layers import Tables
from ssdlab.storage_stack.trim.tables import parse_tables


@pytest.fixture
def machine(tmp_path: Path) -> CapturedMachine:
    return CapturedMachine(tmp_path)


def refusal(machine: CapturedMachine, name: str, tables: Tables) -> str:
    device = device_by_name(name, machine.sys)
    assert device is not None
    with pytest.raises(TargetError) as refused:
        require_rewritable(device, machine.sys, machine.proc, tables)
    return str(refused.value)


def upper(machine: CapturedMachine, name: str, files: dict[str, str], **disk: str) -> None:
    below = machine.disk("sda", "8:0", sata_path(1), {**SATA, **disk})
    machine.rests_on(machine.disk(name, "252:0", VIRTUAL, files), below)
    machine.mountinfo("22 1 8:1 / / rw - ext4 /dev/sda1 rw")


def test_a_raid_with_parity_is_refused(machine: CapturedMachine) -> None:
    upper(machine, "md0", {"md/level": "raid5"})
    assert "while a stripe is written" in refusal(machine, "md0", {})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("vg-a: 0 100 thin 252:5 1", "vg-a is thin"),
        ("vg-a: 0 100 snapshot-origin 252:5", "vg-a is snapshot-origin"),
        ("vg-a: 0 100 raid raid6_zr 3 128 region_size 1024", "vg-a is raid6_zr"),
    ],
)
def test_a_volume_that_shares_space_or_has_parity_is_refused(
    table: str, words: str, machine: CapturedMachine
) -> None:
    upper(machine, "dm-0", {"dm/name": "vg-a", "dm/uuid": "LVM-1"})
    assert words in refusal(machine, "dm-0", parse_tables(table))


def test_a_linear_volume_on_a_plain_drive_is_accepted(machine: CapturedMachine) -> None:
    upper(machine, "dm-0", {"dm/name": "vg-a", "dm/uuid": "LVM-1"})
    device = device_by_name("dm-0", machine.sys)
    assert device is not None
    tables = parse_tables("vg-a: 0 100 linear 8:0 2048")
    require_rewritable(device, machine.sys, machine.proc, tables)


def test_zoned_and_read_only_drives_are_refused(machine: CapturedMachine) -> None:
    upper(machine, "dm-0", {"dm/name": "vg-a"}, **{"queue/zoned": "host-managed"})
    assert "zones" in refusal(machine, "dm-0", {})
    (machine.sys / "dev/block/8:0").resolve().joinpath("ro").write_text("1")
    assert "read-only" in refusal(machine, "dm-0", {})

"""Outputs of controllers' programs, as users published them, reduced to the facts that matter here.

Serial numbers are invented. docs/storage-stacks.md says where each output was published.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ssdlab.storage_stack.raid_programs import Description, ListedDrive, describe

OUTPUTS = Path(__file__).parents[1] / "captured" / "raid_outputs"
SSACLI = "ssacli ctrl all show config detail"
ARCCONF = "arcconf GETCONFIG 1 AL"
STORCLI = "/call/vall show all J"


def _described(driver: str, node: str, target: int, command: str, name: str) -> Description | None:
    text = (OUTPUTS / name).read_text()

    def run(words: Sequence[str]) -> str | None:
        return text if " ".join(words) == command else None

    return describe(driver, node, target, run)


CASES = {
    "storcli 7, two SSDs": (
        ("megaraid_sas", "/dev/sda", 0, f"storcli64 {STORCLI}", "storcli_7.json"),
        ("RAID1", "write back", ["16", "17"], "SAMSUNG MZ7LH480HAHQ-00005", True),
    ),
    "perccli 7, one rotating disk": (
        ("megaraid_sas", "/dev/sdc", 2, f"perccli64 {STORCLI}", "storcli_7.json"),
        ("RAID0", "write through", ["14"], "ST1200MM0129", False),
    ),
    "storcli 8": (
        ("mpi3mr", "/dev/sdg", 1, f"storcli2 {STORCLI}", "storcli_8.json"),
        ("RAID0", "write back", ["312"], "SAMSUNG MZ7L3960HCJR-00AK1", True),
    ),
    "ssacli, RAID 6 of SSDs": (
        ("smartpqi", "/dev/sda", 0, SSACLI, "ssacli.txt"),
        (
            *("RAID 6", "write back", ["2I:1:1", "2I:1:2", "2I:1:3", "2I:1:4"]),
            *("ATA MTFDDAK960TCB", True),
        ),
    ),
    "hpssacli, rotating disks of the second controller": (
        ("hpsa", "/dev/sdc", 0, SSACLI.replace("ssacli", "hpssacli"), "ssacli.txt"),
        ("RAID 5", "write back", ["2E:1:1", "2E:1:2", "2E:1:3"], "ATA MB1000EBZQB", False),
    ),
    "arcconf without disk names: the target is the number": (
        ("aacraid", "/dev/sdb", 1, ARCCONF, "arcconf_aacraid.txt"),
        (
            *("RAID 5", "write through"),
            ["Enclosure 0, Slot 0", "Enclosure 0, Slot 1", "Enclosure 0, Slot 2"],
            *("Samsung SSD 840", True),
        ),
    ),
    "arcconf of a SmartRAID": (
        ("smartpqi", "/dev/sda", 7, ARCCONF, "arcconf_smartpqi.txt"),
        (
            *("RAID 1", "write back"),
            [
                "Enclosure Direct Attached, Slot 0(Connector 0:CN0)",
                "Enclosure Direct Attached, Slot 1(Connector 0:CN0)",
            ],
            *("INTEL SSDSC2KB240G8", True),
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_volume_has_the_level_cache_and_drives_that_its_program_prints(name: str) -> None:
    arguments, (level, cache, drives, model, is_ssd) = CASES[name]
    found = _described(*arguments)
    assert found is not None
    assert found.program == arguments[3].split()[0]
    assert (found.level, found.cache) == (level, cache)
    assert [drive.number or drive.place for drive in found.drives] == drives
    assert (found.drives[0].model, found.drives[0].is_ssd) == (model, is_ssd)


@pytest.mark.parametrize(
    ("driver", "command", "name"),
    [
        ("megaraid_sas", f"storcli64 {STORCLI}", "storcli_7.json"),
        ("mpi3mr", f"storcli2 {STORCLI}", "storcli_8.json"),
        ("smartpqi", SSACLI, "ssacli.txt"),
        ("smartpqi", ARCCONF, "arcconf_smartpqi.txt"),
        ("aacraid", ARCCONF, "arcconf_aacraid.txt"),
    ],
)
def test_a_volume_that_the_program_does_not_list_is_not_described(
    driver: str, command: str, name: str
) -> None:
    assert _described(driver, "/dev/sdz", 9, command, name) is None


def test_arcconf_tells_how_smartctl_reaches_the_drives() -> None:
    found = _described("aacraid", "/dev/sdb", 1, ARCCONF, "arcconf_aacraid.txt")
    assert found is not None
    assert [drive.address for drive in found.drives] == ["0,8", "0,9", "0,10"]


def test_volumes_of_a_second_adaptec_controller_are_found() -> None:
    text = (OUTPUTS / "arcconf_smartpqi.txt").read_text()
    outputs = {
        "arcconf GETCONFIG 1 AL": "Controllers found: 2\n",
        "arcconf GETCONFIG 2 AL": text,
    }
    found = describe("smartpqi", "/dev/sdb", 0, lambda words: outputs.get(" ".join(words)))
    assert found is not None
    assert found.level == "RAID 6"
    assert [drive.serial for drive in found.drives] == ["2BG00004", "2BG00005", "2BG00006"]


def test_a_spare_of_the_array_holds_no_data_of_the_volume() -> None:
    text = (OUTPUTS / "ssacli.txt").read_text()
    at = text.rindex("Drive Type: Data Drive", 0, text.index("2E:1:1"))
    with_spare = text[:at] + text[at:].replace("Data Drive", "Spare Drive", 1)
    found = describe("smartpqi", "/dev/sda", 0, lambda words: with_spare)
    assert found is not None
    assert [drive.place for drive in found.drives] == ["2I:1:1", "2I:1:2", "2I:1:3"]


def test_a_target_does_not_tell_the_volume_where_there_are_two_controllers() -> None:
    text = (OUTPUTS / "arcconf_aacraid.txt").read_text()
    assert "Controllers found: 1" in text
    two = text.replace("Controllers found: 1", "Controllers found: 2")
    assert describe("aacraid", "/dev/sdb", 1, lambda words: two) is None


def test_an_empty_field_does_not_take_the_next_lines_value() -> None:
    text = (OUTPUTS / "ssacli.txt").read_text()
    without = text.replace("Serial Number: 9QJ000001", "Serial Number:")
    found = describe("hpsa", "/dev/sdc", 0, lambda words: without if words[0] == "ssacli" else None)
    assert found is not None
    assert [drive.serial for drive in found.drives] == ["", "9QJ000002", "9QJ000003"]


@pytest.mark.parametrize(
    ("listed", "read", "same"),
    [
        ("9XG00003", "9XG00003", True),
        ("9QJ6KCSN00009021N2XL", "9QJ6KCSN", True),
        ("S1AT0000000001", "S1AT0000000002", False),
        ("", "S1AT0000000002", False),
        ("S1AT0000000001", None, False),
    ],
)
def test_serial_numbers_of_sas_drives_may_be_printed_longer(
    listed: str, read: str | None, same: bool
) -> None:
    assert ListedDrive(serial=listed).is_serial(read) is same

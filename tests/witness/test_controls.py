"""Controls: software that does not flush is seen, and a cut without proof is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.layers import Layer
from ssdlab.witness import controls
from ssdlab.witness.controls import describe, flush_count, proof


def known(unsafe: int | None = None, boot: str = "a") -> dict[str, Any]:
    drive = {"name": "nvme0n1", "serial": "S1", "unsafe_shutdowns": unsafe}
    return {"boot_id": boot, "drives": [drive]}


@pytest.mark.parametrize(
    ("before", "after", "attested", "level"),
    [
        (known(7), known(8, "b"), False, "measured"),
        (known(7), known(7, "b"), True, "contradicted"),
        (known(7), known(9, "b"), False, "none"),
        (known(7), known(9, "b"), True, "attested"),
        (known(), known(boot="b"), False, "none"),
        (known(), known(), False, "none"),
        (known(), known(boot="b"), True, "attested"),
    ],
)
def test_power_is_proven_lost_by_the_drives_own_count_or_by_whoever_attests_it(
    before: dict[str, Any],
    after: dict[str, Any],
    attested: bool,
    level: str,
) -> None:
    found = proof(before, after, attested=attested)
    assert found.level == level
    assert found.counts == (level in {"measured", "attested"})


def nvme(vwc: int) -> Any:
    def run(command: list[str]) -> str | None:
        if command[:2] == ["nvme", "smart-log"]:
            return json.dumps({"unsafe_shutdowns": 12, "power_cycles": 90})
        return json.dumps({"vwc": vwc}) if command[0] == "nvme" else None

    return run


def layer(write_cache: str, transport: str = "nvme") -> Layer:
    device = BlockDevice(
        "nvme0n1", 259, 0, "nvme0n1", transport, 1 << 30, serial="S", write_cache=write_cache
    )
    return Layer(device, 0, is_drive=True)


@pytest.mark.parametrize(
    ("write_cache", "vwc", "told"),
    [
        ("write back", 1, None),
        ("write through", 1, "though the drive says that it has one"),
        ("write through", 0, None),
    ],
)
def test_a_kernel_that_was_told_of_no_cache_is_seen_where_the_drive_has_one(
    write_cache: str, vwc: int, told: str | None
) -> None:
    drive = controls._drive(layer(write_cache).device, nvme(vwc))
    found = controls._dropped(layer(write_cache), drive)
    assert [told in each for each in found if told] == ([True] if told else [])
    assert bool(found) == bool(told)
    assert (drive["unsafe_shutdowns"], drive["power_cycles"]) == (12, 90)


def test_an_nvme_drive_over_a_network_is_asked_as_one_in_the_machine_is() -> None:
    drive = controls._drive(layer("write through", "nvme-tcp").device, nvme(0))
    assert (drive["unsafe_shutdowns"], drive["volatile_cache"]) == (12, False)
    assert controls._dropped(layer("write through", "nvme-tcp"), drive) == []


@pytest.mark.parametrize("printed", [12, "12"])
def test_a_count_is_one_also_where_nvme_cli_prints_it_as_a_text(printed: int | str) -> None:
    log = {"unsafe_shutdowns": printed, "power_cycles": printed}
    drive = controls._drive(layer("write back").device, lambda _command: json.dumps(log))
    assert (drive["unsafe_shutdowns"], drive["power_cycles"]) == (12, 12)
    silent = controls._drive(layer("write back").device, lambda _command: json.dumps({}))
    assert silent["unsafe_shutdowns"] is None


def test_a_drive_that_nobody_could_ask_is_told_so() -> None:
    silent = controls._drive(layer("write through").device, lambda _command: None)
    (sentence,) = controls._dropped(layer("write through"), silent)
    assert "was not asked" in sentence


def test_the_counters_of_a_sata_drive_are_those_of_its_attributes() -> None:
    table = [{"id": 174, "raw": {"value": 5}}, {"id": 12, "raw": {"value": 40}}]
    report = {"ata_smart_attributes": {"table": table}}
    assert controls._smartctl(report) == {"unsafe_shutdowns": 5, "power_cycles": 40}


def test_a_file_is_described_with_its_machine(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(512))
    found = describe(str(file), lambda _command: None)
    assert found["boot_id"]
    assert isinstance(found["software"], list)


def test_flushes_are_counted_by_whole_disk(tmp_path: Path) -> None:
    assert flush_count("nbd+unix:///?socket=x") is None

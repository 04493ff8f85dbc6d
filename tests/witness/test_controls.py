"""Controls: software that sends no flush is detected, and a cut needs power_loss of power loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.layers import Layer
from ssdlab.witness import controls
from ssdlab.witness.controls import describe, flush_count, power_loss


def state(unsafe: int | None = None, boot: str = "a") -> dict[str, Any]:
    drive = {"name": "nvme0n1", "serial": "S1", "unsafe_shutdowns": unsafe}
    return {"boot_id": boot, "drives": [drive]}


@pytest.mark.parametrize(
    ("before", "after", "attested", "level"),
    [
        (state(7), state(8, "b"), False, "measured"),
        (state(7), state(7, "b"), True, "contradicted"),
        (state(7), state(9, "b"), False, "none"),
        (state(7), state(9, "b"), True, "attested"),
        (state(), state(boot="b"), False, "none"),
        (state(), state(), False, "none"),
        (state(), state(boot="b"), True, "attested"),
    ],
)
def test_a_power_loss_is_proved_by_the_drives_counter_or_attested_by_the_user(
    before: dict[str, Any],
    after: dict[str, Any],
    attested: bool,
    level: str,
) -> None:
    evidence = power_loss(before, after, attested=attested)
    assert evidence.level == level
    assert evidence.counts == (level in {"measured", "attested"})


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
    ("write_cache", "vwc", "reported"),
    [
        ("write back", 1, None),
        ("write through", 1, "but the drive reports one"),
        ("write through", 0, None),
    ],
)
def test_a_kernel_that_sends_no_flush_to_a_drive_with_a_cache_is_reported(
    write_cache: str, vwc: int, reported: str | None
) -> None:
    drive = controls._drive_state(layer(write_cache).device, nvme(vwc))
    sentences = controls._suppressed_flushes(layer(write_cache), drive)
    assert [reported in each for each in sentences if reported] == ([True] if reported else [])
    assert bool(sentences) == bool(reported)
    assert (drive["unsafe_shutdowns"], drive["power_cycles"]) == (12, 90)


def test_an_nvme_drive_over_a_network_is_queried_as_a_local_one() -> None:
    drive = controls._drive_state(layer("write through", "nvme-tcp").device, nvme(0))
    assert (drive["unsafe_shutdowns"], drive["volatile_cache"]) == (12, False)
    assert controls._suppressed_flushes(layer("write through", "nvme-tcp"), drive) == []


@pytest.mark.parametrize("printed", [12, "12"])
def test_a_counter_is_read_also_if_nvme_cli_prints_it_as_a_string(printed: int | str) -> None:
    log = {"unsafe_shutdowns": printed, "power_cycles": printed}
    drive = controls._drive_state(layer("write back").device, lambda _command: json.dumps(log))
    assert (drive["unsafe_shutdowns"], drive["power_cycles"]) == (12, 12)
    silent = controls._drive_state(layer("write back").device, lambda _command: json.dumps({}))
    assert silent["unsafe_shutdowns"] is None


def test_a_drive_that_could_not_be_queried_is_reported() -> None:
    silent = controls._drive_state(layer("write through").device, lambda _command: None)
    (sentence,) = controls._suppressed_flushes(layer("write through"), silent)
    assert "could not be queried" in sentence


def test_the_counters_of_a_sata_drive_come_from_its_smart_attributes() -> None:
    table = [{"id": 174, "raw": {"value": 5}}, {"id": 12, "raw": {"value": 40}}]
    report = {"ata_smart_attributes": {"table": table}}
    assert controls._smartctl(report) == {"unsafe_shutdowns": 5, "power_cycles": 40}


def test_the_state_of_a_file_includes_its_machine(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(512))
    described = describe(str(file), lambda _command: None)
    assert described["boot_id"]
    assert isinstance(described["software"], list)


def test_flushes_of_a_served_twin_are_not_counted() -> None:
    assert flush_count("nbd+unix:///?socket=x") is None

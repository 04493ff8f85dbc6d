"""Write counters of drives from the output of smartctl and nvme-cli."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.health import smart

DRIVE = BlockDevice("nvme0n1", 259, 0, "nvme0n1", "nvme", 1 << 40)


def _ata(**raw: int) -> dict[str, Any]:
    rows = [
        {"id": 241 + at, "name": name, "value": 100, "raw": {"value": value, "string": str(value)}}
        for at, (name, value) in enumerate(raw.items())
    ]
    return {"smartctl": {"exit_status": 4}, "ata_smart_attributes": {"revision": 1, "table": rows}}


def _counters(smartctl: object, ocp: object = None) -> smart.WriteCounters | None:
    def run(command: Sequence[str]) -> str | None:
        answer = smartctl if command[0] == "smartctl" else ocp
        assert command[-1] == "/dev/nvme0n1" or "/dev/nvme0n1" in command
        return answer if answer is None or isinstance(answer, str) else json.dumps(answer)

    return smart.read_write_counters(DRIVE, run)


def test_a_data_centre_drive_counts_both_in_units_of_32_mib() -> None:
    found = _counters(_ata(Host_Writes_32MiB=44554, NAND_Writes_32MiB=90287))
    assert found is not None
    assert (found.host_bytes, found.flash_bytes) == (44554 << 25, 90287 << 25)
    assert found.step_bytes == 32 << 20


def test_page_counters_give_the_right_ratio() -> None:
    counts = {"Total_LBAs_Written": 132342254, "Host_Program_Page_Count": 4135750}
    found = _counters(_ata(**counts, Bckgnd_Program_Page_Cnt=1311028))
    assert found is not None
    assert found.flash_bytes is not None
    assert found.flash_bytes / found.host_bytes == pytest.approx(1 + 1311028 / 4135750)


def test_a_client_drive_reports_host_writes_only() -> None:
    found = _counters(_ata(Power_On_Hours=12, Total_LBAs_Written=1000))
    assert found is not None
    assert (found.host_bytes, found.flash_bytes) == (512_000, None)


def test_an_nvme_drive_counts_thousands_of_sectors_and_flash_writes_in_the_ocp_log() -> None:
    log = {"nvme_smart_health_information_log": {"data_units_written": 7}}
    alone = _counters(log)
    assert alone is not None
    assert (alone.host_bytes, alone.flash_bytes) == (7 * 512_000, None)
    for name in ("Physical media units written", "physical_media_units_written"):
        both = _counters(log, {name: {"hi": 1, "lo": 5}})
        assert both is not None
        assert both.flash_bytes == (1 << 64) + 5


@pytest.mark.parametrize("printed", [None, "", "no JSON", "[]", "{}", '{"smartctl": {}}'])
def test_without_counters_the_result_is_none(printed: str | None) -> None:
    assert _counters(printed) is None


def test_without_smartctl_the_result_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert smart.read_write_counters(DRIVE) is None

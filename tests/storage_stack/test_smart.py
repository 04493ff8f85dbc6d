"""What drives count of their writing, from what smartctl and nvme-cli print of them."""

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


def _asked(smartctl: object, ocp: object = None) -> smart.WriteCounters | None:
    def run(command: Sequence[str]) -> str | None:
        answer = smartctl if command[0] == "smartctl" else ocp
        assert command[-1] == "/dev/nvme0n1" or "/dev/nvme0n1" in command
        return answer if answer is None or isinstance(answer, str) else json.dumps(answer)

    return smart.read_write_counters(DRIVE, run)


def test_a_data_centre_drive_counts_both_by_32_mib() -> None:
    found = _asked(_ata(Host_Writes_32MiB=44554, NAND_Writes_32MiB=90287))
    assert found is not None
    assert (found.host_bytes, found.flash_bytes) == (44554 << 25, 90287 << 25)
    assert found.step_bytes == 32 << 20


def test_counts_of_pages_give_the_right_ratio() -> None:
    counts = {"Total_LBAs_Written": 132342254, "Host_Program_Page_Count": 4135750}
    found = _asked(_ata(**counts, Bckgnd_Program_Page_Cnt=1311028))
    assert found is not None
    assert found.flash_bytes is not None
    assert found.flash_bytes / found.host_bytes == pytest.approx(1 + 1311028 / 4135750)


def test_a_client_drive_tells_what_the_host_wrote_and_no_more() -> None:
    found = _asked(_ata(Power_On_Hours=12, Total_LBAs_Written=1000))
    assert found is not None
    assert (found.host_bytes, found.flash_bytes) == (512_000, None)


def test_an_nvme_drive_counts_by_thousands_of_sectors_and_flash_in_the_ocp_log() -> None:
    log = {"nvme_smart_health_information_log": {"data_units_written": 7}}
    alone = _asked(log)
    assert alone is not None
    assert (alone.host_bytes, alone.flash_bytes) == (7 * 512_000, None)
    for name in ("Physical media units written", "physical_media_units_written"):
        both = _asked(log, {name: {"hi": 1, "lo": 5}})
        assert both is not None
        assert both.flash_bytes == (1 << 64) + 5


@pytest.mark.parametrize("printed", [None, "", "no JSON", "[]", "{}", '{"smartctl": {}}'])
def test_where_nothing_is_told_there_is_nothing(printed: str | None) -> None:
    assert _asked(printed) is None


def test_a_program_that_is_not_there_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert smart.read_write_counters(DRIVE) is None

"""Recordings of the Windows script, written by hand in the form of Windows' classes."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import pytest

from ssdlab.doctor.checks import Verdict, judge
from ssdlab.doctor.collected import script
from ssdlab.doctor.examine import read_recorded
from ssdlab.doctor.windows import read_windows
from ssdlab.errors import UsageError
from ssdlab.snapshot import Snapshot

RECORDING = Path(__file__).with_name("windows.json")


def _record(letter: str, **changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORDING.read_text())
    return {**record, "letter": letter, "target": f"{letter}:\\", **changes}


def _codes(stack: Snapshot) -> list[str]:
    verdicts = judge(stack)
    return [f"{v.severity} {v.code}" for v in verdicts if v.severity in {"bad", "warn"}]


def _verdict(stack: Snapshot, code: str) -> Verdict:
    return next(verdict for verdict in judge(stack) if verdict.code == code)


def test_an_nvme_volume_has_trim_a_schedule_and_the_drives_health() -> None:
    stack = read_windows(_record("C"))
    assert [device.name for device in stack.devices] == ["PhysicalDrive0-3", "PhysicalDrive0"]
    drive = stack.drives[0]
    assert (drive.transport, drive.firmware, drive.rotational) == ("nvme", "2B2QEXM7", False)
    assert drive.health is not None
    assert (drive.health.worn, drive.health.power_on_hours, drive.health.cache_on) == (
        *(4, 3120),
        True,
    )
    assert _codes(stack) == ["warn swap-busy"]
    assert "NTFS DisableDeleteNotify = 0" in _verdict(stack, "trim-passes").evidence


def test_trim_that_neither_deletion_nor_task_issues_is_told_with_windows_commands() -> None:
    off = ["NTFS DisableDeleteNotify = 1  (Enabled)"]
    stack = read_windows(_record("C", fsutil=off, optimize_task="Disabled"))
    verdict = _verdict(stack, "trim-never-asked")
    assert "fsutil behavior set DisableDeleteNotify 0" in verdict.remedy
    assert "Optimize-Volume -DriveLetter C -ReTrim" in verdict.remedy
    task = read_windows(_record("C", fsutil=off))
    assert "trim-never-asked" not in {each.code for each in judge(task)}


def test_a_drive_without_trim_that_is_full_and_lost_data_is_bad() -> None:
    stack = read_windows(_record("D"))
    assert _codes(stack) == ["bad media-errors", "bad trim-stopped", "bad nearly-full"]
    assert _verdict(stack, "trim-stopped").evidence == (
        "StorageDeviceTrimProperty: TrimEnabled is 0"
    )


def test_a_storage_space_is_followed_to_its_members() -> None:
    stack = read_windows(_record("E"))
    assert [(device.layer, device.name) for device in stack.devices] == [
        ("partition", "PhysicalDrive4-2"),
        ("storage space", "PhysicalDrive4"),
        ("drive", "PhysicalDrive2"),
        ("drive", "PhysicalDrive3"),
    ]
    assert "RefsDisableDeleteNotification is not set" in stack.mounts[0].layers[0].why


def test_a_disk_of_a_raid_driver_is_reported_as_unknown() -> None:
    stack = read_windows(_record("F"))
    assert _codes(stack) == ["bad misaligned"]
    assert "RAID controller" in _verdict(stack, "layer-unknown").evidence


def test_bitlocker_is_a_layer_that_passes_trim() -> None:
    for value, layers in ((1, ["BitLocker"]), (2, []), (0, []), (None, [])):
        stack = read_windows(_record("C", bitlocker=value))
        found = [layer.layer for layer in stack.mounts[0].layers if layer.layer == "BitLocker"]
        assert found == layers, value
        assert "trim-passes" in {each.code for each in judge(stack)}
    [layer] = [
        layer
        for layer in read_windows(_record("C", bitlocker=3)).mounts[0].layers
        if layer.layer == "BitLocker"
    ]
    assert layer.why == "it is encrypting, and passes TRIM"


@pytest.mark.parametrize(
    "types", [{"GptType": "{AF9B60A0-1431-4F62-BC68-3311714A69AD}"}, {"MbrType": 66}]
)
def test_a_volume_on_dynamic_disks_is_reported_as_unknown(types: dict[str, Any]) -> None:
    record = _record("D")
    for row in record["partitions"]:
        if row["DiskNumber"] in {0, 1}:
            row.update(types, DriveLetter="\0")
    stack = read_windows(record)
    assert [device.layer for device in stack.devices] == ["dynamic volume", "drive", "drive"]
    assert [drive.name for drive in stack.drives] == ["PhysicalDrive0", "PhysicalDrive1"]
    assert "dynamic volume" in _verdict(stack, "layer-unknown").evidence


@pytest.mark.parametrize("letter", ["C", "D", "E", "F"])
def test_no_verdict_names_a_command_or_a_file_of_linux(letter: str) -> None:
    for verdict in judge(read_windows(_record(letter))):
        words = f"{verdict.evidence} {verdict.remedy} {verdict.proof}"
        for foreign in ("sudo", "/sys/", "/proc/", "statvfs", "discard_max_bytes", "ssdlab"):
            assert foreign not in words, verdict
        assert verdict.remedy or verdict.severity in {"note", "good"}, verdict


def test_arrays_that_windows_powershell_wraps_are_read() -> None:
    record = _record("C")
    for table in ("volumes", "partitions", "disks"):
        record[table] = {"value": record[table], "Count": len(record[table])}
    one = _record("C", registry={"DisableDeleteNotification": 1}, fsutil=[])
    assert read_windows(record).drives == read_windows(_record("C")).drives
    assert read_windows(one).mounts[0].layers[1].why.endswith("is 1")


def test_without_fsutil_the_registry_tells_whether_deletion_sends_trim() -> None:
    for value, code in ((1, "trim-never-asked"), (0, "trim-passes"), (None, "trim-passes")):
        rows = [{"DisableDeleteNotification": value}]
        stack = read_windows(_record("C", registry=rows, fsutil=[], optimize_task="Disabled"))
        assert code in {each.code for each in judge(stack)}, value


def test_a_drive_that_smartctl_reads_has_its_report() -> None:
    record = _record("C")
    report = {"smart_status": {"passed": True}, "endurance_used": {"current_percent": 11}}
    record["physical_disks"][0]["smartctl"] = json.dumps(report)
    health = read_windows(record).drives[0].health
    assert health is not None
    assert health.worn == 11


def test_the_recording_is_a_file_for_recorded_with_or_without_a_mark(tmp_path: Path) -> None:
    file = tmp_path / "windows.json"
    file.write_bytes(codecs.BOM_UTF8 + RECORDING.read_bytes())
    assert read_recorded(file) == read_windows(json.loads(RECORDING.read_text()))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"ssdlab-collector": 2}, "this version"), ({"volumes": []}, "no volume with the letter 'C'")],
)
def test_another_version_and_a_missing_volume_are_refused(
    changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        read_windows(_record("C", **changes))


def test_the_script_writes_every_key_that_is_read() -> None:
    text = script("windows")
    for key in json.loads(RECORDING.read_text()):
        assert f"{key} = " in text or f"'{key}' = " in text, key
    tables = ("volumes", "partitions", "disks", "physical_disks", "storage_spaces", "page_files")
    for table in tables:
        for row in json.loads(RECORDING.read_text())[table]:
            for name in row:
                assert name in text, (table, name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"volumes": 5}, "volumes of the recording is not a list"),
        ({"disks": [{"Number": 0, "Size": "big"}]}, r"disks of the recording: .*\$\[0\]\.Size"),
        ({"fsutil": 1}, "fsutil of the recording is not a list"),
        ({"physical_disks": [{"Counters": [3]}]}, r"physical_disks of the recording: .*Counters"),
        ({"storage_spaces": [{"Members": 7}]}, "storage_spaces of the recording: .*Members"),
    ],
)
def test_a_recording_with_other_types_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_windows(_record("C", **changes))

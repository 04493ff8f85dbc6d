"""Health of drives from the output of smartctl and nvme-cli."""

from __future__ import annotations

import pytest
from reports import ata, nvme, programs

from ssdlab.snapshot import Health
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.health.report import read_health

NVME = BlockDevice("nvme0n1", 259, 0, "nvme0n1", "nvme", 1 << 40)
SATA = BlockDevice("sda", 8, 0, "sda", "sata", 1 << 40)


def _nvme(report: object, others: object = None) -> Health | None:
    run = programs({"nvme0n1": report}, others)  # type: ignore[dict-item,arg-type]
    return read_health(NVME, run)


def test_an_nvme_drive_reports_wear_spare_blocks_errors_and_temperature() -> None:
    log = {"percentage_used": 7, "available_spare": 98, "media_errors": 2, "warning_temp_time": 5}
    others = {"nvme id-ctrl": {"vwc": 7, "unvmcap": 1 << 33}}
    found = _nvme(nvme("X", critical_comp_time=3, **log), others)
    assert found is not None
    assert (found.worn, found.spare_blocks, found.spare_blocks_least) == (7, 98, 10)
    assert (found.media_errors, found.hot_minutes, found.passed) == (2, 8, True)
    assert found.unallocated_bytes == 1 << 33


def test_vwc_says_that_an_nvme_drive_has_no_volatile_cache_but_not_that_it_is_on() -> None:
    without = _nvme(nvme("X"), {"nvme id-ctrl": {"vwc": 6}})
    with_it = _nvme(nvme("X"), {"nvme id-ctrl": {"vwc": 7}})
    assert without is not None
    assert with_it is not None
    assert (without.cache_on, with_it.cache_on) == (False, None)


@pytest.mark.parametrize(
    ("feature", "is_on"),
    [
        ({"feature: 0x06": "Volatile Write Cache", "Current": "0x00000001"}, True),
        ({"feature: 0x06": "Volatile Write Cache", "Current": "00000000"}, False),
        ({"Volatile Write Cache Enable (WCE)": "Disabled"}, False),
        ({"Volatile Write Cache Enable (WCE)": "Enabled"}, True),
        ({"error": "Invalid Field"}, None),
    ],
)
def test_feature_06h_says_whether_the_volatile_cache_is_on(
    feature: dict[str, str], is_on: bool | None
) -> None:
    found = _nvme(nvme("X"), {"nvme id-ctrl": {"vwc": 7}, "nvme get-feature": feature})
    assert found is not None
    assert found.cache_on is is_on


def test_a_sas_drive_reports_wear_and_defects() -> None:
    report = {
        "smart_status": {"passed": True},
        "scsi_percentage_used_endurance_indicator": 31,
        "scsi_grown_defect_list": 4,
    }
    found = read_health(SATA, programs({"sda": report}))
    assert found is not None
    assert (found.worn, found.reallocated) == (31, 4)


@pytest.mark.parametrize(
    ("bits", "words"),
    [(0x10, "capacitors"), (0x01, "spare blocks"), (0x08, "read-only"), (0x04, "reliability")],
)
def test_each_bit_of_the_critical_warning_has_a_text(bits: int, words: str) -> None:
    found = _nvme(nvme("X", critical_warning=bits))
    assert found is not None
    assert len(found.warnings) == 1
    assert words in found.warnings[0]


def test_flash_writes_come_from_the_ocp_log_or_else_the_endurance_group() -> None:
    units = 1000 * 512_000
    report = nvme("X", data_units_written=1000)
    ocp = {"Physical media units written": {"hi": 0, "lo": 3 * units}}
    group = {"data_units_written": 10, "media_units_written": 25}
    both = _nvme(report, {"nvme ocp smart-add-log": ocp, "nvme endurance-log": group})
    alone = _nvme(report, {"nvme endurance-log": group})
    neither = _nvme(report)
    assert both is not None
    assert alone is not None
    assert neither is not None
    assert (both.flash_bytes, alone.flash_bytes) == (3 * units, 2.5 * units)
    assert (neither.host_bytes, neither.flash_bytes) == (units, None)


def test_endurance_group_counters_may_be_strings_as_in_nvme_cli_2_3() -> None:
    group = {"data_units_written": "10", "media_units_written": "25"}
    found = _nvme(nvme("X", data_units_written=1000), {"nvme endurance-log": group})
    assert found is not None
    assert found.flash_bytes == 2.5 * 1000 * 512_000


def test_a_sata_drive_reports_by_vendor_specific_attribute_names() -> None:
    counts = {"Reallocate_NAND_Blk_Cnt": 3, "Reported_Uncorrect": 1, "CRC_Error_Count": 9}
    report = ata("X", cache=True, Unexpect_Power_Loss_Ct=4, Power_Loss_Cap_Test=1, **counts)
    found = read_health(SATA, programs({"sda": report}))
    assert found is not None
    assert (found.reallocated, found.media_errors, found.link_errors) == (3, 1, 9)
    assert (found.unsafe_shutdowns, found.cache_on, found.capacitor_tested) == (4, True, True)
    assert (found.worn, found.temperature_c) == (9, 33)


def test_wear_comes_from_device_statistics_or_else_an_attribute() -> None:
    report = ata("X", Wear_Leveling_Count=120)
    del report["endurance_used"]
    report["ata_smart_attributes"]["table"][0]["value"] = 83
    by_attribute = read_health(SATA, programs({"sda": report}))
    rows = [{"name": "Percentage Used Endurance Indicator", "value": 21}]
    report["ata_device_statistics"] = {"pages": [{"table": rows}]}
    by_page = read_health(SATA, programs({"sda": report}))
    assert by_attribute is not None
    assert by_page is not None
    assert (by_attribute.worn, by_page.worn) == (17, 21)


def test_an_attribute_below_its_threshold_is_a_warning() -> None:
    report = ata("X", Reallocated_Sector_Ct=9)
    report["ata_smart_attributes"]["table"][0]["when_failed"] = "now"
    found = read_health(SATA, programs({"sda": report}))
    assert found is not None
    assert found.warnings == ("attribute Reallocated_Sector_Ct is below its threshold now",)


@pytest.mark.parametrize("printed", [None, {}, {"smartctl": {"exit_status": 2}}])
def test_without_an_answer_the_health_is_none(printed: object) -> None:
    assert _nvme(printed) is None

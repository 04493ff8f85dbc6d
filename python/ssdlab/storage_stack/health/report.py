"""A drive's health (`snapshot.Health`) from the JSON of smartctl and nvme-cli.

Sources: smartctl(8) and its JSON (smartmontools 7.0 and later; names of attributes in drivedb.h);
NVMe base specification, SMART / Health log 02h, Identify Controller and feature 06h;
nvme-id-ctrl(1), nvme-get-feature(1). smartctl's exit status is a bit mask, often nonzero for
a readable drive, so it is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ssdlab.snapshot import Health
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.health.smart import (
    Runner,
    WriteCounters,
    get,
    parse_json_object,
    read_counters_in,
    run_program,
)

_WARNINGS: Final = (
    (0x01, "the spare blocks are below their threshold"),
    (0x02, "the temperature is above or below its limit"),
    (0x04, "the reliability is degraded by media or internal errors"),
    (0x08, "the media is read-only"),
    (0x10, "the backup of the volatile memory has failed (its capacitors)"),
    (0x20, "the persistent memory region is unreliable or read-only"),
)
"""Bits of Critical Warning in the SMART / Health log."""
_LIFE_LEFT: Final = frozenset(
    {"Wear_Leveling_Count", "Media_Wearout_Indicator", "SSD_Life_Left", "Percent_Lifetime_Remain"}
    | {"Remaining_Lifetime_Perc", "Ave_Block-Erase_Count", "Percent_Life_Remaining"}
)
"""ATA attributes whose normalised value falls from 100 as the drive wears."""
_REALLOCATED: Final = (
    "Reallocated_Sector_Ct",
    "Reallocate_NAND_Blk_Cnt",
    "Reallocated_Event_Count",
)
_PENDING: Final = ("Current_Pending_Sector", "Current_Pending_ECC_Cnt")
_MEDIA: Final = ("Reported_Uncorrect", "Uncorrectable_Error_Cnt", "Offline_Uncorrectable")
_LINK: Final = ("UDMA_CRC_Error_Count", "CRC_Error_Count", "SATA_CRC_Error")
_LOST_POWER: Final = ("Unsafe_Shutdown_Count", "Unexpect_Power_Loss_Ct", "POR_Recovery_Count")
_CAPACITOR: Final = ("Power_Loss_Cap_Test", "Power_Loss_Protection")


def read_health(device: BlockDevice, run: Runner = run_program) -> Health | None:
    """The drive's health; None if smartctl is missing or gets no data from the drive.

    `run` runs a command and returns its standard output.
    """
    report = parse_json_object(run(("smartctl", "--json", "-x", str(device.node))))
    return None if report is None else health_in(report, str(device.node), run)


def health_in(report: dict[str, Any], node: str, run: Runner) -> Health | None:
    """The health in a report of smartctl, None without any; `run` may ask nvme-cli."""
    if not _has_health(report):
        return None
    log = report.get("nvme_smart_health_information_log")
    if isinstance(log, dict):
        return _nvme_health(report, log, node, run)
    return _ata_health(report, node, run)


def _has_health(report: dict[str, Any]) -> bool:
    known = ("smart_status", "nvme_smart_health_information_log", "ata_smart_attributes")
    return any(isinstance(report.get(name), dict) for name in known)


def _nvme_health(report: dict[str, Any], log: dict[str, Any], node: str, run: Runner) -> Health:
    bits = _int(log.get("critical_warning")) or 0
    command = ("nvme", "id-ctrl", node, "-o", "json")
    controller = parse_json_object(run(command)) or {}
    cache = _int(controller.get("vwc"))
    counters = read_counters_in(report, node, run)
    return Health(
        source="smartctl and nvme-cli" if controller else "smartctl",
        passed=_flag(get(report, "smart_status", "passed")),
        warnings=tuple(words for bit, words in _WARNINGS if bits & bit),
        worn=_number(log.get("percentage_used")),
        spare_blocks=_number(log.get("available_spare")),
        spare_blocks_least=_number(log.get("available_spare_threshold")),
        media_errors=_int(log.get("media_errors")),
        temperature_c=_number(log.get("temperature")),
        hot_minutes=_sum(log, ("warning_temp_time", "critical_comp_time")),
        power_on_hours=_int(log.get("power_on_hours")),
        unsafe_shutdowns=_int(log.get("unsafe_shutdowns")),
        host_bytes=None if counters is None else counters.host_bytes,
        flash_bytes=None if counters is None else _flash_bytes(counters, node, run),
        cache_on=False if cache is not None and not cache & 1 else _nvme_cache_is_on(node, run),
        unallocated_bytes=_first_int(
            (report.get("nvme_unallocated_capacity"), controller.get("unvmcap"))
        ),
    )


def _nvme_cache_is_on(node: str, run: Runner) -> bool | None:
    """Whether the volatile write cache is enabled: feature 06h, bit 0 (WCE); None if not known.

    nvme-cli prints the value under one of several names, or the bit in words in verbose mode.
    Older versions print no JSON for this command.
    """
    command = ("nvme", "get-feature", node, "-f", "6", "-o", "json")
    for name, value in (parse_json_object(run(command)) or {}).items():
        if name == "Volatile Write Cache Enable (WCE)":
            return {"Enabled": True, "Disabled": False}.get(value)
        if name.lower() in {"current", "value", "result"}:
            number = _numeral(value)
            return None if number is None else bool(number & 1)
    return None


def _numeral(value: Any) -> int | None:
    """An integer from a JSON number or a text: 1 from 1 or "0x00000001"."""
    try:
        return int(value, 0) if isinstance(value, str) else _int(value)
    except ValueError:
        return None


def _flash_bytes(counters: WriteCounters, node: str, run: Runner) -> int | None:
    """Flash writes from the OCP log, else host writes x media / host of endurance group 1."""
    if counters.flash_bytes is not None:
        return counters.flash_bytes
    command = ("nvme", "endurance-log", node, "--group-id=1", "-o", "json")
    log = parse_json_object(run(command)) or {}
    # nvme-cli 2.3 prints 128-bit counters as strings.
    host, media = _numeral(log.get("data_units_written")), _numeral(log.get("media_units_written"))
    if not host or not media:
        return None
    return int(counters.host_bytes * media / host)


def _ata_health(report: dict[str, Any], node: str, run: Runner) -> Health:
    rows = get(report, "ata_smart_attributes", "table")
    table = {row["name"]: row for row in rows or [] if isinstance(row, dict) and row.get("name")}
    counters = read_counters_in(report, node, run)
    return Health(
        source="smartctl",
        passed=_flag(get(report, "smart_status", "passed")),
        warnings=tuple(
            f"attribute {name} is below its threshold now"
            for name, row in table.items()
            if row.get("when_failed") == "now"
        ),
        worn=_ata_wear(report, table),
        spare_blocks=_number(get(report, "spare_available", "current_percent")),
        spare_blocks_least=_number(get(report, "spare_available", "threshold_percent")),
        media_errors=_raw(table, _MEDIA),
        pending=_raw(table, _PENDING),
        reallocated=_first_int((_raw(table, _REALLOCATED), report.get("scsi_grown_defect_list"))),
        link_errors=_raw(table, _LINK),
        temperature_c=_number(get(report, "temperature", "current")),
        power_on_hours=_int(get(report, "power_on_time", "hours")),
        unsafe_shutdowns=_raw(table, _LOST_POWER),
        host_bytes=None if counters is None else counters.host_bytes,
        flash_bytes=None if counters is None else counters.flash_bytes,
        cache_on=_flag(get(report, "write_cache", "enabled")),
        capacitor_tested=any(name in table for name in _CAPACITOR),
    )


def _ata_wear(report: dict[str, Any], table: dict[str, Any]) -> float | None:
    """Percent of rated endurance used, from a standard ATA or SCSI page or a vendor attribute."""
    wear = _number(get(report, "endurance_used", "current_percent"))
    if wear is not None:
        return wear
    for page in get(report, "ata_device_statistics", "pages") or []:
        for row in get(page, "table") or []:
            if get(row, "name") == "Percentage Used Endurance Indicator":
                return _number(get(row, "value"))
    wear = _number(report.get("scsi_percentage_used_endurance_indicator"))
    if wear is not None:
        return wear
    for name in sorted(_LIFE_LEFT & set(table)):
        left = _number(table[name].get("value"))
        if left is not None and 0 <= left <= 100:
            return 100 - left
    return None


def _raw(table: dict[str, Any], names: Iterable[str]) -> int | None:
    return _first_int(get(table.get(name), "raw", "value") for name in names)


def _first_int(values: Iterable[Any]) -> int | None:
    return next((number for value in values if (number := _int(value)) is not None), None)


def _sum(log: dict[str, Any], names: Iterable[str]) -> int | None:
    numbers = [number for name in names if (number := _int(log.get(name))) is not None]
    return sum(numbers) if numbers else None


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None

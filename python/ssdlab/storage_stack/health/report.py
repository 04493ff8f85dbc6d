"""What a drive says of itself, from the JSON of smartctl and nvme-cli: `snapshot.Health`.

Sources: smartctl(8) and its JSON (smartmontools 7.0 and later; names of attributes in drivedb.h);
NVMe base specification, SMART / Health log 02h, Identify Controller and feature 06h;
nvme-id-ctrl(1), nvme-get-feature(1). smartctl's exit status is a set of bits: what it printed is
read whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ssdlab.snapshot import Health
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.health.smart import Runner, decoded, get, started, written_in

_WARNINGS: Final = (
    (0x01, "the spare blocks are below their threshold"),
    (0x02, "the temperature is above or below its limit"),
    (0x04, "the reliability is degraded by media or internal errors"),
    (0x08, "the media is read-only"),
    (0x10, "the backup of the volatile memory has failed (its capacitors)"),
    (0x20, "the persistent memory region is unreliable or read-only"),
)
"""Bits of the log's critical warning."""
_WORN_LEFT: Final = frozenset(
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


def health(device: BlockDevice, run: Runner | None = None) -> Health | None:
    """What a drive says of itself; None where it, or the programs that ask, say nothing.

    `run` starts a program and returns what it printed, for tests.
    """
    start = started if run is None else run
    report = decoded(start(("smartctl", "--json", "-x", str(device.node))))
    if report is None or not _says_anything(report):
        return None
    log = report.get("nvme_smart_health_information_log")
    if isinstance(log, dict):
        return _of_nvme(report, log, device, start)
    return _of_ata(report, device, start)


def _says_anything(report: dict[str, Any]) -> bool:
    known = ("smart_status", "nvme_smart_health_information_log", "ata_smart_attributes")
    return any(isinstance(report.get(name), dict) for name in known)


def _of_nvme(
    report: dict[str, Any], log: dict[str, Any], device: BlockDevice, start: Runner
) -> Health:
    bits = _whole(log.get("critical_warning")) or 0
    control = decoded(start(("nvme", "id-ctrl", str(device.node), "-o", "json"))) or {}
    cache = _whole(control.get("vwc"))
    counted = written_in(report, device, start)
    return Health(
        source="smartctl and nvme-cli" if control else "smartctl",
        passed=_flag(get(report, "smart_status", "passed")),
        warnings=tuple(words for bit, words in _WARNINGS if bits & bit),
        worn=_number(log.get("percentage_used")),
        spare_blocks=_number(log.get("available_spare")),
        spare_blocks_least=_number(log.get("available_spare_threshold")),
        media_errors=_whole(log.get("media_errors")),
        temperature_c=_number(log.get("temperature")),
        hot_minutes=_sum(log, ("warning_temp_time", "critical_comp_time")),
        power_on_hours=_whole(log.get("power_on_hours")),
        unsafe_shutdowns=_whole(log.get("unsafe_shutdowns")),
        host_bytes=None if counted is None else counted.host_bytes,
        flash_bytes=_flash_bytes(counted, device, start),
        cache_on=False if cache is not None and not cache & 1 else _nvme_cache(device, start),
        unallocated_bytes=_first((report.get("nvme_unallocated_capacity"), control.get("unvmcap"))),
    )


def _nvme_cache(device: BlockDevice, start: Runner) -> bool | None:
    """Whether the cache that is there is on: feature 06h, bit 0 (WCE); None where nothing tells.

    nvme-cli prints the number by the name of the value asked for, or with its verbose option the
    bit in words; older ones print no JSON here, and tell nothing.
    """
    command = ("nvme", "get-feature", str(device.node), "-f", "6", "-o", "json")
    for name, value in (decoded(start(command)) or {}).items():
        if name == "Volatile Write Cache Enable (WCE)":
            return {"Enabled": True, "Disabled": False}.get(value)
        if name.lower() in {"current", "value", "result"}:
            number = _numeral(value)
            return None if number is None else bool(number & 1)
    return None


def _numeral(value: Any) -> int | None:
    """A whole number, or the text of one: 1, "0x00000001"."""
    try:
        return int(value, 0) if isinstance(value, str) else _whole(value)
    except ValueError:
        return None


def _flash_bytes(counted: Any, device: BlockDevice, start: Runner) -> int | None:
    """The flash writes of the OCP log, else host writes by the endurance group's ratio."""
    if counted is None or counted.flash_bytes is not None:
        return None if counted is None else int(counted.flash_bytes)
    command = ("nvme", "endurance-log", str(device.node), "--group-id=1", "-o", "json")
    log = decoded(start(command)) or {}
    # nvme-cli 2.3 prints counters of 128 bits as texts.
    host, media = _numeral(log.get("data_units_written")), _numeral(log.get("media_units_written"))
    if not host or not media:
        return None
    return int(counted.host_bytes * media / host)


def _of_ata(report: dict[str, Any], device: BlockDevice, start: Runner) -> Health:
    rows = get(report, "ata_smart_attributes", "table")
    table = {row["name"]: row for row in rows or [] if isinstance(row, dict) and row.get("name")}
    counted = written_in(report, device, start)
    return Health(
        source="smartctl",
        passed=_flag(get(report, "smart_status", "passed")),
        warnings=tuple(_failing(table)),
        worn=_ata_worn(report, table),
        spare_blocks=_number(get(report, "spare_available", "current_percent")),
        spare_blocks_least=_number(get(report, "spare_available", "threshold_percent")),
        media_errors=_raw(table, _MEDIA),
        pending=_raw(table, _PENDING),
        reallocated=_first((_raw(table, _REALLOCATED), report.get("scsi_grown_defect_list"))),
        link_errors=_raw(table, _LINK),
        temperature_c=_number(get(report, "temperature", "current")),
        power_on_hours=_whole(get(report, "power_on_time", "hours")),
        unsafe_shutdowns=_raw(table, _LOST_POWER),
        host_bytes=None if counted is None else counted.host_bytes,
        flash_bytes=None if counted is None else counted.flash_bytes,
        cache_on=_flag(get(report, "write_cache", "enabled")),
        capacitor_tested=any(name in table for name in _CAPACITOR),
    )


def _failing(table: dict[str, Any]) -> Iterable[str]:
    for name, row in table.items():
        if row.get("when_failed") == "now":
            yield f"attribute {name} is below its threshold now"


def _ata_worn(report: dict[str, Any], table: dict[str, Any]) -> float | None:
    """Percent of the rated endurance: a standard page of ATA or SCSI, else a maker's attribute."""
    said = _number(get(report, "endurance_used", "current_percent"))
    if said is not None:
        return said
    for page in get(report, "ata_device_statistics", "pages") or []:
        for row in get(page, "table") or []:
            if get(row, "name") == "Percentage Used Endurance Indicator":
                return _number(get(row, "value"))
    said = _number(report.get("scsi_percentage_used_endurance_indicator"))
    if said is not None:
        return said
    for name in sorted(_WORN_LEFT & set(table)):
        left = _number(table[name].get("value"))
        if left is not None and 0 <= left <= 100:
            return 100 - left
    return None


def _raw(table: dict[str, Any], names: Iterable[str]) -> int | None:
    return _first(get(table.get(name), "raw", "value") for name in names)


def _first(values: Iterable[Any]) -> int | None:
    return next((found for value in values if (found := _whole(value)) is not None), None)


def _sum(log: dict[str, Any], names: Iterable[str]) -> int | None:
    found = [number for name in names if (number := _whole(log.get(name))) is not None]
    return sum(found) if found else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    found = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if found else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None

"""A drive's counters of host writes and flash writes (SMART).

From `smartctl --json` (smartmontools) and, for the flash writes of an NVMe drive, the OCP log of
nvme-cli. Most client drives report host writes but not flash writes. Sources: smartctl(8), names of
attributes in drivedb.h; nvme-ocp-smart-add-log(1), OCP Datacenter NVMe SSD Specification, log C0h.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ssdlab.storage_stack.blockdev import BlockDevice

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_NVME_UNIT: Final = 512_000  # NVMe base specification: 1000 units of 512 bytes
_PAGE: Final = 16 * KIB  # assumed: of page counters only the ratio matters
_TIMEOUT_S: Final = 20.0

# Attributes, each with its bytes per count; the first one that the drive reports is used.
_HOST: Final = (
    ("Host_Program_Page_Count", _PAGE),
    ("Host_Writes_32MiB", 32 * MIB),
    ("Host_Writes_MiB", MIB),
    ("Host_Writes_GiB", GIB),
    ("Lifetime_Writes_GiB", GIB),
    ("Total_Writes_GiB", GIB),
    ("Total_LBAs_Written", 512),
)
_FLASH: Final = (
    ("NAND_Writes_32MiB", 32 * MIB),
    ("NAND_Writes_1GiB", GIB),
    ("NAND_Writes_GiB", GIB),
    ("Total_NAND_Writes_GiB", GIB),
    ("Flash_Writes_GiB", GIB),
)
_BACKGROUND: Final = "Bckgnd_Program_Page_Cnt"  # pages in addition to those of the host

Runner = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True, slots=True)
class WriteCounters:
    """Bytes written over the drive's life; `flash_bytes` is None if the drive does not report it.

    `step_bytes` is the resolution of the coarser counter.
    """

    host_bytes: int
    flash_bytes: int | None
    step_bytes: int
    source: str


def run_program(command: Sequence[str]) -> str | None:
    """Standard output of a command, whatever its exit status; None if it cannot be run.

    Without sufficient rights, smartctl and nvme print no counters.
    """
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout


def read_write_counters(device: BlockDevice, run: Runner = run_program) -> WriteCounters | None:
    """The drive's write counters; None if smartctl is missing or the drive reports none.

    `run` runs a command and returns its standard output.
    """
    report = parse_json_object(run(("smartctl", "--json", "-A", str(device.node))))
    return None if report is None else read_counters_in(report, str(device.node), run)


def read_counters_in(report: dict[str, Any], node: str, run: Runner) -> WriteCounters | None:
    """The write counters in a report of smartctl; `run` may run nvme-cli for flash writes."""
    log = report.get("nvme_smart_health_information_log")
    if isinstance(log, dict):
        return _nvme_counters(log, node, run)
    table = get(report, "ata_smart_attributes", "table")
    return _ata_counters(table) if isinstance(table, list) else None


def _nvme_counters(log: dict[str, Any], node: str, run: Runner) -> WriteCounters | None:
    units = log.get("data_units_written")
    if not isinstance(units, int):
        return None
    command = ("nvme", "ocp", "smart-add-log", node, "-o", "json")
    ocp_log = parse_json_object(run(command)) or {}
    # The key depends on the version of nvme-cli.
    older = ocp_log.get("physical_media_units_written")
    flash = _uint128(ocp_log.get("Physical media units written", older))
    source = "smartctl" if flash is None else "smartctl and the OCP log of nvme-cli"
    return WriteCounters(units * _NVME_UNIT, flash, _NVME_UNIT, source)


def _uint128(value: Any) -> int | None:
    """A 128-bit counter as nvme-cli prints it: one number, or a high and a low half."""
    if isinstance(value, int):
        return value
    if isinstance(value, dict) and isinstance(value.get("lo"), int):
        return int(value["lo"]) + (int(value.get("hi") or 0) << 64)
    return None


def _ata_counters(table: list[Any]) -> WriteCounters | None:
    raw = {
        row["name"]: row["raw"]["value"]
        for row in table
        if isinstance(row, dict)
        and isinstance(row.get("name"), str)
        and isinstance(get(row, "raw", "value"), int)
    }
    if "Host_Program_Page_Count" in raw and _BACKGROUND not in raw:
        del raw["Host_Program_Page_Count"]
    host = next(((name, unit) for name, unit in _HOST if name in raw), None)
    if host is None:
        return None
    host_bytes = raw[host[0]] * host[1]
    if host[0] == "Host_Program_Page_Count":
        flash_bytes = host_bytes + raw[_BACKGROUND] * _PAGE
        source = f"smartctl, {host[0]} and {_BACKGROUND}"
        return WriteCounters(host_bytes, flash_bytes, _PAGE, source)
    flash = next(((name, unit) for name, unit in _FLASH if name in raw), None)
    if flash is None:
        return WriteCounters(host_bytes, None, host[1], f"smartctl, {host[0]}")
    source = f"smartctl, {host[0]} and {flash[0]}"
    return WriteCounters(host_bytes, raw[flash[0]] * flash[1], max(host[1], flash[1]), source)


def get(value: Any, *names: str) -> Any:
    """The value at a path of keys in a JSON object, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def parse_json_object(text: str | None) -> dict[str, Any] | None:
    """The JSON object in `text`; None if `text` is not one."""
    try:
        value = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None

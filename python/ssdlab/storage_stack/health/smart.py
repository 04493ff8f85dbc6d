"""What a drive counts of its own writing (SMART): bytes from the host, bytes to the flash.

Read by `smartctl --json` (smartmontools) and, for the flash writes of an NVMe drive, by the OCP log
of nvme-cli; nothing is read where the programs or the counters are not there. Most client drives
count what the host wrote and keep their flash writes to themselves. Sources: smartctl(8), names of
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
_NVME_UNIT: Final = 512_000  # NVMe base specification: thousands of 512 bytes
_PAGE: Final = 16 * KIB  # of counts of pages only the ratio matters
_TIMEOUT_S: Final = 20.0

# Names of attributes and the bytes that one count stands for; the first that is there is taken.
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
_BACKGROUND: Final = "Bckgnd_Program_Page_Cnt"  # pages on top of those for the host

Runner = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes since the drive was made; `flash_bytes` None where it does not tell.

    `step_bytes` is what the coarser of the two counts in: a difference is as exact as that.
    """

    host_bytes: int
    flash_bytes: int | None
    step_bytes: int
    source: str


def written(device: BlockDevice, run: Runner | None = None) -> Written | None:
    """What a drive says it has written; None where it, or the programs that ask, say nothing.

    `run` starts a program and returns what it printed, for tests.
    """
    start = started if run is None else run
    report = decoded(start(("smartctl", "--json", "-A", str(device.node))))
    return None if report is None else written_in(report, device, start)


def written_in(report: dict[str, Any], device: BlockDevice, start: Runner) -> Written | None:
    """The same from a report of smartctl that was read before; `start` asks nvme-cli for more."""
    log = report.get("nvme_smart_health_information_log")
    if isinstance(log, dict):
        return _of_nvme(log, device, start)
    table = get(report, "ata_smart_attributes", "table")
    return _of_ata(table) if isinstance(table, list) else None


def _of_nvme(log: dict[str, Any], device: BlockDevice, start: Runner) -> Written | None:
    units = log.get("data_units_written")
    if not isinstance(units, int):
        return None
    extended = decoded(start(("nvme", "ocp", "smart-add-log", str(device.node), "-o", "json")))
    flash = None if extended is None else _whole(_physical(extended))
    words = "smartctl" if flash is None else "smartctl and the OCP log of nvme-cli"
    return Written(units * _NVME_UNIT, flash, _NVME_UNIT, words)


def _physical(extended: dict[str, Any]) -> Any:
    spoken, plain = "Physical media units written", "physical_media_units_written"
    return extended.get(spoken, extended.get(plain))


def _whole(value: Any) -> int | None:
    """A count of 128 bits as nvme-cli prints it: one number, or a high and a low half."""
    if isinstance(value, int):
        return value
    if isinstance(value, dict) and isinstance(value.get("lo"), int):
        return int(value["lo"]) + (int(value.get("hi") or 0) << 64)
    return None


def _of_ata(table: list[Any]) -> Written | None:
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
        return Written(host_bytes, flash_bytes, _PAGE, f"smartctl, {host[0]} and {_BACKGROUND}")
    flash = next(((name, unit) for name, unit in _FLASH if name in raw), None)
    if flash is None:
        return Written(host_bytes, None, host[1], f"smartctl, {host[0]}")
    words = f"smartctl, {host[0]} and {flash[0]}"
    return Written(host_bytes, raw[flash[0]] * flash[1], max(host[1], flash[1]), words)


def get(value: Any, *names: str) -> Any:
    """What lies below these names in a JSON object; None where nothing does."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def decoded(text: str | None) -> dict[str, Any] | None:
    """The JSON object that a program printed; None: it printed none."""
    try:
        found = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def started(command: Sequence[str]) -> str | None:
    """What a program printed, whatever its status (smartctl's is a set of bits); None: not there.

    Where it needs more rights than the user has, it prints no counters.
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

"""Minimal output of smartctl and nvme-cli."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Run = Callable[[Sequence[str]], str | None]


def nvme(model: str, **log: Any) -> dict[str, Any]:
    """`smartctl --json -x` of a healthy NVMe drive, updated with `log`."""
    healthy = {
        "critical_warning": 0,
        "temperature": 38,
        "available_spare": 100,
        "available_spare_threshold": 10,
        "percentage_used": 4,
        "data_units_written": 24_000_000,
        "power_on_hours": 3120,
        "unsafe_shutdowns": 11,
        "media_errors": 0,
        "warning_temp_time": 0,
        "critical_comp_time": 0,
    }
    return {
        "model_name": model,
        "smart_status": {"passed": not log.get("critical_warning")},
        "nvme_smart_health_information_log": {**healthy, **log},
    }


def ata(model: str, *, cache: bool | None = None, **raw: Any) -> dict[str, Any]:
    """`smartctl --json -x` of a SATA drive, with attributes by name and raw value."""
    rows = [
        {"id": at, "name": name, "value": 100, "when_failed": "", "raw": {"value": value}}
        for at, (name, value) in enumerate(raw.items(), 1)
    ]
    report: dict[str, Any] = {
        "model_name": model,
        "smart_status": {"passed": True},
        "temperature": {"current": 33},
        "power_on_time": {"hours": 21_404},
        "endurance_used": {"current_percent": 9},
        "ata_smart_attributes": {"table": rows},
    }
    return report if cache is None else {**report, "write_cache": {"enabled": cache}}


def programs(
    smartctl: Mapping[str, Mapping[str, Any]], others: Mapping[str, Mapping[str, Any]] | None = None
) -> Run:
    """A replacement for running programs.

    Returns `smartctl` output by device name, and that of `others` by the command before the device,
    as in "nvme id-ctrl".
    """

    def run(command: Sequence[str]) -> str | None:
        nodes = (word.removeprefix("/dev/") for word in command if word.startswith("/dev/"))
        name = next(nodes, None)
        if name is None:  # a command without a device, such as zpool status
            return None
        if command[0] == "smartctl":
            output = smartctl.get(name)
        else:
            output = (others or {}).get(" ".join(command[: command.index(f"/dev/{name}")]))
        return None if output is None else json.dumps(output)

    return run

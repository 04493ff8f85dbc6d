"""Finds the watchdog process of a heal of a mounted device."""

from __future__ import annotations

from pathlib import Path

import psutil


def watchdog_of(point: Path) -> psutil.Process | None:
    """The watchdog of a mount point: of its processes the oldest one."""
    processes = [
        process
        for process in psutil.process_iter(["cmdline", "create_time"])
        if f"device.watchdog {point} " in " ".join(process.info["cmdline"] or ())
    ]
    return min(processes, key=lambda process: process.info["create_time"], default=None)

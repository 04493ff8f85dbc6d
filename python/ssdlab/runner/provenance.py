"""Versions, host and kernel of a run, for its manifest."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any


def versions() -> dict[str, str]:
    """Versions of Python, the kernel and the libraries that a result depends on."""
    libraries = {name: version(name) for name in ("ssdlab", "numpy", "pyarrow", "scipy")}
    return {"python": platform.python_version(), "kernel": platform.release(), **libraries}


def host() -> dict[str, Any]:
    """The measuring host: name, processor, CPUs available to this process, memory in bytes."""
    return {
        "name": platform.node(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"model name", "Model", "Processor"}:
            return value.strip()
    return "unknown"

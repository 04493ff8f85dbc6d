"""One run of a sweep, in whatever process: an order in, a row out. And what it takes of memory."""

from __future__ import annotations

import os
import signal
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.analysis.evidence import Evidence
from ssdlab.device import describe_twin, open_twin
from ssdlab.errors import UsageError
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession
from ssdlab.sweep import lifetime as life
from ssdlab.sweep.analysis.lifetime import conclude
from ssdlab.sweep.design import Order

PROCESS_BYTES: Final = 192 << 20
"""What a process has before it opens a twin: Python, NumPy, Arrow."""
UNIT: Final = 4096
UNIT_BYTES: Final = 16
"""Of memory for 4 KiB of flash: both maps, valid counts, and what a job keeps. Measured: 10."""


def perform(order: Order) -> dict[str, Any]:
    """The row of a run: its findings, and what the drive costs.

    `cost` is flash that must be bought for what can be used; `seconds` the time that it took here.

    Raises:
        SsdlabError: it failed.
    """
    begun = time.monotonic()
    plan = msgspec.convert(order.plan, life.Plan)
    drive = open_twin(order.name, order.profile, order.capacity, seed=plan.seed)
    described = describe_twin(order.name, order.profile, order.capacity)
    opened = OpenTarget(
        drive, {"kind": "twin", "name": order.name, **described}, profile=order.profile
    )
    session = RunSession(opened)
    session.run_plan(life.measure, plan)
    found = conclude(Evidence(session.recording.tables(), plan.parameters())).findings
    return {
        **{name: finding.value for name, finding in found.items()},
        "cost": described["flash_bytes"] / described["capacity_bytes"],
        "ssdlab": version("ssdlab"),
        "seconds": time.monotonic() - begun,
    }


def memory_of(order: Order) -> int:
    """Bytes that a process takes for it, at most."""
    return PROCESS_BYTES + order.flash // UNIT * UNIT_BYTES


def workers_for(orders: list[Order], wanted: int | None, available: int | None = None) -> int:
    """How many processes at a time: one a core, as many as asked for, as memory is there for.

    Raises:
        UsageError: memory is not there for one.
    """
    if available is None:
        available = _available()
    most = max((memory_of(order) for order in orders), default=PROCESS_BYTES)
    fit = available * 8 // 10 // most
    if not fit:
        raise UsageError(
            f"a run of this sweep takes {most >> 20} MiB of memory, and {available >> 20} MiB are "
            "free; give a smaller capacity"
        )
    return max(1, min(wanted or len(os.sched_getaffinity(0)), fit, len(orders) or 1))


def _available() -> int:
    """Bytes of memory that programs may still take (/proc/meminfo)."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) << 10


def settle() -> None:
    """Makes a process a worker: Ctrl-C is its parent's affair, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

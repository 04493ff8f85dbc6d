"""Executes one run of a sweep in a worker process, and estimates its memory."""

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
from ssdlab.sweep.design import SweepRun
from ssdlab.sweep.measure import Plan, conclude, measure

PROCESS_BYTES: Final = 192 << 20
"""Memory of a process without a twin: Python, NumPy, Arrow."""
UNIT: Final = 4096
UNIT_BYTES: Final = 16
"""Memory for each 4 KiB of flash: both maps, valid counts, records. Measured: 10."""


def execute(run: SweepRun) -> dict[str, Any]:
    """The row of a run: its findings, `cost` (flash / usable capacity), and `seconds` it took.

    Raises:
        SsdlabError: the run failed.
    """
    start = time.monotonic()
    plan = msgspec.convert(run.plan, Plan)
    drive = open_twin(run.name, run.profile, run.capacity, seed=plan.seed)
    twin = describe_twin(run.name, run.profile, run.capacity)
    identity = {"kind": "twin", "name": run.name, **twin}
    session = RunSession(OpenTarget(drive, identity, profile=run.profile))
    session.run_plan(measure, plan)
    findings = conclude(Evidence(session.recording.tables(), plan.parameters())).findings
    return {
        **{name: finding.value for name, finding in findings.items()},
        "cost": twin["flash_bytes"] / twin["capacity_bytes"],
        "ssdlab": version("ssdlab"),
        "seconds": time.monotonic() - start,
    }


def memory_of(run: SweepRun) -> int:
    """Upper bound in bytes of a process's memory during a run."""
    return PROCESS_BYTES + run.flash // UNIT * UNIT_BYTES


def workers_for(runs: list[SweepRun], limit: int | None, available: int | None = None) -> int:
    """The number of processes: one for each core, at most `limit`, and as many as fit in memory.

    Raises:
        UsageError: there is not enough memory for one.
    """
    if available is None:
        available = _available_memory()
    most = max((memory_of(run) for run in runs), default=PROCESS_BYTES)
    fit = available * 8 // 10 // most
    if not fit:
        raise UsageError(
            f"a run of this sweep takes {most >> 20} MiB of memory, and {available >> 20} MiB are "
            "free; give a smaller capacity"
        )
    return max(1, min(limit or len(os.sched_getaffinity(0)), fit, len(runs) or 1))


def _available_memory() -> int:
    """MemAvailable of /proc/meminfo, in bytes."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) << 10


def set_signal_handlers() -> None:
    """Ignores Ctrl-C in a worker process: the parent handles it, and kills the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

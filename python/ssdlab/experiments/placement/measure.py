"""Measurement of placement: which policy keeps files fast to read, and what does it cost?

Twins of one profile that differ only in `ftl.placement` get the same writes: files that grow or are
overwritten piece by piece, with other files written in between. Then the file is read. This runs on
new drives, and on drives that were overwritten until they collect garbage. Real drives are refused,
because ssdlab cannot send them hints.
"""

from __future__ import annotations

import itertools
from typing import Final

from ssdlab.device import Job
from ssdlab.errors import TargetError
from ssdlab.experiments.placement import stripe_effects
from ssdlab.experiments.placement.drives import open_drive
from ssdlab.experiments.placement.host_model import SQLITE, make_application
from ssdlab.experiments.placement.plan import FRESH, PROTECTED, Plan, plan
from ssdlab.experiments.placement.steps import ReadPattern, TwinRun, read, write
from ssdlab.experiments.placement.workloads import FILE, KIB, MIB, Space, make_workload
from ssdlab.runner.session import RunSession

BLOCK: Final = 4 * KIB
REWRITTEN: Final = 0.5
"""Random writes between the first and the second ("aged") read of a file, in drive writes."""
MIXED: Final = 0.1
"""Random reads and writes whose latency is reported, in drive writes."""
SERVER_READERS: Final = 10
"""Threads of the study's file server; each reads a file."""

__all__ = ["Plan", "measure", "plan"]


def measure(session: RunSession, plan: Plan) -> None:
    """Runs every workload on every drive.

    Raises:
        TargetError: the target is a real drive.
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    if session.target.profile is None:
        raise TargetError(
            "placement compares policies inside a drive, and a real drive cannot receive hints; "
            "give twin:NAME"
        )
    for name in plan.fresh_work:
        for placement in plan.placements:
            run = TwinRun.open(session, plan, placement, FRESH)
            workload = make_workload(name, Space(), plan.seed)
            write(run, name, workload)
            read(run, name, workload.pieces)
    for name in plan.host_work:
        for placement in plan.placements:
            _run_application(session, plan, placement, name)
    for state in plan.states[2:]:
        for placement in plan.placements:
            _run_steady(TwinRun.open(session, plan, placement, state))
    if plan.laws:
        stripe_effects.measure(session, open_drive(session.target, plan, "striped", FRESH))


def _run_application(session: RunSession, plan: Plan, placement: str, name: str) -> None:
    """Reads an application's files, first as it writes them, then written without gaps."""
    for case, in_order in ((name, False), (f"{name}, in order", True)):
        # Protected, because the study's drive does not program partial pages for a flush.
        run = TwinRun.open(session, plan, placement, PROTECTED)
        workload = make_application(name, plan.seed, in_order=in_order)
        write(run, case, workload)
        # Page-cache read-ahead is 128 KiB; the server reads 1 MiB of ten files at a time.
        pattern = ReadPattern(128 * KIB) if name == SQLITE else ReadPattern(MIB, SERVER_READERS)
        read(run, case, workload.pieces, pattern=pattern)


def _run_steady(run: TwinRun) -> None:
    """Ages a drive until it collects garbage, writes the workloads and reads each twice."""
    plan = run.plan
    run.session.fill(run.size, run.stage, run.drive)
    before, turns = run.counters(), itertools.count(1)
    _overwrite(run, plan.drive_writes, next(turns))
    for name in plan.steady_work:
        # Unmap the addresses, as for a new file.
        run.run("trim", name, Job(op="trim", length_bytes=FILE, block_bytes=MIB, amount_bytes=FILE))
        workload = make_workload(name, Space(0, (FILE, run.size)), plan.seed)
        write(run, name, workload)
        read(run, name, workload.pieces)
        _overwrite(run, REWRITTEN, next(turns))
        run.run("flush", name, Job(op="flush"))
        read(run, name, workload.pieces, repeat=1)
    _mixed(run)
    run.record_counters("ageing", before)


def _overwrite(run: TwinRun, drive_writes: float, turn: int) -> None:
    """Overwrites random blocks everywhere except in the file."""
    length = run.size - FILE
    job = Job(
        op="write",
        pattern="random",
        offset_bytes=FILE,
        length_bytes=length,
        block_bytes=BLOCK,
        amount_bytes=int(drive_writes * length) // BLOCK * BLOCK,
        queue_depth=4,
        hint="overwrite" if run.sends_hints else "none",
        seed=run.plan.seed * 1000 + turn,
        interval_us=1_000_000,
    )
    run.run("age", "", job, turn)


def _mixed(run: TwinRun) -> None:
    """Random reads and writes, which measure latency during garbage collection."""
    job = Job(
        op="write",
        read_share=0.5,
        pattern="random",
        length_bytes=run.size,
        block_bytes=BLOCK,
        amount_bytes=int(MIXED * run.size) // BLOCK * BLOCK,
        queue_depth=4,
        hint="overwrite" if run.sends_hints else "none",
        seed=run.plan.seed * 1000,
        interval_us=1_000_000,
    )
    run.run("mixed", "", job)

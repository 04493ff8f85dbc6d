"""placement: which rule for where a drive writes keeps files readable, and what does it cost?

Twins of one profile that differ in `ftl.placement` alone get the same writes: files that grow or
are overwritten piece by piece with others between. Then the file is read. It is done on new drives,
and on drives that were overwritten until they collect. A real drive cannot be asked: what a write
is has no place in the requests that reach it from here.
"""

from __future__ import annotations

import itertools
from typing import Final

from ssdlab.device import Job
from ssdlab.errors import TargetError
from ssdlab.experiments.placement import stripe_formulas as laws
from ssdlab.experiments.placement.drives import open_subject
from ssdlab.experiments.placement.host_model import SQLITE, made_on_host
from ssdlab.experiments.placement.plan import FRESH, PROTECTED, Plan, plan
from ssdlab.experiments.placement.steps import Reading, Trial, read, write
from ssdlab.experiments.placement.workloads import FILE, MIB, Ground, made
from ssdlab.runner.session import RunSession

BLOCK: Final = 4 << 10
AGED_AGAIN: Final = 0.5
"""Of the drive is written at random before a file is read for the second time."""
MIXED: Final = 0.1
"""Of the drive, in reads and writes whose latency is told."""
SERVER_READERS: Final = 10
"""Threads of the published file server, each reading a file."""

__all__ = ["Plan", "measure", "plan"]


def measure(session: RunSession, plan: Plan) -> None:
    """Every workload on every drive.

    Raises:
        TargetError: the target is a real drive.
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    if session.target.profile is None:
        raise TargetError(
            "placement compares rules inside a drive, and what a write is cannot be said to a real "
            "one from here; give twin:NAME"
        )
    for name in plan.fresh_work:
        for placement in plan.placements:
            trial = Trial(session, plan, open_subject(session.target, plan, placement, FRESH))
            work = made(name, Ground(), plan.seed)
            write(trial, name, work)
            read(trial, name, work.pieces)
    for name in plan.host_work:
        for placement in plan.placements:
            _application(session, plan, placement, name)
    for state in plan.states[2:]:
        for placement in plan.placements:
            _steady(Trial(session, plan, open_subject(session.target, plan, placement, state)))
    if plan.laws:
        laws.measure(session, open_subject(session.target, plan, "striped", FRESH))


def _application(session: RunSession, plan: Plan, placement: str, name: str) -> None:
    """What an application reads of its files, and of the same files written in order."""
    for case, in_order in ((name, False), (f"{name}, in order", True)):
        # The study's drive programs no page before it is full, as one with capacitors.
        trial = Trial(session, plan, open_subject(session.target, plan, placement, PROTECTED))
        work = made_on_host(name, plan.seed, in_order=in_order)
        write(trial, case, work)
        # A page cache reads ahead by 128 KiB; a server reads by 1 MiB, ten files at a time.
        how = Reading(128 << 10, 1) if name == SQLITE else Reading(MIB, SERVER_READERS)
        read(trial, case, work.pieces, how=how)


def _steady(trial: Trial) -> None:
    """Ages a drive until it collects, then does the workloads in turn, each read twice."""
    plan, size = trial.plan, trial.subject.size
    trial.session.fill(size, trial.stage, trial.drive)
    before, turns = trial.counters(), itertools.count(1)
    _overwrite(trial, plan.drive_writes, next(turns))
    for name in plan.steady_work:
        # The file's addresses are new to the drive, as those of a new file are.
        trim = Job(op="trim", length_bytes=FILE, block_bytes=MIB, amount_bytes=FILE)
        trial.run("trim", name, trim)
        work = made(name, Ground(0, (FILE, size)), plan.seed)
        write(trial, name, work)
        read(trial, name, work.pieces)
        _overwrite(trial, AGED_AGAIN, next(turns))
        trial.run("flush", name, Job(op="flush"))
        read(trial, name, work.pieces, repeat=1)
    _mixed(trial)
    trial.note("ageing", before)


def _overwrite(trial: Trial, drive_writes: float, turn: int) -> None:
    """Writes at random over all but the file; a host that speaks says that it overwrites."""
    rest = trial.subject.size - FILE
    job = Job(
        op="write",
        pattern="random",
        offset_bytes=FILE,
        length_bytes=rest,
        block_bytes=BLOCK,
        amount_bytes=int(drive_writes * rest) // BLOCK * BLOCK,
        queue_depth=4,
        hint="overwrite" if trial.subject.told else "none",
        seed=trial.plan.seed * 1000 + turn,
        interval_ms=1000,
    )
    trial.run("age", "", job, turn)


def _mixed(trial: Trial) -> None:
    """Reads and writes at random, for their latency under collection."""
    size = trial.subject.size
    job = Job(
        op="write",
        read_share=0.5,
        pattern="random",
        length_bytes=size,
        block_bytes=BLOCK,
        amount_bytes=int(MIXED * size) // BLOCK * BLOCK,
        queue_depth=4,
        hint="overwrite" if trial.subject.told else "none",
        seed=trial.plan.seed * 1000,
        interval_ms=1000,
    )
    trial.run("mixed", "", job)

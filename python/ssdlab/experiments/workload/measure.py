"""workload: the jobs of a fio job file, one after the other.

What the file says of requests is what is run (`device/fio/reading.py` says what that means); the
TARGET of the command line takes the place of its `filename`. Whatever is read was written first:
the region of all jobs, once and in order, past the page cache. fio has no such rule, and tells of
a file of unwritten extents several times what the drive can do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.device import Drive, FioJob, FlushEvery, Job, Rate, parse_fio
from ssdlab.errors import TargetError, UsageError
from ssdlab.experiments.workload.parameters import Workload
from ssdlab.input_files import read_text
from ssdlab.runner.session import RunSession, Step
from ssdlab.target import Target
from ssdlab.units import format_size

MIB: Final = 1 << 20
FILL_BLOCK: Final = MIB
FILL_DEPTH: Final = 4
FASTEST: Final = 2 << 30
"""Bytes a second that a job which only time ends is expected to write at most: for the budget."""


@dataclass(frozen=True)
class Plan:
    """What a run does: the jobs, whose names differ, and the file that they came from."""

    jobs: tuple[FioJob, ...]
    source: str
    seed: int = 0

    @property
    def size(self) -> int:
        """To the end of the job that goes furthest."""
        return max(each.job.offset_bytes + each.job.length_bytes for each in self.jobs)

    @property
    def request_bytes_max(self) -> int:
        """The longest block of a job, or of the fill."""
        return max(FILL_BLOCK, *(each.options.request_bytes_max for each in self.jobs))

    @property
    def write_bytes(self) -> int:
        """The fill and what the jobs write."""
        return self.size + sum(_written_most(each.job) for each in self.jobs)

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
        return {
            "fio": self.source,
            "jobs": [each.name for each in self.jobs],
            "size_mib": self.size / MIB,
        }

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast."""
        found = {"fill": float(self.size)}
        for each in self.jobs:
            kind, work = _kind(each.job), each.job.seconds or each.job.amount_bytes
            found[kind] = found.get(kind, 0.0) + float(work)
        return found


def plan(parameters: Workload, _target: Target, seed: int) -> Plan:
    """The plan for these parameters; raises as `plan_of_file`."""
    return plan_of_file(Path(parameters.fio), seed=seed)


def plan_of_file(source: Path, *, seed: int) -> Plan:
    """The plan for a job file. A job without a seed of its own gets one from the run's.

    Raises:
        UsageError: the file cannot be read, has an unknown option, or jobs that run in parallel.
    """
    try:
        text = read_text(source)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise UsageError(f"{source} cannot be read ({reason}); give a fio job file") from error
    return plan_of(text, str(source), seed=seed)


def plan_of(text: str, source: str, *, seed: int) -> Plan:
    """The plan for the text of a job file, as `plan`.

    Raises:
        UsageError: as `plan`.
    """
    jobs = []
    for number, each in enumerate(parse_fio(text)):
        if number and not each.stonewall:
            raise UsageError(
                f"fio job {each.name!r}: stonewall is left out; may be 1 in each job but the "
                "first: jobs run one after the other here, and not side by side"
            )
        job = msgspec.structs.replace(each.job, seed=seed + number) if each.fresh_seed else each.job
        jobs.append(msgspec.structs.replace(each, job=job))
    names = [each.name for each in jobs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"fio job file: [{twice}] is there twice; give each job its own name")
    return Plan(tuple(jobs), source, seed)


@dataclass(frozen=True)
class Ready:
    """A job of the file, as this target runs it, and the drive that it runs on."""

    fio: FioJob
    job: Job
    drive: Drive


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region where it will be read, then runs the jobs.

    Raises:
        UsageError: a job that this target cannot run, before anything is written.
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    jobs = ready(session, plan)
    write_region(session, plan)
    for number, each in enumerate(jobs):
        if _reads(each.job):
            _check_data(session, each.fio)
        session.run(step_of(each, number), each.job, each.drive)
    check_uncached(session, plan)


def ready(session: RunSession, plan: Plan) -> list[Ready]:
    """The jobs as this target runs them.

    Raises:
        UsageError: one that it cannot run.
    """
    return [_ready(session, each) for each in plan.jobs]


def step_of(each: Ready, number: int, repeat: int = 0) -> Step:
    """The step that a job is, by its number in the file."""
    words, kind = f"running {each.fio.name}", _kind(each.job)
    return Step("job", words, kind, number, repeat, case=each.fio.name, keeps_part=True)


def write_region(session: RunSession, plan: Plan) -> None:
    """Writes what jobs read; in a new file also what they write.

    There even writes are not the drive's alone: extents become written ones.
    """
    if session.target.test_file is not None or any(_reads(each.job) for each in plan.jobs):
        _fill(session, plan.size)


def check_uncached(session: RunSession, plan: Plan) -> None:
    """Checks that the reads so far came from the drive, where no job asks for the page cache."""
    if all(each.options.direct for each in plan.jobs):
        session.target.check_uncached()


def _ready(session: RunSession, each: FioJob) -> Ready:
    opened = session.target
    say = partial(opened.warn, "workload")
    if each.filename not in {None, str(opened.path)}:
        say(f"The job file names {each.filename}; what was measured is the target.")
    drive = opened.reopened(each.options, each.engine)
    _check_sector(each, drive.sector_bytes)
    if not opened.is_virtual:
        if not each.options.direct:
            opened.warn(
                "page-cache",
                f"Job {each.name} does not go past the page cache (direct=0): its numbers are "
                "those of memory as well.",
            )
        return Ready(each, each.job, drive)
    if not each.options.direct:
        say(f"A twin has no page cache: job {each.name} (direct=0) went to the drive itself.")
    return Ready(each, _durable(each), drive)


def _durable(each: FioJob) -> Job:
    """On a twin there is no file to be opened with O_DSYNC: each write is a durable one."""
    if not each.options.dsync:
        return each.job
    if isinstance(each.job.sync, FlushEvery):
        raise UsageError(f"fio job {each.name!r}: sync is dsync; may be left out with fsync")
    return msgspec.structs.replace(each.job, sync="durable")


def _check_sector(each: FioJob, sector: int) -> None:
    """Refuses before the fill what the loop would refuse after it."""
    job = each.job
    named = [("bs", job.block_bytes), ("offset", job.offset_bytes), ("size", job.length_bytes)]
    named += [("bssplit", length) for length, _ in job.block_mix]
    for option, given in named:
        if given % sector:
            raise UsageError(
                f"fio job {each.name!r}: {option} is {given}; may be a multiple of the sector of "
                f"this target, {sector} bytes"
            )


def _fill(session: RunSession, size: int) -> None:
    """Writes all of the region in order, and checks that it is on the drive."""
    whole = size // FILL_BLOCK * FILL_BLOCK
    for stage, (offset, length) in enumerate([(0, whole), (whole, size - whole)]):
        if length:
            job = Job(
                op="write",
                offset_bytes=offset,
                length_bytes=length,
                block_bytes=min(length, FILL_BLOCK),
                amount_bytes=length,
                queue_depth=FILL_DEPTH,
            )
            words = f"writing {format_size(length)} in order"
            session.run(Step("fill", words, "fill", stage, keeps_part=True), job)
    session.flush()


def _check_data(session: RunSession, each: FioJob) -> None:
    """What is read was written, and no job before has punched a hole into it."""
    try:
        session.target.check_written()
    except TargetError as error:
        reason = str(error).partition(", so reading")[0]
        raise TargetError(
            f"job {each.name} was not run: {reason}, so it would measure nothing; let it read what "
            "no job before it trims"
        ) from error


def _reads(job: Job) -> bool:
    return job.op == "read" or job.read_share > 0


def _kind(job: Job) -> str:
    if job.seconds is not None:
        return "timed"
    in_order = job.pattern == "sequential"
    if job.op == "read":
        return "read" if in_order else "random"
    return "fill" if in_order else "overwrite"


def _written_most(job: Job) -> int:
    """Bytes that a job writes, at most."""
    share = 1.0 - job.read_share - job.trim_share if job.op == "write" else 0.0
    if job.amount_bytes or job.seconds is None:
        return int(share * job.amount_bytes)
    rate = job.arrival.per_s * job.block_bytes if isinstance(job.arrival, Rate) else FASTEST
    return int(share * job.seconds * rate)

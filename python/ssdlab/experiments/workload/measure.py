"""workload: runs the jobs of a fio job file, one after the other.

`device/fio/reading.py` defines how options are interpreted. TARGET replaces the file's `filename`;
without a `size` the jobs use all of a device or twin.
If a job reads, the region of all jobs is first written once, in order and with direct I/O. fio
does not do this: its reads of unwritten extents appear several times faster than the drive is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from ssdlab.device import Drive, FioJob, FlushEvery, Job, Rate, parse_fio
from ssdlab.errors import TargetError, UsageError
from ssdlab.experiments.workload.parameters import Workload
from ssdlab.input_files import read_text
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.page_cache import drop_cached
from ssdlab.runner.session import RunSession, Step
from ssdlab.target import Target
from ssdlab.units import format_size

MIB: Final = 1 << 20
FILL_BLOCK: Final = MIB
FILL_DEPTH: Final = 4
FASTEST: Final = 2 << 30
"""Bytes/s assumed for a write job that is limited only by time, in `Plan.write_bytes`."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run: jobs with unique names, and the path of the job file."""

    jobs: tuple[FioJob, ...]
    source: str
    seed: int = 0

    @property
    def size(self) -> int:
        """The end of the region that the jobs use, in bytes."""
        return max(fio.job.offset_bytes + fio.job.length_bytes for fio in self.jobs)

    @property
    def request_bytes_max(self) -> int:
        """The largest request of the jobs or the fill, in bytes."""
        return max(FILL_BLOCK, *(fio.options.request_bytes_max for fio in self.jobs))

    @property
    def write_bytes(self) -> int:
        """The most bytes that the fill and the jobs write."""
        jobs = [fio.job for fio in self.jobs] + [ramp_of(fio) for fio in self.jobs]
        return self.size + sum(_write_bytes_max(job) for job in jobs if job is not None)

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {
            "fio": self.source,
            "jobs": [fio.name for fio in self.jobs],
            "size_mib": self.size / MIB,
        }

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work."""
        work = {"fill": float(self.size)}
        for fio in self.jobs:
            kind, amount = _kind(fio.job), fio.job.seconds or fio.job.amount_bytes
            work[kind] = work.get(kind, 0.0) + float(amount)
            if fio.ramp_s:
                work["timed"] = work.get("timed", 0.0) + fio.ramp_s
        return work


def plan(parameters: Workload, target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: as `plan_of_file`.
    """
    return plan_of_file(Path(parameters.fio), target, seed=seed)


def plan_of_file(source: Path, target: Target, *, seed: int) -> Plan:
    """The plan for a job file. A job without a fixed seed gets `seed` + its number.

    Raises:
        UsageError: the file cannot be read, has an unknown option, or jobs that run in parallel.
    """
    try:
        text = read_text(source)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise UsageError(f"{source} cannot be read ({reason}); give a fio job file") from error
    return plan_of(text, str(source), target, seed=seed)


def plan_of(text: str, source: str, target: Target, *, seed: int) -> Plan:
    """As `plan_of_file`, for the text of a job file from `source`.

    Raises:
        UsageError: an unknown option, or jobs that run in parallel.
    """
    jobs = []
    for number, fio in enumerate(parse_fio(text, target.capacity_bytes)):
        job = msgspec.structs.replace(fio.job, seed=seed + number) if fio.fresh_seed else fio.job
        jobs.append(msgspec.structs.replace(fio, job=job))
    return Plan(tuple(jobs), source, seed)


@dataclass(frozen=True)
class PreparedJob:
    """A job as in the file and as adapted to this target, and the drive to run it on."""

    fio: FioJob
    job: Job
    drive: Drive


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region if it will be read, then runs the jobs.

    Raises:
        UsageError: this target cannot run a job; nothing was written.
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    jobs = prepare_jobs(session, plan)
    write_region(session, plan)
    for number, prepared in enumerate(jobs):
        if _reads(prepared.job):
            _check_data(session, prepared.fio)
        run_job_of(session, prepared, step_of(prepared, number), prepared.job)
    check_uncached(session, plan)


def prepare_jobs(session: RunSession, plan: Plan) -> list[PreparedJob]:
    """Adapts the jobs to the target, and opens the target as each job requires.

    Raises:
        UsageError: this target cannot run a job.
    """
    return [_prepare(session, fio) for fio in plan.jobs]


def step_of(prepared: PreparedJob, number: int, repeat: int = 0) -> Step:
    """The step of a job, by its number in the file."""
    label, kind = f"running {prepared.fio.name}", _kind(prepared.job)
    return Step("job", label, kind, number, repeat, case=prepared.fio.name, keeps_part=True)


def run_job_of(session: RunSession, prepared: PreparedJob, step: Step, job: Job) -> None:
    """Runs a job with what its file asks for before and after it.

    Raises:
        Interrupted, DeviceFailure: as `RunSession.run`.
    """
    fio, drive = prepared.fio, prepared.drive
    if fio.invalidates and not session.target.is_virtual:
        drop_cached(session.target)
    if (ramp := ramp_of(fio)) is not None:
        label = f"running {fio.name} for its ramp time"
        ramp = msgspec.structs.replace(ramp, seed=job.seed + 1, sync=job.sync)
        session.run(replace(step, phase="ramp", label=label, kind="timed"), ramp, drive)
    session.run(step, job, drive)
    if fio.flushes_at_end:
        session.flush(step.stage, drive)


def ramp_of(fio: FioJob) -> Job | None:
    """The part of a job that comes before what is measured; None without `ramp_time`."""
    if not fio.ramp_s:
        return None
    return msgspec.structs.replace(fio.job, seconds=fio.ramp_s, amount_bytes=0)


def write_region(session: RunSession, plan: Plan) -> None:
    """Writes the region if a job reads, or if the target is a new test file.

    Otherwise the jobs' writes to a new file would include the conversion of unwritten extents.
    """
    if session.target.test_file is not None or any(_reads(fio.job) for fio in plan.jobs):
        _fill(session, plan.size)


def check_uncached(session: RunSession, plan: Plan) -> None:
    """Checks that reads did not go through the page cache, if all jobs use direct I/O."""
    if all(fio.options.direct for fio in plan.jobs):
        session.target.check_uncached()


def _prepare(session: RunSession, fio: FioJob) -> PreparedJob:
    target = session.target
    for note in (*fio.notes, *_about_filename(target, fio)):
        target.warn("workload", note)
    drive = target.reopened(fio.options, fio.engine)
    _check_sector(fio, drive.sector_bytes)
    if not target.is_virtual:
        if not fio.options.direct:
            target.warn(
                "page-cache",
                f"Job {fio.name} uses the page cache (direct=0), so its numbers include memory: "
                "use direct=1 to measure the drive alone.",
            )
        return PreparedJob(fio, fio.job, drive)
    if not fio.options.direct:
        target.warn(
            "workload",
            f"A twin has no page cache, so the job {fio.name!r} (direct=0) went to the drive "
            "directly: compare it with direct=1 on a real drive.",
        )
    return PreparedJob(fio, _with_durable_writes(fio), drive)


def _about_filename(target: OpenTarget, fio: FioJob) -> list[str]:
    """Says that the file of a job is not used, unless it is the target or in it."""
    if fio.filename is None:
        return []
    named = Path(fio.filename)
    untouched = f"The job file names {fio.filename}, which stays untouched: "
    if target.path is None:
        return [f"{untouched}the twin was measured in its place."]
    if target.test_file is None:
        same = named.exists() and named.samefile(target.path)
        return [] if same else [f"{untouched}{target.path} was measured in its place."]
    directory = target.path.parent
    own = "a test file that ssdlab creates and removes was measured in its place."
    if (directory / named).exists():
        return [untouched + own]
    inside = (directory / named).resolve().is_relative_to(directory.resolve())
    return [] if inside else [f"{untouched}a test file in {directory} was measured in its place."]


def _with_durable_writes(fio: FioJob) -> Job:
    """Replaces O_DSYNC by durable writes (FUA), because a twin has no file to open."""
    if not fio.options.dsync:
        return fio.job
    if isinstance(fio.job.sync, FlushEvery):
        raise UsageError(f"fio job {fio.name!r}: sync=dsync and fsync exclude each other on a twin")
    return msgspec.structs.replace(fio.job, sync="durable")


def _check_sector(fio: FioJob, sector: int) -> None:
    """Refuses misaligned jobs before the fill."""
    job = fio.job
    values = [("bs", job.block_bytes), ("offset", job.offset_bytes), ("size", job.length_bytes)]
    values += [("bssplit", length) for length, _ in job.block_mix]
    for option, value in values:
        if value % sector:
            raise UsageError(
                f"fio job {fio.name!r}: {option} is {value}; it must be a multiple of the sector "
                f"of this target, {sector} bytes"
            )


def _fill(session: RunSession, size: int) -> None:
    """Writes the region in order (the last part with a smaller block) and flushes."""
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
            label = f"writing {format_size(length)} sequentially"
            session.run(Step("fill", label, "fill", stage, keeps_part=True), job)
    session.flush()


def _check_data(session: RunSession, fio: FioJob) -> None:
    """Refuses a job that reads after an earlier job has trimmed a part of the test file."""
    try:
        session.target.check_written()
    except TargetError as error:
        reason = str(error).partition(", so reading")[0]
        raise TargetError(
            f"job {fio.name} was not run: {reason}, so it would measure nothing; it must not read "
            "what an earlier job trims"
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


def _write_bytes_max(job: Job) -> int:
    share = 1.0 - job.read_share - job.trim_share if job.op == "write" else 0.0
    if job.amount_bytes or job.seconds is None:
        return int(share * job.amount_bytes)
    rate = job.arrival.per_s * job.block_bytes if isinstance(job.arrival, Rate) else FASTEST
    return int(share * job.seconds * rate)

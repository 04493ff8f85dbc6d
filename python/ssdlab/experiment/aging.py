"""aging: does random writing slow this drive's sequential reads, and does rest heal it?

A file of incompressible data is written in order, flushed, and read in order (1 MiB requests, queue
depth 1). Then 4 KiB random direct writes at queue depth 1, no block twice within an amount, go over
it, and after each amount and a flush it is read three times, each time after a rest. Source of the
method: the published table of ten drives that the profiles' ageing rows come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ssdlab.device import Job, Outcome, run_job
from ssdlab.errors import Interrupted, UsageError
from ssdlab.experiment.contention import check_quiet, host_columns
from ssdlab.experiment.progress import Forecast, Listener, silent
from ssdlab.experiment.site import Site
from ssdlab.records import Recording, StepRow
from ssdlab.units import format_duration, format_size

MIB: Final = 1 << 20
SIZE: Final = 4096 * MIB
AMOUNTS: Final = (50 * MIB, 200 * MIB, 800 * MIB, 4000 * MIB)
"""Written over a file of `SIZE`, each on top of those before it; they scale with the file."""
RESTS_S: Final = (10.0, 20.0, 30.0)
QUICK: Final = 0.1
"""`--quick` shortens the rests to this share."""
LONG_REST_MAX_S: Final = 365 * 86_400.0
QUICK_SIZE: Final = 512 * MIB
SIZE_MIN: Final = 16 * MIB
READ_BLOCK: Final = MIB
WRITE_BLOCK: Final = 4096
FILL_DEPTH: Final = 4


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes, times in seconds of the device's clock."""

    size: int = SIZE
    amounts: tuple[int, ...] = AMOUNTS
    rests_s: tuple[float, ...] = RESTS_S
    long_rest_s: float = 0.0
    seed: int = 0

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "amounts_mib": [amount / MIB for amount in self.amounts],
            "rests_s": list(self.rests_s),
            "long_rest_s": self.long_rest_s,
            "read_block_kib": READ_BLOCK // 1024,
            "read_queue_depth": 1,
            "write_block_kib": WRITE_BLOCK // 1024,
            "write_queue_depth": 1,
        }

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast."""
        stages = 1 + len(self.amounts)
        reads = stages * len(self.rests_s) + (self.long_rest_s > 0)
        rest = stages * sum(self.rests_s) + self.long_rest_s
        return {
            "fill": float(self.size),
            "read": float(reads * self.size),
            "overwrite": float(sum(self.amounts)),
            "rest": rest,
        }


def plan(size: int | None, *, quick: bool, long_rest_s: float, seed: int) -> Plan:
    """The plan for a file of `size` bytes (None: the published 4096 MiB, or 512 MiB if quick).

    Raises:
        UsageError: a size that is too small or no whole number of MiB, or too long a rest.
    """
    if size is None:
        size = QUICK_SIZE if quick else SIZE
    if size < SIZE_MIN or size % MIB:
        given = f"{size} bytes" if size % MIB else format_size(size)
        raise UsageError(
            f"--size is {given}; it may be a whole number of MiB from {format_size(SIZE_MIN)} on"
        )
    if long_rest_s > LONG_REST_MAX_S:
        raise UsageError(
            f"--rest is {format_duration(long_rest_s)}; it may be up to "
            f"{format_duration(LONG_REST_MAX_S)}"
        )
    scaled = (amount * size // SIZE for amount in AMOUNTS)
    amounts = tuple(max(1, amount // WRITE_BLOCK) * WRITE_BLOCK for amount in scaled)
    rests = tuple(rest * (QUICK if quick else 1.0) for rest in RESTS_S)
    return Plan(size, amounts, rests, long_rest_s, seed)


@dataclass
class Measurement:
    """A run in progress: runs the plan's steps on a site and records each."""

    site: Site
    plan: Plan
    listener: Listener = silent
    recording: Recording = field(default_factory=Recording)

    def run(self) -> None:
        """Runs the whole plan; what was recorded before an exception stays recorded.

        Raises:
            Interrupted: Ctrl-C.
            DeviceFailure: a request failed.
            TargetError: the file turned out not to be on the drive.
        """
        to_do = self.plan.work()
        if self.site.is_virtual:
            to_do["rest"] = 0.0  # a twin's rests take none of the user's time
        self._forecast = Forecast(to_do, self.listener)
        try:
            self._run_steps()
        finally:  # what was measured before an end came is doubted too
            check_quiet(self.recording.tables()["steps"].to_pylist(), self.site.doubt)
        self._compare_layout()

    def _run_steps(self) -> None:
        self._fill()
        self._read_stage(0)
        for stage, amount in enumerate(self.plan.amounts, start=1):
            self._overwrite(stage, amount)
            self._read_stage(stage)
        if self.plan.long_rest_s > 0:
            stage = len(self.plan.amounts)
            self._read(stage, len(self.plan.rests_s), self.plan.long_rest_s)

    def _fill(self) -> None:
        job = self._job("write", block=READ_BLOCK, amount=self.plan.size, depth=FILL_DEPTH)
        self._do("fill", 0, job)
        self._flush(0)

    def _overwrite(self, stage: int, amount: int) -> None:
        job = Job(
            op="write",
            pattern="random_once",
            length_bytes=self.plan.size,
            block_bytes=WRITE_BLOCK,
            amount_bytes=amount,
            seed=self.plan.seed * 1000 + stage,
        )
        self._do("overwrite", stage, job)
        self._flush(stage)

    def _flush(self, stage: int) -> None:
        outcome = run_job(self.site.drive, Job(op="flush"))
        extents = self.site.check_written()
        self._record("flush", stage, Job(op="flush"), outcome, {"extents": extents})

    def _read_stage(self, stage: int) -> None:
        for repeat, rest_s in enumerate(self.plan.rests_s):
            self._read(stage, repeat, rest_s)

    def _read(self, stage: int, repeat: int, rest_s: float) -> None:
        step = self._forecast.step("rest", rest_s, f"resting {rest_s:g} s")
        if not self.site.drive.rest(rest_s, step.watch):
            raise Interrupted("stopped while resting")
        step.finish()
        job = self._job("read", block=READ_BLOCK, amount=self.plan.size, depth=1)
        self._do("read", stage, job, {"repeat": repeat, "rest_s": rest_s})
        self.site.check_uncached()

    def _job(self, op: Any, *, block: int, amount: int, depth: int) -> Job:
        return Job(
            op=op,
            length_bytes=self.plan.size,
            block_bytes=block,
            amount_bytes=amount,
            queue_depth=depth,
        )

    def _do(self, phase: str, stage: int, job: Job, more: dict[str, Any] | None = None) -> None:
        label = {
            "fill": f"writing a file of {format_size(self.plan.size)}",
            "read": f"reading it, stage {stage} of {len(self.plan.amounts)}",
            "overwrite": f"overwriting {format_size(job.amount_bytes)} at random",
        }[phase]
        step = self._forecast.step(phase, float(job.amount_bytes), label)
        outcome = run_job(self.site.drive, job, step.watch)
        step.finish()
        # A read that was broken off says nothing; what was written was written.
        if not (outcome.stopped and phase == "read"):
            self._record(phase, stage, job, outcome, more or {})
        outcome.raise_if_failed(label)
        if outcome.stopped:
            raise Interrupted(f"stopped while {label}")

    def _record(
        self, phase: str, stage: int, job: Job, outcome: Outcome, more: dict[str, Any]
    ) -> None:
        values = {
            "phase": phase,
            "stage": stage,
            "repeat": 0,
            "rest_s": 0.0,
            "block_bytes": job.block_bytes,
            "queue_depth": job.queue_depth,
            "start_ns": outcome.start_ns,
            "end_ns": outcome.end_ns,
            "requests": outcome.requests,
            "bytes": outcome.bytes,
            "errors": outcome.errors,
            "extents": None,
            **host_columns(outcome.host, is_virtual=self.site.is_virtual),
            **more,
        }
        columns = (outcome.intervals, outcome.latency, outcome.interval_latency)
        self.recording.add(StepRow(values, *columns))

    def _compare_layout(self) -> None:
        """Doubts the result where the file system moved the file while it was overwritten."""
        counts = list(self._extents())
        if counts and counts[-1] > 1.5 * counts[0] + 8:
            self.site.doubt(
                "layout-changed",
                f"The file lay in {counts[0]} pieces when fresh and in {counts[-1]} at the end: "
                "the file system moved what was overwritten, so the reads became slower by its "
                "layout too, not by the drive alone.",
            )

    def _extents(self) -> Iterator[int]:
        for row in self.recording.tables()["steps"].to_pylist():
            if row["extents"] is not None:
                yield row["extents"]

"""Runs the steps of an experiment: measures, records and reports each; resumes without repeats."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ssdlab.device import Drive, Job, Outcome, encode, run_job
from ssdlab.errors import Interrupted
from ssdlab.records import Recording, StepRow
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.progress import Forecast, Listener, silent
from ssdlab.runner.resume import ResumeState
from ssdlab.runner.warnings import Coverage, check_recording, host_columns
from ssdlab.units import format_size

_MIB: Final = 1 << 20
FILL_BLOCK: Final = 1 << 20
FILL_DEPTH: Final = 4
SETTLE_S: Final = 60.0
QUICK_SETTLE_S: Final = 5.0
"""Idle time in which an SLC cache may empty itself, before reads or a first write series."""
SAVE_EVERY_S: Final = 30.0
"""Seconds between saves of the recording: a crash loses at most the steps since the last one."""


class Plan(Protocol):
    """The plan of a run: a frozen dataclass of plain values, so that it can be stored."""

    @property
    def size(self) -> int:
        """Bytes of the target that are used; 0 if the experiment creates files of its own."""

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""

    @property
    def request_bytes_max(self) -> int:
        """The largest request of any job, in bytes."""

    @property
    def write_bytes(self) -> int:
        """The most bytes that the host may write."""

    def parameters(self) -> dict[str, Any]:
        """The parameters in the manifest and the result; keys end in their unit."""

    def work(self) -> dict[str, float]:
        """Bytes or seconds by kind of work (`progress.NOMINAL`); the maximum if it can vary."""


@dataclass(frozen=True)
class Step:
    """The identifying columns of a step in `records.STEPS`, and its label for progress reports.

    `kind` is its kind of work (`progress.NOMINAL`). `keeps_part` records it even if interrupted.
    """

    phase: str
    label: str
    kind: str
    stage: int = 0
    repeat: int = 0
    case: str = ""
    value: float | None = None
    rest_s: float = 0.0
    keeps_part: bool = False


@dataclass
class RunSession:
    """A run in progress. `save` is called after a step if `SAVE_EVERY_S` have passed."""

    target: OpenTarget
    listener: Listener = silent
    resume: ResumeState | None = None
    save: Callable[[Recording], None] | None = None
    recording: Recording = field(default_factory=Recording)
    forecast: Forecast = field(init=False)
    _coverage: Coverage = field(default_factory=Coverage)
    _limits_recorded: set[str] = field(default_factory=set)
    _saved_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Starts with no work; `expect` sets it."""
        self.forecast = Forecast({}, self.listener, self.target.is_virtual)

    def run_plan(self, measure: Callable[[RunSession, Any], None], plan: Plan) -> None:
        """Runs a plan. If it raises, the steps recorded so far remain in the recording.

        Raises:
            Interrupted: Ctrl-C.
            DeviceFailure: a request failed.
            TargetError: reads did not reach the drive.
        """
        with self.plan_scope(plan):
            measure(self, plan)

    @contextlib.contextmanager
    def plan_scope(self, plan: Plan) -> Iterator[None]:
        """Forecasts the plan's work on entry; on exit checks the recording for warnings."""
        self.expect(plan.work())
        complete = False
        try:
            yield
            complete = True
        finally:
            check_recording(
                self.recording,
                self.target.link_bytes_per_s,
                self.target.warn,
                measure_engine=complete,
            )

    def second_session(self, listener: Listener) -> RunSession:
        """A session on the same target with its own recording; shares the written ranges."""
        return RunSession(self.target, listener, _coverage=self._coverage)

    def expect(self, work: Mapping[str, float]) -> None:
        """Sets the remaining work by kind: at the start, and when a plan adapts."""
        self.forecast.remaining.clear()
        self.forecast.remaining.update(work)
        if self.target.is_virtual:
            self.forecast.remaining["rest"] = 0.0  # a twin rests in virtual time

    def run(self, step: Step, job: Job, drive: Drive | None = None) -> Outcome:
        """Idles for `step.rest_s`, runs a job (by default on `target.drive`) and records it.

        A resumed run returns the recorded outcome instead, if `ResumeState` allows it.

        Raises:
            Interrupted: Ctrl-C.
            DeviceFailure: a request failed.
        """
        recorded = None if self.resume is None else self.resume.take(step, job)
        if recorded is not None:
            self.recording.add(recorded.row)
            self._track_coverage(job, recorded.outcome, drive)
            self.forecast.skip(step.kind, _work(job))
            return recorded.outcome
        if step.rest_s > 0:
            self.rest(step.rest_s)
        return self._measure(step, job, drive or self.target.drive)

    def rest(self, seconds: float) -> None:
        """Leaves the drive idle for some seconds of its clock."""
        part = self.forecast.step("rest", seconds, f"resting {seconds:g} s")
        if not self.target.drive.rest(seconds, part.watch):
            raise Interrupted("stopped while resting")
        part.finish()

    def fill(self, size: int, stage: int = 0, drive: Drive | None = None) -> None:
        """Writes the first `size` bytes in order (1 MiB requests, queue depth 4) and flushes."""
        job = Job(
            op="write",
            length_bytes=size,
            block_bytes=FILL_BLOCK,
            amount_bytes=size,
            queue_depth=FILL_DEPTH,
        )
        label = f"writing {format_size(size)} sequentially"
        self.run(Step("fill", label, "fill", stage=stage, keeps_part=True), job, drive)
        self.flush(stage, drive)

    def flush(self, stage: int = 0, drive: Drive | None = None) -> None:
        """Flushes the drive, and checks that the whole test file is on it.

        Raises:
            TargetError: a part of the test file is not on the drive.
        """
        drive = drive or self.target.drive
        outcome = run_job(drive, Job(op="flush"))
        row = self._row(Step("flush", "flushing", "fill", stage), Job(op="flush"), outcome, drive)
        self._add(row, outcome, {"extents": self.target.check_written()})
        outcome.raise_if_failed("flushing")

    def observe(self, name: str, value: float | None = None, detail: str = "") -> None:
        """Records an observation between steps: a temperature, a counter, a text."""
        self.recording.observe(name, value, detail)

    def _measure(self, step: Step, job: Job, drive: Drive) -> Outcome:
        part = self.forecast.step(step.kind, _work(job), step.label)
        self._record_temperatures()
        before = drive.counters()
        outcome = run_job(drive, job, part.watch)
        part.finish()
        if step.keeps_part or not outcome.stopped:
            self._add(self._row(step, job, outcome, drive), outcome)
        self._record_temperatures()
        if job.op == "write":
            self._record_amplification(before, drive.counters())
        self._track_coverage(job, outcome, drive)
        outcome.raise_if_failed(step.label)
        if outcome.stopped:
            raise Interrupted(f"stopped while {step.label}")
        return outcome

    def _track_coverage(self, job: Job, outcome: Outcome, drive: Drive | None) -> None:
        """Tracks which bytes of the target are written; ignores files that an experiment made."""
        if drive is None or self.target.is_own_drive(drive):
            self._coverage.track(job, outcome.bytes, self.target.warn)

    def _record_temperatures(self) -> None:
        for name, temperature in self.target.temperatures().items():
            self.observe("temperature_c", temperature.celsius, name)
            if temperature.limit is not None and name not in self._limits_recorded:
                self._limits_recorded.add(name)
                self.observe("temperature_limit_c", temperature.limit, name)

    def _record_amplification(
        self, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
    ) -> None:
        """Records host writes, flash writes and WAF of one step, by the twin's counters."""
        if before is None or after is None:
            return
        (host, flash), (host_now, flash_now) = _written(before), _written(after)
        self.observe("host_write_mib", (host_now - host) / _MIB)
        self.observe("nand_write_mib", (flash_now - flash) / _MIB)
        if host_now > host:
            self.observe("waf", (flash_now - flash) / (host_now - host))

    def _add(self, row: dict[str, Any], outcome: Outcome, more: Mapping[str, Any] = {}) -> None:
        columns = (outcome.intervals, outcome.latency, outcome.interval_latency)
        self.recording.add(StepRow({**row, **more}, *columns))
        if self.save is not None and time.monotonic() - self._saved_at > SAVE_EVERY_S:
            self.save(self.recording)
            self._saved_at = time.monotonic()

    def _row(self, step: Step, job: Job, outcome: Outcome, drive: Drive) -> dict[str, Any]:
        return {
            "phase": step.phase,
            "stage": step.stage,
            "repeat": step.repeat,
            "case": step.case,
            "value": step.value,
            "rest_s": step.rest_s,
            "block_bytes": job.block_bytes,
            "queue_depth": job.queue_depth,
            "start_ns": outcome.start_ns,
            "end_ns": outcome.end_ns,
            "requests": outcome.requests,
            "bytes": outcome.bytes,
            "errors": outcome.errors,
            "extents": None,
            "job": encode(job),
            "opened": self.target.access_mode(drive),
            "engine": outcome.engine,
            "unserved": outcome.unserved,
            **host_columns(outcome.host),
        }


def _work(job: Job) -> float:
    return float(job.amount_bytes) if job.seconds is None else job.seconds


def _written(counters: Mapping[str, Any]) -> tuple[float, float]:
    """Host writes and flash writes of a twin since it was new, in bytes, by its counters."""
    host = float(counters["host_write_bytes"])
    return host, host * (counters["waf"] or 0.0)

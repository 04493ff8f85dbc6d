"""An experiment under way: each step is run, recorded, told of, and not repeated when resumed."""

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
from ssdlab.runner.warnings import Coverage, host_columns, judge
from ssdlab.units import format_size

_MIB: Final = 1 << 20
FILL_BLOCK: Final = 1 << 20
FILL_DEPTH: Final = 4
SAVE_EVERY_S: Final = 30.0
"""What was recorded is on disk after so long, whatever happens then."""


class Plan(Protocol):
    """What a run does: a frozen dataclass of plain values, so that it can be stored and resumed."""

    @property
    def size(self) -> int:
        """Bytes of the target that it needs; 0 where it makes files of its own."""

    @property
    def seed(self) -> int:
        """Of all that is random."""

    @property
    def request_bytes_max(self) -> int:
        """The largest block of a job."""

    @property
    def write_bytes(self) -> int:
        """Bytes that the host writes, at most."""

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result, named with their units."""

    def work(self) -> dict[str, float]:
        """Work to do by kind (`progress.NOMINAL`), for the forecast; at most, where it adapts."""


@dataclass(frozen=True)
class Step:
    """What a step is: its columns of `records.STEPS`, and its words for people.

    `kind` is the work it is (`progress.NOMINAL`); `keeps_part` whether it counts when broken off.
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
    """A run in progress. `save` is called now and then, when a step was recorded."""

    target: OpenTarget
    listener: Listener = silent
    resume: ResumeState | None = None
    save: Callable[[Recording], None] | None = None
    recording: Recording = field(default_factory=Recording)
    forecast: Forecast = field(init=False)
    _coverage: Coverage = field(default_factory=Coverage)
    _limits: set[str] = field(default_factory=set)
    _saved_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """With nothing to do yet."""
        self.forecast = Forecast({}, self.listener)

    def run_plan(self, measure: Callable[[RunSession, Any], None], plan: Plan) -> None:
        """Runs a plan; what was recorded before an exception stays recorded.

        Raises:
            Interrupted: Ctrl-C.
            DeviceFailure: a request failed.
            TargetError: what was read turned out not to be on the drive.
        """
        with self.under_way(plan):
            measure(self, plan)

    @contextlib.contextmanager
    def under_way(self, plan: Plan) -> Iterator[None]:
        """The frame of a plan's steps: they are forecast, and at the end checked for warnings."""
        self.expect(plan.work())
        ended = False
        try:
            yield
            ended = True
        finally:  # also if the run was broken off
            opened = self.target
            judge(self.recording, opened.link_bytes_per_s, opened.warn, ask_engine=ended)

    def beside(self, listener: Listener) -> RunSession:
        """Another course on the same site, with records of its own; what is written is known."""
        return RunSession(self.target, listener, _coverage=self._coverage)

    def expect(self, to_do: Mapping[str, float]) -> None:
        """Says how much work is ahead, by kind: at the start, and where a plan adapts."""
        self.forecast.to_do.clear()
        self.forecast.to_do.update(to_do)
        if self.target.is_virtual:
            self.forecast.to_do["rest"] = 0.0  # a twin's rests take none of the user's time

    def run(self, step: Step, job: Job, drive: Drive | None = None) -> Outcome:
        """Rests, runs a job (on the site's drive, or another one of it), and records it.

        Where a resumed run has this step already, it is taken from there: of a drive that has kept
        its state since, otherwise only if it reads and nothing else.

        Raises:
            Interrupted, DeviceFailure: as `conduct`.
        """
        known = None if self.resume is None else self.resume.take(step, job)
        if known is not None:
            self.recording.add(known.row)
            self._cover(job, known.outcome, drive)
            self.forecast.skip(step.kind, _work(job))
            return known.outcome
        if step.rest_s > 0:
            self.rest(step.rest_s)
        return self._measure(step, job, drive or self.target.drive)

    def rest(self, seconds: float) -> None:
        """Leaves the drive alone for some seconds of its clock."""
        part = self.forecast.step("rest", seconds, f"resting {seconds:g} s")
        if not self.target.drive.rest(seconds, part.watch):
            raise Interrupted("stopped while resting")
        part.finish()

    def fill(self, size: int, stage: int = 0, drive: Drive | None = None) -> None:
        """Writes the first `size` bytes in order, by 1 MiB, four at a time, and flushes them."""
        job = Job(
            op="write",
            length_bytes=size,
            block_bytes=FILL_BLOCK,
            amount_bytes=size,
            queue_depth=FILL_DEPTH,
        )
        words = f"writing {format_size(size)} in order"
        self.run(Step("fill", words, "fill", stage=stage, keeps_part=True), job, drive)
        self.flush(stage, drive)

    def flush(self, stage: int = 0, drive: Drive | None = None) -> None:
        """Makes the drive keep what it was sent; checks that the test file is wholly on it."""
        drive = drive or self.target.drive
        outcome = run_job(drive, Job(op="flush"))
        row = self._row(Step("flush", "flushing", "fill", stage), Job(op="flush"), outcome, drive)
        self._add(row, outcome, {"extents": self.target.check_written()})
        outcome.raise_if_failed("flushing")

    def observe(self, name: str, value: float | None = None, detail: str = "") -> None:
        """Notes what was seen beside the steps: a temperature, a counter, an answer."""
        self.recording.observe(name, value, detail)

    def _measure(self, step: Step, job: Job, drive: Drive) -> Outcome:
        part = self.forecast.step(step.kind, _work(job), step.label)
        self._note_warmth()
        before = drive.counters()
        outcome = run_job(drive, job, part.watch)
        part.finish()
        if step.keeps_part or not outcome.stopped:
            self._add(self._row(step, job, outcome, drive), outcome)
        self._note_warmth()
        if job.op == "write":
            self._note_writing(before, drive.counters())
        self._cover(job, outcome, drive)
        outcome.raise_if_failed(step.label)
        if outcome.stopped:
            raise Interrupted(f"stopped while {step.label}")
        return outcome

    def _cover(self, job: Job, outcome: Outcome, drive: Drive | None) -> None:
        """Notes what of the site is written; of a file that an experiment made itself nothing."""
        if drive is None or self.target.has(drive):
            self._coverage.see(job, outcome.bytes, self.target.warn)

    def _note_warmth(self) -> None:
        for name, found in self.target.temperatures().items():
            self.observe("temperature_c", found.celsius, name)
            if found.limit is not None and name not in self._limits:
                self._limits.add(name)
                self.observe("temperature_limit_c", found.limit, name)

    def _note_writing(
        self, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
    ) -> None:
        """What a twin counted of a step: bytes from the host, bytes to the flash, their ratio."""
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
            **host_columns(outcome.host, is_virtual=self.target.is_virtual),
        }


def _work(job: Job) -> float:
    return float(job.amount_bytes) if job.seconds is None else job.seconds


def _written(counters: Mapping[str, Any]) -> tuple[float, float]:
    """Bytes from the host and to the flash in a twin's life, from its counters."""
    host = float(counters["host_write_bytes"])
    return host, host * (counters["waf"] or 0.0)

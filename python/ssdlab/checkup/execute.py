"""Runs the parts of a checkup one after the other, within its time, and stores what they found."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from ssdlab.checkup import parts
from ssdlab.checkup.parts import DOCTOR, LIMIT_S, ORDER, RESERVED_S, Sizing
from ssdlab.checkup.record import (
    Checkup,
    Record,
    read_checkup,
    write_doctor,
    write_record,
)
from ssdlab.doctor.examine import MapOptions, make_report, read_stack
from ssdlab.errors import DeviceFailure, Interrupted, TargetError, UsageError
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.records import Run, make_folder, run_name, utc_now
from ssdlab.runner.parameters import Parameters
from ssdlab.runner.progress import Listener, Report
from ssdlab.runner.run import RunObserver, SaveOptions, make_request, perform
from ssdlab.storage_stack.filesystem import mount_warnings
from ssdlab.storage_stack.mounts import mount_of
from ssdlab.storage_stack.space import space_on
from ssdlab.target import NO_CONSENT, RESULTS, Directory, Target, Twin, anywhere, parse_target
from ssdlab.units import format_duration, format_size

LABEL: Final = "checkup"
_TWIN_S: Final = 3.0
"""Expected real time of an experiment on a twin."""
_DOCTOR_S: Final = 15.0
_LEARNT_SHARE: Final = 0.05
"""Before this share of a part, its own forecast knows too little of the drive."""
_TIME_IS_UP: Final = "the checkup ran out of time; run it on its own"


@dataclass(frozen=True)
class CheckupOptions:
    """A directory or twin, the results folder, the seed, and the time limit in seconds."""

    target: Directory | Twin
    out: Path = RESULTS
    seed: int = 0
    limit_s: float = LIMIT_S


def options_for(target: Target, out: Path, seed: int) -> CheckupOptions:
    """The options of a checkup of a target.

    Raises:
        UsageError: a block device, which a checkup never overwrites.
        TargetError: a directory that is not on a drive.
    """
    if not isinstance(target, Directory | Twin):
        raise UsageError(
            f"{target} is a block device, and a checkup never overwrites one; give a directory on "
            f"it, or look at it with: ssdlab doctor {target}"
        )
    if isinstance(target, Directory):
        for warning in mount_warnings(mount_of(target.path)):
            if warning.code in {"memory", "pseudo"}:
                raise TargetError(
                    f"{warning.sentence.rstrip('.')}; give a directory on the drive to be measured"
                )
    return CheckupOptions(target, out, seed)


def cost(options: CheckupOptions) -> str:
    """What the checkup will do, in a sentence: room, bytes written, time."""
    limit = format_duration(options.limit_s)
    if isinstance(options.target, Twin):
        return f"checkup {options.target}: at most {limit}"
    room, space = _room(options.target), space_on(options.target.path)
    largest = min(max(parts.USUAL_SIZES.values()), room // parts.MIB * parts.MIB)
    why = ""
    if room < max(parts.USUAL_SIZES.values()):
        free, kept = format_size(space.free_bytes), format_size(space.kept_bytes)
        why = f", because {free} are free and {kept} must stay free"
    return (
        f"checkup {options.target}: at most {limit}, with test files of at most "
        f"{format_size(largest)}, which are removed{why}"
    )


def perform_checkup(options: CheckupOptions, observer: RunObserver) -> Checkup:
    """Examines and measures a target, and stores the checkup below `options.out`.

    After Ctrl-C the checkup has the outcome "interrupted" and the results so far.

    Raises:
        UsageError: the checkup cannot be stored, or the target cannot be read.
    """
    started = utc_now()
    twin = options.target if isinstance(options.target, Twin) else None
    name = options.target.label if twin is not None else str(anywhere(options.target))
    folder = make_folder(options.out, run_name("checkup", name, started))
    record = Record(
        ssdlab=version("ssdlab"),
        target=str(options.target),
        place=str(anywhere(options.target)),
        virtual=twin is not None,
        capacity_bytes=None if twin is None else twin.scaled_to_bytes,
        seed=options.seed,
        started=started.isoformat(timespec="seconds"),
        duration_s=0.0,
        as_root=os.geteuid() == 0,
        room_bytes=None if twin is not None else _room(options.target),
    )
    return _Execution(options, Checkup(folder, record)).run(observer)


def resume_checkup(folder: Path, observer: RunObserver) -> Checkup:
    """Measures the parts of a checkup that are not complete.

    Raises:
        UsageError: the folder has no checkup, or a complete one.
        TargetError: the target no longer exists.
    """
    checkup = read_checkup(folder)
    if checkup.is_complete:
        raise UsageError(f"{folder} is complete; see it with: ssdlab checkup --recorded {folder}")
    record = checkup.record
    target = parse_target(record.place, record.capacity_bytes)
    options = options_for(target, folder.parent, record.seed)
    return _Execution(options, checkup).run(observer)


def _room(target: Directory | Twin) -> int:
    """Bytes that test files may use."""
    return target.capacity_bytes if isinstance(target, Twin) else space_on(target.path).usable_bytes


@dataclass
class _Execution:
    """A checkup in progress; `earlier` is the interrupted one that is resumed, or an empty one."""

    options: CheckupOptions
    earlier: Checkup
    sizes: dict[str, int] = field(default_factory=dict)
    why_not: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    doctor_s: float = 0.0
    _started: float = field(default_factory=time.monotonic)

    def run(self, observer: RunObserver) -> Checkup:
        """Runs all parts that the earlier checkup lacks; Ctrl-C ends it."""
        outcome = "interrupted"
        record = self.earlier.record
        self.sizes |= record.sizes
        self.doctor_s = record.doctor_s
        self._save("interrupted")
        try:
            with observer.progress(f"checkup {record.target}") as listener:
                if not record.virtual:
                    self._doctor(listener)
                for name in RESERVED_S:
                    self._experiment(name, listener)
            outcome = "complete"
        except (Interrupted, KeyboardInterrupt):
            pass
        finally:
            self._save(outcome)
        return read_checkup(self.earlier.folder)

    def _save(self, outcome: str) -> None:
        record = self.earlier.record
        changed = {
            "outcome": outcome,
            "duration_s": record.duration_s + self.elapsed_s,
            "doctor_s": self.doctor_s,
            "sizes": self.sizes,
            "why_not": self.why_not,
            "failed": self.failed,
        }
        write_record(self.earlier.folder, msgspec.structs.replace(record, **changed))

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def left_s(self, name: str) -> float:
        """Seconds that the part may still take."""
        later = ORDER[ORDER.index(name) + 1 :]
        scale = self.options.limit_s / LIMIT_S
        reserved = scale * sum(RESERVED_S[other] for other in later)
        return self.options.limit_s - reserved - self.elapsed_s

    def _doctor(self, listener: Listener) -> None:
        if self.earlier.doctor is not None:
            return
        progress = _PartProgress(self, DOCTOR, listener)
        options = MapOptions(self.earlier.record.place, (), parts.DOCTOR_READ_BYTES)
        began = time.monotonic()
        progress.label("reading the storage stack")
        stack = read_stack(options, progress.label)
        self.doctor_s = time.monotonic() - began
        write_doctor(self.earlier.folder, make_report(stack, self.doctor_s))

    def _experiment(self, name: str, listener: Listener) -> None:
        """Runs one experiment; a reason is stored if it cannot run, or is not complete."""
        done = self.earlier.runs.get(name)
        if done is not None and done.manifest.outcome == "complete":
            self._learn(done)
            return
        sizing = Sizing(_room(self.options.target), self.rates, self.left_s(name))
        choice = parts.choose(name, self.options.target, sizing)
        if choice.parameters is None:
            self.why_not[name] = choice.why_not
            return
        progress = _PartProgress(self, name, listener)
        try:
            run = self._perform(choice.parameters, progress)
        except UsageError as error:
            self.why_not[name] = str(error)
            return
        except DeviceFailure as error:
            self.failed[name] = str(error)
            return
        if run.manifest.outcome != "complete" and not progress.time_is_up:
            self.why_not[name] = "it was interrupted"
            raise Interrupted("interrupted")
        if progress.time_is_up:
            self.why_not[name] = _TIME_IS_UP
        self._learn(run)

    def _perform(self, parameters: Parameters, progress: _PartProgress) -> Run:
        """Runs it; with half the size if it would wear the drive more than its rating allows."""
        while True:
            observer = _PartObserver(progress)
            experiment = EXPERIMENTS[parameters.experiment()]
            request = make_request(
                experiment, parameters, self.options.target, NO_CONSENT, self.options.seed
            )
            self.sizes[experiment.name] = request.plan.size
            try:
                return perform(request, SaveOptions(self.earlier.folder, LABEL), observer)
            except UsageError:
                smaller = request.plan.size // 2 // parts.MIB * parts.MIB
                if not observer.declined or smaller < parts.SIZE_MIN:
                    raise
                parameters = replace(parameters, **{parameters.sized_by: smaller})

    def _learn(self, run: Run) -> None:
        if run.manifest.experiment == "suite" and not self.earlier.record.virtual:
            self.rates |= parts.measured_rates(run.result.measures)


class _PartProgress:
    """Turns the progress of a part into that of the checkup, and ends the part at its deadline."""

    def __init__(self, execution: _Execution, name: str, listener: Listener) -> None:
        self.time_is_up = False
        self._execution, self._name, self._listener = execution, name, listener
        self._started = time.monotonic()

    def label(self, text: str) -> None:
        """Reports a step without a share."""
        self._report(Report(text, 0.0, 0.0, None))

    def __call__(self, report: Report) -> None:
        """Reports a step.

        Raises:
            Interrupted: the time of the part is up.
        """
        self._report(report)
        if self._execution.left_s(self._name) <= 0:
            self.time_is_up = True
            raise Interrupted("its time is up")

    def _report(self, report: Report) -> None:
        execution = self._execution
        took = time.monotonic() - self._started
        left = report.left_s
        if left is None or report.run_share < _LEARNT_SHARE:
            left = max(0.0, self._expected_s(self._name) - took)
        later = ORDER[ORDER.index(self._name) + 1 :]
        left += sum(self._expected_s(other) for other in later)
        elapsed = execution.elapsed_s
        left = min(left, max(0.0, execution.options.limit_s - elapsed))
        share = elapsed / max(elapsed + left, 1e-9)
        label = f"{self._name}: {report.label}"
        self._listener(
            Report(label, report.step_share, share, left, report.bytes_per_s, report.done)
        )

    def _expected_s(self, name: str) -> float:
        if self._execution.earlier.record.virtual:
            return _TWIN_S
        return RESERVED_S.get(name, _DOCTOR_S)


class _PartObserver(RunObserver):
    """Observes one experiment of a checkup. It has no user to ask: it declines to wear a drive."""

    def __init__(self, progress: _PartProgress) -> None:
        super().__init__(progress)
        self.declined = False

    def confirm(self, sentence: str) -> bool | None:  # noqa: ARG002 -- the answer is always no
        """Declines, so that the checkup writes less."""
        self.declined = True
        return False

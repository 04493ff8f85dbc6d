"""One run from target to folder: the one way, for programs and for the command line.

A task is a plan on a target. `perform` opens the target, measures, and leaves a run folder in any
case; who wants to be told or asked meanwhile is an `RunObserver`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec

from ssdlab.analysis.evidence import Evidence
from ssdlab.errors import Interrupted, SsdlabError, UsageError
from ssdlab.records import (
    Manifest,
    Recording,
    Result,
    Run,
    make_folder,
    read_recorded,
    read_run,
    run_name,
    utc_now,
    write_run,
)
from ssdlab.runner import provenance
from ssdlab.runner.budget import budget
from ssdlab.runner.experiment import Experiment
from ssdlab.runner.open_target import OpenTarget, TargetOptions, check, open_for_run, restored
from ssdlab.runner.parameters import Parameters
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.resume import ResumeState
from ssdlab.runner.session import Plan, RunSession
from ssdlab.runner.warnings import few_samples
from ssdlab.target import RESULTS, SEED_MAX, Consent, Target
from ssdlab.units import format_duration, format_size


@dataclass(frozen=True)
class SaveOptions:
    """Where a run's folder is made, and what its user calls the run."""

    out: Path = RESULTS
    label: str = ""


@dataclass(frozen=True)
class ResumedRun:
    """A run that is to be gone on with: its folder, its manifest, what it recorded."""

    folder: Path
    manifest: Manifest
    resume: ResumeState


@dataclass(frozen=True)
class RunRequest:
    """One run: an experiment with its plan on a target; `asked` are the options, if known."""

    experiment: Experiment
    plan: Plan
    options: TargetOptions
    begun: ResumedRun | None = None
    asked: dict[str, str | bool] | None = None


class RunObserver:
    """Who is told of a run while it goes on: a listener alone, and there is nobody to be asked."""

    def __init__(self, listener: Listener = silent) -> None:
        """Nobody, where no listener is given."""
        self._listener = listener

    def tell(self, sentence: str) -> None:
        """Is told what a run will cost, before anything is written."""

    def agrees(self, sentence: str) -> bool | None:  # noqa: ARG002 -- whoever can be asked reads it
        """Whether what is said may be done; None where nobody can be asked."""
        return None

    def watching(self, title: str) -> AbstractContextManager[Listener]:  # noqa: ARG002 -- as above
        """A listener for as long as the run goes on."""
        return contextlib.nullcontext(self._listener)


def make_request(
    experiment: Experiment, parameters: Parameters, target: Target, consent: Consent, seed: int
) -> RunRequest:
    """A run of an experiment, checked as far as possible before the target is opened.

    Raises:
        UsageError, TargetError: a parameter, the seed or the target is not allowed.
    """
    if not 0 <= seed <= SEED_MAX:
        raise UsageError(f"the seed is {seed}; it may be a whole number from 0 to {SEED_MAX}")
    plan = experiment.plan(parameters, target, seed)
    options = options_of(target, plan, consent, parameters.size_option())
    check(options)
    return RunRequest(experiment, plan, options, asked=parameters.options())


def options_of(
    target: Target, plan: Plan, consent: Consent, size_from: str = "--size"
) -> TargetOptions:
    """How a target is opened for a plan; `size_from` names the option that gave its size."""
    return TargetOptions(target, plan.size, plan.seed, consent, plan.request_bytes_max, size_from)


def resume_request(
    folder: Path, consent: Consent, experiments: Mapping[str, Experiment]
) -> RunRequest:
    """The rest of a run that was interrupted or killed.

    Raises:
        UsageError: it is complete, or its experiment is unknown.
        TargetError: its target may not be opened.
    """
    manifest, tables = read_recorded(folder)
    if manifest.outcome == "complete":
        raise UsageError(f"{folder} is complete; see it with: ssdlab report {folder}")
    experiment = experiments.get(manifest.experiment)
    if experiment is None or not manifest.plan:
        raise UsageError(f"{folder} was made by another version and cannot be resumed")
    resume = ResumeState(tables, keeps_state=manifest.device.get("kind") == "block device")
    plan = msgspec.convert(manifest.plan, experiment.plan_type)
    options = restored(manifest.wish, consent)
    check(options)
    return RunRequest(experiment, plan, options, ResumedRun(folder, manifest, resume))


def perform(task: RunRequest, keeping: SaveOptions, audience: RunObserver) -> Run:
    """Runs a task and keeps the run; `manifest.outcome` says whether Ctrl-C broke it off.

    Raises:
        SsdlabError: what ended the work; what was measured until then is kept.
    """
    started, clock = utc_now(), time.monotonic()
    with open_for_run(task.options) as opened:
        _weigh(task, opened, audience)
        folder = _folder(
            task, keeping, run_name(task.experiment.name, task.options.target.label, started)
        )
        manifest = manifest_of(task, opened, folder, keeping.label)
        with audience.watching(f"{task.experiment.name} {task.options.target}") as listener:
            session = RunSession(
                opened,
                listener,
                None if task.begun is None or opened.is_virtual else task.begun.resume,
                lambda recording: write_run(folder, manifest, recording, None),
            )
            outcome, error = _measure(session, task)
    manifest = msgspec.structs.replace(manifest, outcome=outcome)
    result = result_of(
        task.experiment, session.recording, manifest, opened, time.monotonic() - clock, folder
    )
    write_run(folder, manifest, session.recording, result)
    if error is not None:
        raise error
    return read_run(folder)


def _weigh(task: RunRequest, opened: OpenTarget, audience: RunObserver) -> None:
    """Says what the run costs a real drive; asks where that is much of a day's endurance."""
    if opened.is_virtual:
        return
    cost = budget(task.plan, opened.identity.get("drives", ()))
    if opened.destroys:
        audience.tell(f"{task.experiment.name} destroys what is on {opened.destroys}")
    audience.tell(
        f"{task.experiment.name} {task.options.target}: writes up to "
        f"{format_size(cost.write_bytes)}, "
        f"about {format_duration(cost.expected_s)} on a SATA drive"
    )
    if not cost.asks:
        return
    assert cost.endurance_share is not None
    sentence = (
        f"The run writes {format_size(cost.write_bytes)}, {cost.endurance_share:.0%} of what a "
        "drive of this size is made to bear in a day"
    )
    agreed = audience.agrees(sentence)
    if agreed is None:
        opened.warn("endurance", f"{sentence}; nobody could be asked.")
    elif not agreed:
        raise UsageError("nothing was written; give a smaller --size or --quick")


def _folder(task: RunRequest, keeping: SaveOptions, name: str) -> Path:
    return make_folder(keeping.out, name) if task.begun is None else task.begun.folder


def manifest_of(task: RunRequest, opened: OpenTarget, folder: Path, label: str) -> Manifest:
    """Who measures what, and where; interrupted, until it is known better."""
    started = utc_now().isoformat(timespec="seconds")
    return Manifest(
        run=folder.name,
        ssdlab=version("ssdlab"),
        experiment=task.experiment.name,
        target=str(task.options.target),
        virtual=opened.is_virtual,
        seed=task.plan.seed,
        started=started if task.begun is None else task.begun.manifest.started,
        parameters=task.plan.parameters(),
        versions=provenance.versions(),
        host=provenance.host(),
        device=opened.identity,
        profile=opened.profile,
        outcome="interrupted",
        plan=msgspec.to_builtins(task.plan),
        wish=task.options.stored(),
        label=label if task.begun is None else task.begun.manifest.label,
        options=task.asked if task.begun is None else task.begun.manifest.options,
    )


def _measure(session: RunSession, task: RunRequest) -> tuple[str, SsdlabError | None]:
    """Runs it; returns how it ended, and the error that must be raised once all is stored."""
    try:
        session.run_plan(task.experiment.measure, task.plan)
    except (Interrupted, KeyboardInterrupt):
        return "interrupted", None
    except SsdlabError as error:
        return "failed", error
    return "complete", None


def result_of(
    experiment: Experiment,
    recording: Recording,
    manifest: Manifest,
    opened: OpenTarget,
    duration_s: float,
    folder: Path,
) -> Result:
    """What the recording supports, by the experiment's own analysis."""
    warnings = frozenset(warning.code for warning in opened.warnings)
    evidence = Evidence(
        recording.tables(), manifest.parameters, manifest.outcome, warnings, manifest.virtual
    )
    conclusion = experiment.conclude(evidence)
    few_samples(conclusion.measures, opened.warn)
    return Result(
        ssdlab=manifest.ssdlab,
        experiment=manifest.experiment,
        target=manifest.target,
        virtual=manifest.virtual,
        seed=manifest.seed,
        duration_s=duration_s,
        parameters=manifest.parameters,
        measures=conclusion.measures,
        findings=conclusion.findings,
        verdict=conclusion.verdict,
        warnings=opened.warnings,
        folder=str(folder),
    )

"""Runs an experiment on a target and stores the run. The API and the command line both use it.

`perform` opens the target, measures, and stores a run folder even if the measurement fails. A
`RunObserver` receives messages and progress, and answers requests for confirmation.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
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
from ssdlab.runner.open_target import OpenTarget, TargetOptions, check, open_for_run
from ssdlab.runner.parameters import Parameters
from ssdlab.runner.progress import Listener, silent
from ssdlab.runner.quick_size import quick_needs_less, smaller
from ssdlab.runner.resume import ResumeState
from ssdlab.runner.session import Plan, RunSession
from ssdlab.runner.warnings import check_percentiles
from ssdlab.target import RESULTS, SEED_MAX, Consent, Target
from ssdlab.units import format_size


@dataclass(frozen=True)
class SaveOptions:
    """The folder in which the run's folder is created, and the run's label."""

    out: Path = RESULTS
    label: str = ""


@dataclass(frozen=True)
class ResumedRun:
    """An interrupted run that is resumed: its folder, its manifest and its records."""

    folder: Path
    manifest: Manifest
    resume: ResumeState


@dataclass(frozen=True)
class RunRequest:
    """An experiment's plan on a target. `command_options` are its options on the command line.

    They are stored in the manifest to repeat the run; None if the run did not come from options.
    `note` is a sentence for the user before the run starts.
    """

    experiment: Experiment
    plan: Plan
    options: TargetOptions
    resumed: ResumedRun | None = None
    command_options: dict[str, str | bool] | None = None
    note: str = ""


class RunObserver:
    """Observes a run without a terminal: passes progress to a listener, has no user to ask."""

    def __init__(self, listener: Listener = silent) -> None:
        """Calls `listener` with each progress report."""
        self._listener = listener

    def message(self, sentence: str) -> None:
        """Receives a sentence for the user, such as the cost of the run before it starts."""

    def confirm(self, sentence: str) -> bool | None:  # noqa: ARG002 -- subclasses show it
        """Asks the user to confirm; None if there is no user to ask."""
        return None

    def progress(self, title: str) -> AbstractContextManager[Listener]:  # noqa: ARG002 -- as above
        """A context whose listener receives the progress of the run."""
        return contextlib.nullcontext(self._listener)


def make_request(
    experiment: Experiment, parameters: Parameters, target: Target, consent: Consent, seed: int
) -> RunRequest:
    """A run of an experiment, checked as far as possible before the target is opened.

    Raises:
        UsageError, TargetError: a parameter, the seed or the target is not allowed.
    """
    if not 0 <= seed <= SEED_MAX:
        raise UsageError(f"the seed is {seed}; it must be a whole number from 0 to {SEED_MAX}")
    plan, note = experiment.plan(parameters, target, seed), ""
    if reduced := smaller(parameters, target, plan.size):
        usual = plan.size
        with contextlib.suppress(UsageError):  # no room for the least: the usual size is refused
            plan = experiment.plan(reduced, target, seed)
            parameters = reduced
            note = (
                f"--quick: {target} has room for {format_size(plan.size)} instead of "
                f"{format_size(usual)}"
            )
    options = replace(
        options_of(target, plan, consent, parameters.size_option()),
        smaller="--quick" if quick_needs_less(parameters) else "",
    )
    check(options)
    return RunRequest(experiment, plan, options, command_options=parameters.options(), note=note)


def options_of(
    target: Target, plan: Plan, consent: Consent, size_from: str = "--size"
) -> TargetOptions:
    """The options to open a target for a plan; `size_from` names the option that gave its size."""
    return TargetOptions(target, plan.size, plan.seed, consent, plan.request_bytes_max, size_from)


def resume_request(
    folder: Path, consent: Consent, experiments: Mapping[str, Experiment]
) -> RunRequest:
    """The remaining steps of a run that was interrupted or killed.

    Raises:
        UsageError: it is complete, or its experiment is unknown.
        TargetError: its target is missing or must not be opened.
    """
    manifest, tables = read_recorded(folder)
    if manifest.outcome == "complete":
        raise UsageError(f"{folder} is complete; see it with: ssdlab report {folder}")
    experiment = experiments.get(manifest.experiment)
    if experiment is None or not manifest.plan:
        raise UsageError(
            f"{folder} was made by another version and cannot be resumed; start a new run"
        )
    resume = ResumeState(tables, keeps_state=manifest.device.get("kind") == "block device")
    plan = msgspec.convert(manifest.plan, experiment.plan_type)
    options = TargetOptions.from_manifest(manifest.wish, consent)
    check(options)
    return RunRequest(experiment, plan, options, ResumedRun(folder, manifest, resume))


def perform(request: RunRequest, save: SaveOptions, observer: RunObserver) -> Run:
    """Measures and stores the run; after Ctrl-C `manifest.outcome` is "interrupted".

    Raises:
        SsdlabError: the error that ended the measurement; the records up to then are stored.
    """
    started, clock = utc_now(), time.monotonic()
    name = run_name(request.experiment.name, request.options.target.label, started)
    if request.note:
        observer.message(request.note)
    with open_for_run(request.options) as target:
        _report_cost(request, target, observer)
        folder = make_folder(save.out, name) if request.resumed is None else request.resumed.folder
        manifest = manifest_of(request, target, folder, save.label)
        if request.resumed is None:
            write_run(folder, manifest, Recording(), None)  # a killed run can be resumed, too
        with observer.progress(f"{request.experiment.name} {request.options.target}") as listener:
            session = RunSession(
                target,
                listener,
                None if request.resumed is None or target.is_virtual else request.resumed.resume,
                lambda recording: write_run(folder, manifest, recording, None),
            )
            outcome, error = _measure(session, request)
    manifest = msgspec.structs.replace(manifest, outcome=outcome)
    result = result_of(
        request.experiment, session.recording, manifest, target, time.monotonic() - clock, folder
    )
    write_run(folder, manifest, session.recording, result)
    if error is not None:
        raise error
    return read_run(folder)


def _report_cost(request: RunRequest, target: OpenTarget, observer: RunObserver) -> None:
    """Reports the cost of a run on a real drive; asks to confirm if it wears the drive much.

    Raises:
        UsageError: the user did not confirm.
    """
    if target.is_virtual:
        return
    cost = budget(request.plan, target.identity.get("drives", ()))
    if target.destroys:
        observer.message(f"{request.experiment.name} destroys what is on {target.destroys}")
    observer.message(f"{request.experiment.name} {request.options.target}: {cost.sentence}")
    if not cost.needs_confirmation:
        return
    assert cost.endurance_share is not None
    sentence = (
        f"The run writes {format_size(cost.write_bytes)}, {cost.endurance_share:.0%} of the daily "
        "writes that a drive of this size is rated for"
    )
    confirmed = observer.confirm(sentence)
    if confirmed is None:
        target.warn(
            "endurance",
            f"{sentence}. Without a terminal, ssdlab cannot ask for confirmation: give a smaller "
            "--size or --quick to spare the drive, or --yes to confirm.",
        )
    elif not confirmed:
        raise UsageError("nothing was written; give a smaller --size or --quick")


def manifest_of(request: RunRequest, target: OpenTarget, folder: Path, label: str) -> Manifest:
    """The manifest at the start of a run; its outcome is "interrupted" until the run ends."""
    earlier = None if request.resumed is None else request.resumed.manifest
    return Manifest(
        run=folder.name,
        ssdlab=version("ssdlab"),
        experiment=request.experiment.name,
        target=str(request.options.target) if earlier is None else earlier.target,
        virtual=target.is_virtual,
        seed=request.plan.seed,
        started=utc_now().isoformat(timespec="seconds") if earlier is None else earlier.started,
        parameters=request.plan.parameters(),
        versions=provenance.versions(),
        host=provenance.host(),
        device=target.identity,
        profile=target.profile,
        outcome="interrupted",
        plan=msgspec.to_builtins(request.plan),
        wish=request.options.to_manifest(),
        label=label if earlier is None else earlier.label,
        options=request.command_options if earlier is None else earlier.options,
    )


def _measure(session: RunSession, request: RunRequest) -> tuple[str, SsdlabError | None]:
    """Runs the plan; returns the outcome, and the error to raise after the run is stored."""
    try:
        session.run_plan(request.experiment.measure, request.plan)
    except (Interrupted, KeyboardInterrupt):
        return "interrupted", None
    except SsdlabError as error:
        return "failed", error
    return "complete", None


def result_of(
    experiment: Experiment,
    recording: Recording,
    manifest: Manifest,
    target: OpenTarget,
    duration_s: float,
    folder: Path,
) -> Result:
    """The result of a recording, by the experiment's analysis."""
    warnings = frozenset(warning.code for warning in target.warnings)
    evidence = Evidence(
        recording.tables(), manifest.parameters, manifest.outcome, warnings, manifest.virtual
    )
    conclusion = experiment.conclude(evidence)
    check_percentiles(conclusion.measures, target.warn)
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
        warnings=target.warnings,
        folder=str(folder),
    )

"""Measures several sides (targets or settings) in turns, and saves each as its own run."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from ssdlab import target as targets
from ssdlab.api.comparison import Comparison, unique_name
from ssdlab.api.run import completed
from ssdlab.api.target import Target, open_target
from ssdlab.comparison import verdict
from ssdlab.comparison.method import Side
from ssdlab.errors import Interrupted, UsageError
from ssdlab.experiments import Workload
from ssdlab.experiments.registry import EXPERIMENTS
from ssdlab.experiments.turns import measure as turns
from ssdlab.experiments.turns.measure import Plan
from ssdlab.experiments.workload import measure as workload
from ssdlab.experiments.workload.measure import PreparedJob
from ssdlab.records import Manifest, Run, make_folder, read_run, run_name, utc_now, write_run
from ssdlab.runner.open_target import OpenTarget, TargetOptions, check, open_for_run
from ssdlab.runner.progress import Listener, Report, silent
from ssdlab.runner.run import (
    RunObserver,
    RunRequest,
    SaveOptions,
    manifest_of,
    options_of,
    result_of,
)
from ssdlab.runner.session import RunSession
from ssdlab.target import RESULTS
from ssdlab.units import format_duration, format_size


@dataclass(frozen=True)
class SideOptions:
    """A target and its jobs; `setting` names the jobs, or is "" if all sides share them."""

    target: Target
    setting: str
    jobs: workload.Plan


@dataclass(frozen=True)
class SidePlan:
    """The plan of one side, with its unique name."""

    name: str
    target: targets.Target
    consent: targets.Consent
    plan: Plan


@dataclass
class _RunningSide:
    plan: Plan
    session: RunSession
    manifest: Manifest
    folder: Path
    jobs: Sequence[PreparedJob] = ()


@dataclass
class _CombinedProgress:
    """Combines the progress of `count` sides into one report."""

    listener: Listener
    count: int
    _last: dict[int, Report] = field(default_factory=dict)

    def listener_of(self, side: int) -> Listener:
        """The listener of the side with this index."""

        def update(report: Report) -> None:
            self._last[side] = report
            share = sum(last.run_share for last in self._last.values()) / self.count
            left = [last.left_s for last in self._last.values() if last.left_s is not None]
            left_s = sum(left) if left else None
            self.listener(Report(report.label, report.step_share, share, left_s))

        return update


def compare_in_turns(
    sides: Sequence[tuple[Target | Path | str, Workload]],
    *,
    number: int = 20,
    seed: int = 0,
    out: Path | str = RESULTS,
    listener: Listener = silent,
) -> Comparison:
    """Measure sides in turns and compare them; a side is a target and a fio job file.

    Turns spread disturbances equally over all sides. A turn runs all jobs of the file once; each
    side gets `number` turns and is saved as a run below `out`. For a block device, pass the result
    of `open_target` with consent to destroy its data.

    Raises:
        UsageError: fewer than two sides, an invalid job file, or a number of turns out of range.
        TargetError, DeviceFailure: as `Target.run`.
        Interrupted: Ctrl-C; the turns so far are saved.
    """
    files = [Path(setting.fio) for _, setting in sides]
    several = len(set(files)) > 1
    opened = [t if isinstance(t, Target) else open_target(t) for t, _ in sides]
    plans = plan_sides(
        [
            SideOptions(
                target,
                file.stem if several else "",
                workload.plan_of_file(file, target.parsed, seed=seed),
            )
            for target, file in zip(opened, files, strict=True)
        ],
        number,
    )
    runs = measure_in_turns(plans, SaveOptions(Path(out)), RunObserver(listener))
    for run in runs:
        completed(run)
    return compare_sides(plans, runs)


def plan_sides(sides: Sequence[SideOptions], number: int) -> list[SidePlan]:
    """Plans with `number` turns for each side.

    Raises:
        UsageError: fewer than two sides, jobs without a common name, or a number of turns out of
            range.
    """
    if len(sides) < 2:
        raise UsageError(
            f"turns need two sides or more, not {len(sides)}; give another target, or another "
            "job file"
        )
    first, *others = ({job.name for job in side.jobs.jobs} for side in sides)
    if any(first.isdisjoint(other) for other in others):
        raise UsageError(
            "turns compare jobs of the same name, but two job files have no job name in common; "
            "rename the jobs"
        )
    session, plans = secrets.token_hex(4), list[SidePlan]()
    for at, side in enumerate(sides):
        plan = turns.check(Plan(side.jobs, number, session, at, len(sides)))
        words = ", ".join(word for word in (side.target.name, side.setting) if word)
        name = unique_name(words, [other.name for other in plans])
        plans.append(SidePlan(name, side.target.parsed, side.target.consent, plan))
    return plans


def compare_sides(plans: Sequence[SidePlan], runs: Sequence[Run]) -> Comparison:
    """Compare the runs that `measure_in_turns` returned; their settings may differ.

    Raises:
        UsageError: the runs have no number in common.
    """
    sides = [Side(plan.name, (run,)) for plan, run in zip(plans, runs, strict=True)]
    return Comparison(verdict.compare(sides, settings=True))


def measure_in_turns(
    sides: Sequence[SidePlan], save: SaveOptions, observer: RunObserver
) -> list[Run]:
    """Measure and save a run of each side, in order; after Ctrl-C, runs have fewer turns.

    Raises:
        SsdlabError: anything failed; the results so far are saved.
    """
    requests = [
        RunRequest(EXPERIMENTS["turns"], side.plan, _options(side, sides)) for side in sides
    ]
    for request in requests:
        check(request.options)
    clock = time.monotonic()
    with ExitStack() as stack:
        opened_targets = _open_targets(stack, requests)
        folder = make_folder(save.out, run_name("compare", sides[0].target.label, utc_now()))
        _report_cost(sides, opened_targets, observer)
        listener = stack.enter_context(observer.progress(f"compare {len(sides)} sides"))
        progress = _CombinedProgress(listener, len(sides))
        running: list[_RunningSide] = []
        for at, (side, request) in enumerate(zip(sides, requests, strict=True)):
            opened, own = opened_targets[at], progress.listener_of(at)
            shared = next((s.session for s in running if s.session.target is opened), None)
            session = RunSession(opened, own) if shared is None else shared.second_session(own)
            side_folder = folder / f"{at + 1}"
            manifest = _make_manifest(request, opened, side_folder, save.label)
            running.append(_RunningSide(side.plan, session, manifest, side_folder))
        outcome = "interrupted"
        try:
            _measure(running, listener)
            outcome = "complete"
        except (Interrupted, KeyboardInterrupt):
            pass
        finally:
            _save(running, outcome, time.monotonic() - clock)
    return [read_run(side.folder) for side in running]


def _options(side: SidePlan, sides: Sequence[SidePlan]) -> TargetOptions:
    """Options for a side: sides on one target share a test region, sized for the largest."""
    sharing = [one.plan for one in sides if _location(one.target) == _location(side.target)]
    return replace(
        options_of(side.target, side.plan, side.consent),
        size_bytes=max(plan.size for plan in sharing),
        request_bytes_max=max(plan.request_bytes_max for plan in sharing),
    )


def _location(target: targets.Target) -> targets.Twin | Path:
    return target if isinstance(target, targets.Twin) else target.path.resolve()


def _open_targets(stack: ExitStack, requests: Sequence[RunRequest]) -> list[OpenTarget]:
    """Open a twin for each side, but a directory or device once for all sides on it."""
    shared: dict[Path, OpenTarget] = {}
    opened = []
    for request in requests:
        location = _location(request.options.target)
        if isinstance(location, targets.Twin):
            opened.append(stack.enter_context(open_for_run(request.options)))
            continue
        if location not in shared:
            shared[location] = stack.enter_context(open_for_run(request.options))
        opened.append(shared[location])
    return opened


def _report_cost(
    sides: Sequence[SidePlan], opened_targets: Sequence[OpenTarget], observer: RunObserver
) -> None:
    if all(opened.is_virtual for opened in opened_targets):
        return
    written = format_size(sum(side.plan.write_bytes for side in sides))
    seconds = sum(side.plan.work().get("timed", 0.0) for side in sides)
    duration = f", about {format_duration(seconds)} of turns" if seconds else ""
    observer.message(f"compare: writes up to {written}{duration}")


def _make_manifest(request: RunRequest, opened: OpenTarget, folder: Path, label: str) -> Manifest:
    folder.mkdir()
    manifest = manifest_of(request, opened, folder, label)
    return msgspec.structs.replace(manifest, run=f"{folder.parent.name}/{folder.name}")


def _measure(sides: Sequence[_RunningSide], listener: Listener) -> None:
    """Fill the region of each target, then take the turns, in random order within each round."""
    order = random.Random(sides[0].plan.seed)
    with ExitStack() as stack:
        for side in sides:
            stack.enter_context(side.session.plan_scope(side.plan))
            side.jobs = workload.prepare_jobs(side.session, side.plan.jobs)
        for side in _largest_regions(sides):
            workload.write_region(side.session, side.plan.jobs)
        for turn in range(-1, sides[0].plan.turns):
            for side in order.sample(sides, len(sides)):
                turns.take(side.session, side.plan, side.jobs, turn)
        for side in sides:
            workload.check_uncached(side.session, side.plan.jobs)
    listener(Report("done", 1.0, 1.0, 0.0))


def _largest_regions(sides: Sequence[_RunningSide]) -> Iterator[_RunningSide]:
    """For each open target, the side with the largest region."""
    for opened in {id(side.session.target): side.session.target for side in sides}.values():
        sharing = [side for side in sides if side.session.target is opened]
        yield max(sharing, key=lambda side: side.plan.size)


def _save(sides: Sequence[_RunningSide], outcome: str, seconds: float) -> None:
    for side in sides:
        manifest = msgspec.structs.replace(side.manifest, outcome=outcome)
        recording = side.session.recording
        result = result_of(
            EXPERIMENTS["turns"], recording, manifest, side.session.target, seconds, side.folder
        )
        write_run(side.folder, manifest, recording, result)

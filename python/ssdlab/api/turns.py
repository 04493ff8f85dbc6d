"""Several targets or settings measured in turns: each side leaves a run, as if it were alone."""

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
from ssdlab.api.comparison import Comparison, compared, unlike
from ssdlab.api.run import ended
from ssdlab.api.target import Target, open_target
from ssdlab.comparison.side import Side
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
class Given:
    """What a side is to be: a target, a setting's name where there are several, and its jobs."""

    target: Target
    setting: str
    jobs: workload.Plan


@dataclass(frozen=True)
class Asked:
    """One side: its name, its target, what may be destroyed, and its plan."""

    name: str
    target: targets.Target
    consent: targets.Consent
    plan: Plan


@dataclass
class _Side:
    """One side under way."""

    asked: Asked
    task: RunRequest
    session: RunSession
    manifest: Manifest
    folder: Path
    jobs: Sequence[PreparedJob] = ()


@dataclass
class _Together:
    """The progress of all sides as one."""

    listener: Listener
    label: str = ""
    _last: dict[int, Report] = field(default_factory=dict)

    def of(self, place: int, several: int) -> Listener:
        """What one of the sides tells."""

        def tell(report: Report) -> None:
            self._last[place] = report
            share = sum(each.run_share for each in self._last.values()) / several
            left = [each.left_s for each in self._last.values() if each.left_s is not None]
            words = self.label or report.label
            self.listener(Report(words, report.step_share, share, sum(left) if left else None))

        return tell


def compare_in_turns(
    sides: Sequence[tuple[Target | Path | str, Workload]],
    *,
    number: int = 20,
    seed: int = 0,
    out: Path | str = RESULTS,
    listener: Listener = silent,
) -> Comparison:
    """Measures sides now, in turns, and compares them: a target with a fio job file each.

    Whatever else goes on hits all alike. A turn is all jobs of the file, once; there are `number`
    of each side, which leaves a run of its own below `out`. A block device is given as
    `open_target` returned it, with its consent.

    Raises:
        UsageError: fewer than two sides, a job file that says what is not known, or a number of
            turns that may not be.
        TargetError, DeviceFailure: as `Target.run`.
        Interrupted: Ctrl-C; the turns that were measured are kept.
    """
    files = [Path(setting.fio) for _, setting in sides]
    several = len(set(files)) > 1
    given = [
        Given(
            target if isinstance(target, Target) else open_target(target),
            file.stem if several else "",
            workload.plan_of_file(file, seed=seed),
        )
        for (target, _), file in zip(sides, files, strict=True)
    ]
    asked = sides_of(given, number)
    runs = measure_in_turns(asked, SaveOptions(Path(out)), RunObserver(listener))
    for run in runs:
        ended(run)
    return compared_in_turns(asked, runs)


def sides_of(given: Sequence[Given], number: int) -> list[Asked]:
    """The sides, each with a name of its own, and `number` turns of each.

    Raises:
        UsageError: fewer than two, jobs that have no name in common, or a number of turns that may
            not be.
    """
    if len(given) < 2:
        raise UsageError(
            f"turns take two sides or more, and there is {len(given)}; give another target, or "
            "another job file"
        )
    first, *others = ({job.name for job in side.jobs.jobs} for side in given)
    if any(first.isdisjoint(each) for each in others):
        raise UsageError(
            "turns compare jobs of the same name, and two job files have none in common; name the "
            "jobs alike"
        )
    session, found = secrets.token_hex(4), list[Asked]()
    for place, side in enumerate(given):
        plan = turns.check(Plan(side.jobs, number, session, place, len(given)))
        words = ", ".join(word for word in (side.target.name, side.setting) if word)
        name = unlike(words, [each.name for each in found])
        found.append(Asked(name, side.target.parsed, side.target.consent, plan))
    return found


def compared_in_turns(asked: Sequence[Asked], runs: Sequence[Run]) -> Comparison:
    """The sides' runs, held against the first's.

    Raises:
        UsageError: nothing that all measured.
    """
    return compared([Side(each.name, (run,)) for each, run in zip(asked, runs, strict=True)])


def measure_in_turns(
    sides: Sequence[Asked], keeping: SaveOptions, audience: RunObserver
) -> list[Run]:
    """A run of each side, in order; fewer turns where Ctrl-C came.

    Raises:
        SsdlabError: what ends the work; what was measured until then is stored.
    """
    tasks = [RunRequest(EXPERIMENTS["turns"], each.plan, _options(each, sides)) for each in sides]
    for task in tasks:
        check(task.options)
    clock = time.monotonic()
    with ExitStack() as held:
        opened_targets = _sites(held, tasks)
        folder = make_folder(keeping.out, run_name("compare", sides[0].target.label, utc_now()))
        _tell_cost(sides, opened_targets, audience)
        listener = held.enter_context(audience.progress(f"compare {len(sides)} sides"))
        given = list(zip(sides, tasks, opened_targets, strict=True))
        found = _under_way(given, _Together(listener), folder, keeping.label)
        outcome = "interrupted"
        try:
            _measure(found, listener)
            outcome = "complete"
        except (Interrupted, KeyboardInterrupt):
            pass
        finally:
            _store(found, opened_targets, outcome, time.monotonic() - clock)
    return [read_run(side.folder) for side in found]


def _options(side: Asked, sides: Sequence[Asked]) -> TargetOptions:
    """Room for all sides of the same target: they share it."""
    alike = [each.plan for each in sides if _place(each.target) == _place(side.target)]
    return replace(
        options_of(side.target, side.plan, side.consent),
        size_bytes=max(plan.size for plan in alike),
        request_bytes_max=max(plan.request_bytes_max for plan in alike),
    )


def _place(target: targets.Target) -> targets.Twin | Path:
    return target if isinstance(target, targets.Twin) else target.path.resolve()


def _sites(held: ExitStack, tasks: Sequence[RunRequest]) -> list[OpenTarget]:
    """A site a side; on one directory or device one for all. Of twins each is another drive."""
    found: dict[Path, OpenTarget] = {}
    opened_targets = []
    for task in tasks:
        place = _place(task.options.target)
        if isinstance(place, targets.Twin):
            opened_targets.append(held.enter_context(open_for_run(task.options)))
            continue
        if place not in found:
            found[place] = held.enter_context(open_for_run(task.options))
        opened_targets.append(found[place])
    return opened_targets


def _tell_cost(
    sides: Sequence[Asked], opened_targets: Sequence[OpenTarget], audience: RunObserver
) -> None:
    if all(opened.is_virtual for opened in opened_targets):
        return
    written = format_size(sum(side.plan.write_bytes for side in sides))
    timed = sum(side.plan.work().get("timed", 0.0) for side in sides)
    lasts = f", about {format_duration(timed)} of turns" if timed else ""
    audience.message(f"compare: writes up to {written}{lasts}")


def _under_way(
    given: Sequence[tuple[Asked, RunRequest, OpenTarget]],
    together: _Together,
    folder: Path,
    label: str,
) -> list[_Side]:
    found: list[_Side] = []
    for at, (asked, task, opened) in enumerate(given):
        listener = together.of(at, len(given))
        resume = next((each.session for each in found if each.session.target is opened), None)
        session = (
            RunSession(opened, listener) if resume is None else resume.second_session(listener)
        )
        own = folder / f"{at + 1}"
        own.mkdir()
        manifest = manifest_of(task, opened, own, label)
        manifest = msgspec.structs.replace(manifest, run=f"{folder.name}/{own.name}")
        found.append(_Side(asked, task, session, manifest, own))
    return found


def _measure(sides: Sequence[_Side], listener: Listener) -> None:
    """The fill of each site, then the turns; in each of them chance says who is first."""
    order = random.Random(sides[0].asked.plan.seed)
    with ExitStack() as frames:
        for side in sides:
            frames.enter_context(side.session.plan_scope(side.asked.plan))
            side.jobs = workload.prepare_jobs(side.session, side.asked.plan.jobs)
        for side in _with_a_fill(sides):
            workload.write_region(side.session, side.asked.plan.jobs)
        for turn in range(-1, sides[0].asked.plan.turns):
            for side in order.sample(sides, len(sides)):
                turns.take(side.session, side.asked.plan, side.jobs, turn)
        for side in sides:
            workload.check_uncached(side.session, side.asked.plan.jobs)
    listener(Report("done", 1.0, 1.0, 0.0))


def _with_a_fill(sides: Sequence[_Side]) -> Iterator[_Side]:
    """The side with the largest region of each site."""
    for opened in {id(side.session.target): side.session.target for side in sides}.values():
        alike = [side for side in sides if side.session.target is opened]
        yield max(alike, key=lambda side: side.asked.plan.size)


def _store(
    sides: Sequence[_Side], opened_targets: Sequence[OpenTarget], outcome: str, seconds: float
) -> None:
    for side, opened in zip(sides, opened_targets, strict=True):
        manifest = msgspec.structs.replace(side.manifest, outcome=outcome)
        recording = side.session.recording
        result = result_of(EXPERIMENTS["turns"], recording, manifest, opened, seconds, side.folder)
        write_run(side.folder, manifest, recording, result)

"""Runs the experiment of a scene by the ordinary runner, and records what it did to its twins."""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from ssdlab.device import RecordedJob, RecordedRest, TwinRecord, record_twins
from ssdlab.errors import Interrupted
from ssdlab.experiments.registry import EXPERIMENTS, view_of
from ssdlab.records import Run
from ssdlab.runner.run import RunObserver, SaveOptions, make_request, perform
from ssdlab.studio.scenes import Chapter, Scene, SceneDrive
from ssdlab.target import NO_CONSENT, Target, parse_target
from ssdlab.units import parse_size
from ssdlab.view import repeat_command
from ssdlab.wording import finding_value, label, plain

ROWS: Final = 900
"""Rows of the series of a drive, approximately: the resolution of the page's curves."""


_Row: TypeAlias = tuple[dict[str, Any], TwinRecord, RecordedJob]


@dataclass(frozen=True)
class _Recording:
    """A run, its twins, and the run's steps, each with the twin and job that it is about."""

    run: Run
    twins: list[TwinRecord]
    rows: list[_Row]


def scene_data(name: str, scene: Scene, seed: int) -> dict[str, Any]:
    """The content of the page about a scene: texts, steps, and what the command line counted.

    Raises:
        Interrupted: Ctrl-C.
        SsdlabError: the experiment failed.
    """
    target = parse_target(f"twin:{scene.twin}", parse_size(scene.capacity))
    recording = _record(scene, target, seed)
    shown = [_find_drive(recording, drive) for drive in scene.drives]
    first = shown[0]
    view = view_of(recording.run)
    result = recording.run.result
    return {
        "name": name,
        "tab": scene.tab,
        "title": scene.title,
        "question": scene.question,
        "command": repeat_command(recording.run),
        "own": scene.own,
        "verdict": plain(result.verdict),
        "findings": [
            [label(key, view.finding_labels), finding_value(finding), plain(finding.why)]
            for key, finding in result.findings.items()
            if finding.value is not None
        ],
        "file_bytes": round(scene.file_mib * (1 << 20)),
        "drives": [
            _drive_data(drive.name or f"twin:{scene.twin}", twin)
            for drive, twin in zip(scene.drives, shown, strict=True)
        ],
        "chapters": [_chapter_data(recording, first, chapter) for chapter in scene.chapters],
        "extra": scene.extra,
    }


def _record(scene: Scene, target: Target, seed: int) -> _Recording:
    experiment = EXPERIMENTS[scene.experiment]
    assert experiment.parameters is not None, "a scene is about an experiment with a command"
    request = make_request(
        experiment, experiment.parameters(**scene.options), target, NO_CONSENT, seed
    )
    with tempfile.TemporaryDirectory() as folder, record_twins() as twins:
        run = perform(request, SaveOptions(Path(folder)), RunObserver())
    if run.manifest.outcome == "interrupted":
        raise Interrupted("stopped while recording a scene; no page was written")
    return _Recording(run, twins, _matched(run, twins))


def _matched(run: Run, twins: list[TwinRecord]) -> list[_Row]:
    """The run's steps with their twins. Equal jobs of equal twins are matched in their order."""
    jobs: defaultdict[tuple[str, int, int], deque[tuple[TwinRecord, RecordedJob]]]
    jobs = defaultdict(deque)
    for twin in twins:
        for step in twin.steps:
            if isinstance(step, RecordedJob):
                jobs[step.job, step.start_ns, step.end_ns].append((twin, step))
    return [
        (row, *jobs[row["job"], row["start_ns"], row["end_ns"]].popleft())
        for row in run.tables["steps"].to_pylist()
    ]


def _find_drive(recording: _Recording, drive: SceneDrive) -> TwinRecord:
    if not drive.step:
        return recording.twins[drive.number]
    return next(twin for row, twin, _ in recording.rows if _has(row, drive.step))


def _has(row: Mapping[str, Any], columns: Mapping[str, Any]) -> bool:
    return all(row[name] == value for name, value in columns.items())


def _drive_data(name: str, twin: TwinRecord) -> dict[str, Any]:
    jobs = [step for step in twin.steps if isinstance(step, RecordedJob)]
    total = sum(job.requests for job in jobs)
    return {
        "name": name,
        "spec": {
            "profile": twin.profile,
            "capacity_bytes": twin.capacity_bytes,
            "seed": twin.seed,
        },
        "steps": [_step_data(step, total) for step in twin.steps],
        "requests": total,
        "counters": twin.counters(),
        "ends": [[job.requests, job.start_ns, job.end_ns] for job in jobs],
    }


def _step_data(step: RecordedJob | RecordedRest, total: int) -> dict[str, Any]:
    """A step as the module takes it. The interval of its series changes no result."""
    if isinstance(step, RecordedRest):
        return {"rest": step.seconds}
    job = msgspec.json.decode(step.job, type=dict[str, Any])
    rows = max(1, round(ROWS * step.requests / max(1, total)))
    job["interval_us"] = max(1, (step.end_ns - step.start_ns) // 1000 // rows)
    return {"job": job, "zeros": True} if step.zeros else {"job": job}


def _chapter_data(recording: _Recording, twin: TwinRecord, chapter: Chapter) -> dict[str, Any]:
    return {
        "title": chapter.title,
        "text": chapter.text,
        "seconds": chapter.seconds,
        "colour": chapter.colour,
        "extra": chapter.extra,
        "step": _step_number(recording, twin, chapter),
    }


def _step_number(recording: _Recording, twin: TwinRecord, chapter: Chapter) -> int:
    """The number of the chapter's first step; that of the rest right before it, if there is one."""
    if chapter.extra is not None:
        return len(twin.steps) + chapter.extra
    jobs: Sequence[RecordedJob] = [step for step in twin.steps if isinstance(step, RecordedJob)]
    if chapter.job is not None:
        job = jobs[chapter.job]
    else:
        of_twin = ((row, job) for row, owner, job in recording.rows if owner is twin)
        job = next(job for row, job in of_twin if _has(row, chapter.at))
    number = next(n for n, step in enumerate(twin.steps) if step is job)
    return number - isinstance(twin.steps[number - 1], RecordedRest) if number else 0

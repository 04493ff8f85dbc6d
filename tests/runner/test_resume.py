"""Resuming a run: which steps are reused and which are repeated."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssdlab.device import Job
from ssdlab.errors import Interrupted
from ssdlab.experiments.aging.analysis import measures
from ssdlab.experiments.aging.measure import Plan, measure
from ssdlab.records import Recording
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.progress import Report
from ssdlab.runner.resume import ResumeState, _is_complete
from ssdlab.runner.session import RunSession, Step
from ssdlab.target import Twin, parse_target

MIB = 1 << 20
Listener = Callable[[Report], None]


@pytest.fixture
def first_part(
    drive_directory: Path, small_plan: Plan, ctrl_c_at: Callable[[str], Listener]
) -> Recording:
    """Records of a run in a real directory, interrupted while it read the last stage."""
    recordings: list[Recording] = []
    options = TargetOptions(parse_target(str(drive_directory)), 16 * MIB)
    with contextlib.suppress(KeyboardInterrupt, Interrupted), open_for_run(options) as target:
        session = RunSession(target, ctrl_c_at("stage 2"))
        recordings.append(session.recording)
        session.run_plan(measure, small_plan)
    return recordings[0]


def _steps(recording: Recording, phase: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = recording.tables()["steps"].to_pylist()
    return [row for row in rows if row["phase"] == phase]


def _resumed(
    directory: Path, plan: Plan, first_part: Recording, *, keeps_state: bool
) -> tuple[Recording, list[str]]:
    labels: list[str] = []
    with open_for_run(TargetOptions(parse_target(str(directory)), 16 * MIB)) as target:
        resume = ResumeState(first_part.tables(), keeps_state=keeps_state)
        session = RunSession(target, lambda report: labels.append(report.label), resume)
        session.run_plan(measure, plan)
    return session.recording, labels


def test_finished_reads_are_reused_and_writes_to_a_test_file_are_repeated(
    drive_directory: Path, small_plan: Plan, first_part: Recording
) -> None:
    whole, labels = _resumed(drive_directory, small_plan, first_part, keeps_state=False)
    before, after = _steps(first_part, "read"), _steps(whole, "read")
    assert len(before) == 4
    assert [row["end_ns"] for row in after[:4]] == [row["end_ns"] for row in before]
    assert len(after) == 6
    assert len(measures(whole.tables()["steps"], 2)) == 3
    assert {"reading the file, stage 2 of 2"} == {label for label in labels if "reading" in label}
    assert any("writing 16 MiB" in label for label in labels)


def test_a_drive_that_kept_its_state_is_not_written_again(
    drive_directory: Path, small_plan: Plan, first_part: Recording
) -> None:
    """Treats the directory as a block device; only the requested steps matter."""
    resume = ResumeState(first_part.tables(), keeps_state=True)
    with open_for_run(TargetOptions(parse_target(str(drive_directory)), 16 * MIB)) as target:
        labels: list[str] = []
        session = RunSession(target, lambda report: labels.append(report.label), resume)
        with contextlib.suppress(Exception):  # the file is not written, so reads of it are refused
            session.run_plan(measure, small_plan)
    assert not [label for label in labels if "writing" in label]


def test_a_reused_step_keeps_all_its_rows(
    drive_directory: Path, small_plan: Plan, first_part: Recording
) -> None:
    whole, _ = _resumed(drive_directory, small_plan, first_part, keeps_state=False)
    for name in ("intervals", "latency", "interval_latency"):
        before, after = (part.tables()[name].to_pylist() for part in (first_part, whole))
        for row, again in zip(_steps(first_part, "read"), _steps(whole, "read")[:4], strict=True):
            first, second = (
                [{**entry, "step": 0} for entry in rows if entry["step"] == step["step"]]
                for rows, step in ((before, row), (after, again))
            )
            assert first == second != []


def test_a_recorded_outcome_has_the_percentiles_of_the_measured_one(
    small_plan: Plan,
) -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 30), 16 * MIB)) as target:
        first = RunSession(target)
        first.run_plan(measure, small_plan)
    resume = ResumeState(first.recording.tables(), keeps_state=True)
    step = Step("fill", "", "fill")
    job = Job(
        op="write",
        length_bytes=small_plan.size,
        block_bytes=MIB,
        amount_bytes=small_plan.size,
        queue_depth=4,
    )
    recorded = resume.take(step, job)
    assert recorded is not None
    row = _steps(first.recording, "fill")[0]
    assert (recorded.outcome.bytes, recorded.outcome.requests) == (16 * MIB, row["requests"])
    assert int(np.sum(recorded.outcome.latency["count"])) == row["requests"]
    assert recorded.outcome.percentiles_ns()
    assert resume.take(step, job) is None


@pytest.mark.parametrize(("end_ns", "complete"), [(2_990_000_000, True), (1_500_000_000, False)])
def test_a_timed_step_is_complete_after_its_time(end_ns: int, *, complete: bool) -> None:
    job = Job(op="read", length_bytes=MIB, block_bytes=4096, seconds=2.0)
    row = {"errors": 0, "start_ns": 1_000_000_000, "end_ns": end_ns, "bytes": MIB}
    assert _is_complete(row, job) == complete

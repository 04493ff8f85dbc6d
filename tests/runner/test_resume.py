"""Going on with a run: what is taken from the earlier part, and what is done again."""

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
from ssdlab.runner.resume import ResumeState
from ssdlab.runner.session import RunSession, Step
from ssdlab.target import Twin, parse_target

MIB = 1 << 20
Listener = Callable[[Report], None]


@pytest.fixture
def first_part(
    drive_directory: Path, small_plan: Plan, ctrl_c_at: Callable[[str], Listener]
) -> Recording:
    """A run in a real directory that Ctrl-C ended while it read the last stage."""
    recordings: list[Recording] = []
    options = TargetOptions(parse_target(str(drive_directory)), 16 * MIB)
    with contextlib.suppress(KeyboardInterrupt, Interrupted), open_for_run(options) as opened:
        session = RunSession(opened, ctrl_c_at("stage 2"))
        recordings.append(session.recording)
        session.run_plan(measure, small_plan)
    return recordings[0]


def _steps(recording: Recording, phase: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = recording.tables()["steps"].to_pylist()
    return [row for row in rows if row["phase"] == phase]


def _gone_on(
    place: Path, plan: Plan, first_part: Recording, *, keeps_state: bool
) -> tuple[Recording, list[str]]:
    heard: list[str] = []
    with open_for_run(TargetOptions(parse_target(str(place)), 16 * MIB)) as opened:
        resume = ResumeState(first_part.tables(), keeps_state=keeps_state)
        session = RunSession(opened, lambda report: heard.append(report.label), resume)
        session.run_plan(measure, plan)
    return session.recording, heard


def test_finished_reads_are_taken_over_and_what_prepares_the_file_is_done_again(
    drive_directory: Path, small_plan: Plan, first_part: Recording
) -> None:
    whole, heard = _gone_on(drive_directory, small_plan, first_part, keeps_state=False)
    before, after = _steps(first_part, "read"), _steps(whole, "read")
    assert len(before) == 4
    assert [row["end_ns"] for row in after[:4]] == [row["end_ns"] for row in before]
    assert len(after) == 6
    assert len(measures(whole.tables()["steps"], 2)) == 3
    assert {"reading the file, stage 2 of 2"} == {label for label in heard if "reading" in label}
    assert any("writing 16 MiB" in label for label in heard)


def test_a_drive_that_kept_its_state_is_not_written_again(
    drive_directory: Path, small_plan: Plan, first_part: Recording
) -> None:
    """The directory stands for a block device here: what is asked of it counts."""
    resume = ResumeState(first_part.tables(), keeps_state=True)
    with open_for_run(TargetOptions(parse_target(str(drive_directory)), 16 * MIB)) as opened:
        heard: list[str] = []
        session = RunSession(opened, lambda report: heard.append(report.label), resume)
        with contextlib.suppress(Exception):  # this file is not written, and reads of it refused
            session.run_plan(measure, small_plan)
    assert not [label for label in heard if "writing" in label]


def test_the_columns_of_a_step_that_is_taken_over_stay_whole(
    drive_directory: Path, small_plan: Plan, first_part: Recording
) -> None:
    whole, _ = _gone_on(drive_directory, small_plan, first_part, keeps_state=False)
    for name in ("intervals", "latency", "interval_latency"):
        before, after = (part.tables()[name].to_pylist() for part in (first_part, whole))
        for row, again in zip(_steps(first_part, "read"), _steps(whole, "read")[:4], strict=True):
            told = [
                [{**each, "step": 0} for each in rows if each["step"] == at["step"]]
                for rows, at in ((before, row), (after, again))
            ]
            assert told[0] == told[1] != []


def test_a_recorded_outcome_has_the_percentiles_of_the_measured_one(
    small_plan: Plan,
) -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 30), 16 * MIB)) as opened:
        first = RunSession(opened)
        first.run_plan(measure, small_plan)
    resume = ResumeState(first.recording.tables(), keeps_state=True)
    step = Step("fill", "", "fill")
    size = small_plan.size
    job = Job(op="write", length_bytes=size, block_bytes=MIB, amount_bytes=size, queue_depth=4)
    known = resume.take(step, job)
    assert known is not None
    row = _steps(first.recording, "fill")[0]
    assert (known.outcome.bytes, known.outcome.requests) == (16 * MIB, row["requests"])
    assert int(np.sum(known.outcome.latency["count"])) == row["requests"]
    assert known.outcome.percentiles_ns()
    assert resume.take(step, job) is None

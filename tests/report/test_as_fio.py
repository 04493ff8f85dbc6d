"""A run's steps as a fio job file: fio accepts it and does as many requests as the run did."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ssdlab.device import Job, decode, parse_fio
from ssdlab.experiments.workload import measure as workload
from ssdlab.records import Manifest, Result, Run, StepRow, read_run, run_name, write_run
from ssdlab.report import as_fio
from ssdlab.runner.open_target import TargetOptions, open_for_run
from ssdlab.runner.session import RunSession, Step
from ssdlab.target import Twin, parse_target

MIB = 1 << 20
JOBS = """
[global]
ioengine=io_uring
direct=1
size=4m
[mixed]
rw=randrw
rwmixread=50
norandommap
iodepth=8
io_size=8m
[paced]
stonewall
ioengine=psync
rw=randread
rate_iops=10000
[strided]
stonewall
zonemode=strided
zonesize=4k
zonerange=4k
zoneskip=60k
io_size=256k
"""


def _run(folder: Path, session: RunSession, experiment: str, target: str) -> Run:
    name = run_name(experiment, target, datetime(2026, 1, 1, tzinfo=UTC))
    manifest = Manifest(
        name, "0", experiment, target, False, 0, "", {}, {}, {}, {}, None, "complete"
    )
    result = Result("0", experiment, target, False, 0, 0.0, {}, [], {}, "", [], "")
    write_run(folder, manifest, session.recording, result)
    return read_run(folder)


@pytest.fixture
def jobs_run(tmp_path: Path, drive_directory: Path) -> Run:
    """A run of three jobs in a directory."""
    plan = workload.Plan(tuple(parse_fio(JOBS)), "job.fio")
    with open_for_run(TargetOptions(parse_target(str(drive_directory)), plan.size)) as opened:
        session = RunSession(opened)
        session.run_plan(workload.measure, plan)
    return _run(tmp_path, session, "workload", str(drive_directory))


def test_the_job_file_parses_to_the_jobs_of_the_run(jobs_run: Run) -> None:
    recorded = [row for row in jobs_run.tables["steps"].to_pylist() if row["phase"] == "job"]
    printed = [job for job in parse_fio(as_fio(jobs_run)) if "job" in job.name]
    assert [job.name for job in printed] == ["2-job mixed", "3-job paced", "4-job strided"]
    assert [job.job for job in printed] == [decode(row["job"], Job) for row in recorded]
    assert [job.engine for job in printed] == ["io_uring", "sync", "io_uring"]
    assert all(job.stonewall for job in printed)
    fills = [job for job in parse_fio(as_fio(jobs_run)) if "fill" in job.name]
    rows = [row for row in jobs_run.tables["steps"].to_pylist() if row["phase"] == "fill"]
    registered = ["registered_buffers" in row["engine"] for row in rows]
    assert rows
    assert [job.options.registered_buffers for job in fills] == registered


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_does_as_many_requests_per_job_as_the_run(jobs_run: Run, drive_directory: Path) -> None:
    path = drive_directory / "job.fio"
    path.write_text(as_fio(jobs_run))
    done = subprocess.run(
        ["fio", "--output-format=json", path],
        check=True,
        capture_output=True,
        text=True,
        cwd=drive_directory,
    )
    counts = {
        job["jobname"]: job["read"]["total_ios"] + job["write"]["total_ios"]
        for job in json.loads(done.stdout)["jobs"]
    }
    steps = jobs_run.tables["steps"].to_pylist()
    expected = {row["phase"] + row["case"]: row["requests"] for row in steps if row["bytes"]}
    assert list(counts.values()) == list(expected.values())


def test_a_step_that_fio_cannot_express_is_a_comment_with_the_reason(tmp_path: Path) -> None:
    with open_for_run(TargetOptions(Twin("toshiba-xg5", 1 << 28), 16 * MIB)) as opened:
        session = RunSession(opened)
        session.run(
            Step("read", "reading", "read", rest_s=1.0),
            Job(
                op="read",
                length_bytes=MIB,
                block_bytes=4096,
                amount_bytes=MIB,
                trim_share=0.5,
                pattern="random",
            ),
        )
        session.flush()
        session.recording.add(StepRow({"phase": "old", "rest_s": 0.0, "case": ""}))
    text = as_fio(_run(tmp_path, session, "aging", "twin:toshiba-xg5"))
    assert "; the run paused for 1 s here\n" in text
    assert "; 0-read: fio cannot express this: fio job '0-read': op is read" in text
    assert "; 1-flush: fio has no job for one flush; use end_fsync=1" in text
    assert "; 2-old: its job was not recorded" in text
    assert all(line.startswith(";") for line in text.splitlines() if line)

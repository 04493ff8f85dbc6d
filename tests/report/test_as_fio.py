"""A run's steps as a fio job file: fio takes it, and does as many requests as the run did."""

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
    chosen = workload.Plan(tuple(parse_fio(JOBS)), "job.fio")
    with open_for_run(TargetOptions(parse_target(str(drive_directory)), chosen.size)) as opened:
        session = RunSession(opened)
        session.run_plan(workload.measure, chosen)
    return _run(tmp_path, session, "workload", str(drive_directory))


def test_the_printed_file_reads_as_the_jobs_that_were_run(jobs_run: Run) -> None:
    asked = [row for row in jobs_run.tables["steps"].to_pylist() if row["phase"] == "job"]
    printed = [each for each in parse_fio(as_fio(jobs_run)) if "job" in each.name]
    assert [each.name for each in printed] == ["2-job mixed", "3-job paced", "4-job strided"]
    assert [each.job for each in printed] == [decode(row["job"], Job) for row in asked]
    assert [each.engine for each in printed] == ["io_uring", "sync", "io_uring"]
    assert all(each.stonewall for each in printed)
    fills = [each for each in parse_fio(as_fio(jobs_run)) if "fill" in each.name]
    rows = [row for row in jobs_run.tables["steps"].to_pylist() if row["phase"] == "fill"]
    registered = ["registered_buffers" in row["engine"] for row in rows]
    assert rows
    assert [each.options.registered_buffers for each in fills] == registered


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_does_as_many_requests_of_each_kind_from_what_is_printed(
    jobs_run: Run, drive_directory: Path
) -> None:
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
    ours = {row["phase"] + row["case"]: row["requests"] for row in steps if row["bytes"]}
    assert list(counts.values()) == list(ours.values())


def test_a_step_that_fio_cannot_say_is_a_comment_with_its_reason(tmp_path: Path) -> None:
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
    assert "; here it rested for 1 s\n" in text
    assert "; 0-read: fio cannot say this: fio job '0-read': op is read" in text
    assert "; 1-flush: fio has no job of one flush; end_fsync=1" in text
    assert "; 2-old: what was asked of the drive was not recorded" in text
    assert all(line.startswith(";") for line in text.splitlines() if line)

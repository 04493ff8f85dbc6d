"""`ssdlab run --fio` and `ssdlab report --fio`: job files in and out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program

from ssdlab.device import parse_fio

JOB = "[a]\nioengine=io_uring\ndirect=1\nrw=randread\nnorandommap\niodepth=4\nsize=4m\n"
TWIN = ("twin:toshiba-xg5", "--capacity", "1GiB")


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    """A job file with one job."""
    path = tmp_path / "job.fio"
    path.write_text(JOB)
    return path


@pytest.mark.parametrize("verb", [(), ("workload",)])
def test_a_job_file_is_run_with_or_without_the_experiments_name(
    ssdlab: Program, job_file: Path, verb: tuple[str, ...]
) -> None:
    done = ssdlab("run", *verb, "--fio", job_file, *TWIN, "--json", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["experiment"] == "workload"
    [row] = result["measures"]
    assert (row["job"], row["op"], row["requests"]) == ("a", "read", 1024)


def test_a_run_is_printed_as_a_job_file(ssdlab: Program, job_file: Path, tmp_path: Path) -> None:
    ssdlab("run", "--fio", job_file, *TWIN, "--out", tmp_path / "runs")
    done = ssdlab("report", tmp_path / "runs", "--fio")
    assert [job.name for job in parse_fio(done.stdout)] == ["0-fill", "2-job a"]


def test_bad_input_is_a_one_line_error(
    refused: Callable[..., str], job_file: Path, tmp_path: Path, drive_directory: Path
) -> None:
    assert "job.fio.none cannot be read" in refused("run", "--fio", f"{job_file}.none", *TWIN)
    for line, message in (
        ("iodepth=0", "iodepth is 0; it must be a whole number"),
        ("verify=crc32c", "verify is crc32c; it must be left out"),
        ("rw=rw\nruntime=5x", "2 problems: (1) fio job 'a': rw is rw"),
        ("offset=2g", "less than the 2.004 GiB that this needs"),
    ):
        job_file.write_text(f"{JOB}{line}\n")
        assert message in refused("run", "--fio", job_file, *TWIN)
    job_file.write_text(f"{JOB}bs=1000\nsize=4000000\n")
    assert "bs is 1000; it must be a multiple of the sector" in refused(
        *("run", "--fio", job_file, drive_directory, "--quiet", "--out", tmp_path / "runs")
    )
    assert list(drive_directory.iterdir()) == []
    assert "--fio prints one run" in refused("report", tmp_path / "runs", "--fio", "--json")

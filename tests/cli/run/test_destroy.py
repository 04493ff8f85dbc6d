"""`--destroy-data`: without a value for empty devices, with the device's name for any."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import loop_devices
import pytest
from forked import Program

JOB = "[a]\ndirect=1\nrw=write\nbs=64k\nsize=4m\n"


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    """A job file with one job that writes."""
    path = tmp_path / "job.fio"
    path.write_text(JOB)
    return path


def test_a_bare_option_takes_no_value_and_the_device_is_named_on_stderr(
    ssdlab: Program, loop_device: Callable[..., Path], job_file: Path
) -> None:
    device = loop_device(16)
    done = ssdlab("run", "--fio", job_file, "--destroy-data", device, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["target"] == str(device)
    assert f"destroys what is on {device} (16 MiB), on which no file system" in done.stderr


def test_a_device_with_a_file_system_must_be_named(
    ssdlab: Program, refused: Callable[..., str], loop_device: Callable[..., Path], job_file: Path
) -> None:
    device = loop_device(64)
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    words = ("run", "--fio", job_file, device)
    assert "add --destroy-data" in refused(*words)
    assert f"holds ext4 on {device}" in refused(*words, "--destroy-data")
    assert "names /dev/null, but" in refused(*words, "--destroy-data=/dev/null")
    assert "add --destroy-data" in refused(*words, "--destroy-data=")
    done = ssdlab(*words, f"--destroy-data={device}", "--json")
    assert done.returncode == 0, done.stderr


def test_an_io_error_is_one_line_and_the_measured_steps_are_stored(
    ssdlab: Program, make_filesystem: Callable[..., Path], tmp_path: Path, job_file: Path
) -> None:
    """The loop device's file has no room for the second job's writes, which fail with EIO."""
    image = make_filesystem("tmpfs", 8) / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    device, why = loop_devices.attach(image)
    assert device is not None, why
    job_file.write_text(f"{JOB}{JOB.replace('a', 'b', 1)}stonewall\noffset=4m\nsize=12m\n")
    runs = tmp_path / "runs"
    try:
        done = ssdlab("run", "--fio", job_file, device, "--destroy-data", "--quiet", "--out", runs)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert "running b: a request failed" in done.stderr
    [folder] = runs.iterdir()
    assert json.loads((folder / "manifest.json").read_text())["outcome"] == "failed"
    measures = json.loads((folder / "result.json").read_text())["measures"]
    assert [(row["job"], row["errors"] > 0) for row in measures] == [("a", False), ("b", True)]

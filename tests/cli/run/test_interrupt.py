"""Signals to the real program: it keeps the records, exits with 3, and removes the test file."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Program

from ssdlab import profiles
from ssdlab.records import read_run

Started = Callable[..., subprocess.Popen[str]]
# The last rest is so long that no run ends before its signal arrives.
OPTIONS = ("--size", "16MiB", "--json", "--rest", "30d")
# Rests of 1 to 3 s instead of 10 to 30, for tests that wait for more than one.
SHORT_RESTS = "--quick"
TIMEOUT_S = 60


def _default_signals() -> None:
    """Resets signals that the tests' parent may ignore, which children inherit."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def started(executable: str, tmp_path: Path) -> Iterator[Started]:
    """`started(target...)` -> a run that would last for days; killed at the end of the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*targets: object, **more: Any) -> subprocess.Popen[str]:
        command = [executable, "run", "aging", *map(str, targets), *OPTIONS]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        pipes |= {"preexec_fn": _default_signals, **more}
        folder = tmp_path / "working-directory"
        folder.mkdir(exist_ok=True)
        processes.append(subprocess.Popen(command, text=True, cwd=folder, **pipes))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def _wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return
    pytest.fail(f"{text!r} was not printed: {''.join(lines)}")


def _stop(process: subprocess.Popen[str], number: int) -> dict[str, Any]:
    """Sends a signal; returns the JSON that the program prints before it exits."""
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 3, stderr
    assert "Traceback" not in stderr
    result: dict[str, Any] = json.loads(stdout)
    return result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_the_records_are_kept_and_the_file_is_removed(
    started: Started, drive_directory: Path, tmp_path: Path, number: signal.Signals
) -> None:
    process = started(drive_directory, SHORT_RESTS)
    _wait_for(process, "reading the file, stage 0")
    assert len(list(drive_directory.iterdir())) == 1
    result = _stop(process, number)
    assert list(drive_directory.iterdir()) == []
    assert "nterrupted" in result["verdict"]
    run = read_run(tmp_path / "working-directory" / result["folder"])
    assert run.manifest.outcome == "interrupted"
    assert {"fill", "flush"} <= set(run.tables["steps"]["phase"].to_pylist())


def test_after_a_kill_the_run_is_listed_and_the_next_run_removes_the_file_and_warns(
    started: Started, ssdlab: Program, drive_directory: Path, tmp_path: Path
) -> None:
    killed = started(drive_directory)
    _wait_for(killed, "resting")
    killed.kill()
    killed.communicate()
    (leftover,) = drive_directory.iterdir()
    listed = ssdlab("runs", tmp_path / "working-directory" / "ssdlab-runs")
    assert listed.returncode == 0
    assert f"aging  {drive_directory}  killed, or still running" in listed.stdout
    assert "to resume: ssdlab run resume " in listed.stdout
    following = started(drive_directory)
    _wait_for(following, "resting")
    assert not leftover.exists()
    assert len(list(drive_directory.iterdir())) == 1
    result = _stop(following, signal.SIGINT)
    warnings = [each for each in result["warnings"] if each["code"] == "leftover"]
    assert leftover.name in warnings[0]["sentence"]
    assert list(drive_directory.iterdir()) == []
    reported = ssdlab("report", tmp_path / "working-directory" / "ssdlab-runs")
    assert reported.returncode == 0
    assert "was killed, or is still running; to resume it, ssdlab run resume" in reported.stderr


def test_a_second_run_leaves_the_file_of_the_first_alone(
    started: Started, drive_directory: Path
) -> None:
    first = started(drive_directory)
    _wait_for(first, "resting")
    second = started(drive_directory)
    _wait_for(second, "resting")
    assert len(list(drive_directory.iterdir())) == 2
    result = _stop(second, signal.SIGINT)
    assert "leftover" not in [warning["code"] for warning in result["warnings"]]
    assert len(list(drive_directory.iterdir())) == 1
    _stop(first, signal.SIGINT)
    assert list(drive_directory.iterdir()) == []


def test_targets_after_the_interrupted_one_are_not_started(
    started: Started, drive_directory: Path, tmp_path: Path
) -> None:
    process = started(drive_directory, "twin:toshiba-xg5")
    _wait_for(process, "resting")
    result = _stop(process, signal.SIGINT)
    assert [run["target"] for run in result["runs"]] == [str(drive_directory)]
    assert len(list((tmp_path / "working-directory" / "ssdlab-runs").iterdir())) == 1


def test_a_signal_during_start_up_prints_one_line(started: Started) -> None:
    process = started("twin:toshiba-xg5")
    maps, until = Path(f"/proc/{process.pid}/maps"), time.monotonic() + TIMEOUT_S
    while "numpy" not in maps.read_text():  # the experiment's module is being imported
        assert time.monotonic() < until
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, stdout, stderr) == (3, "", "ssdlab: interrupted\n")


def test_a_background_job_of_a_script_can_be_interrupted(
    started: Started, drive_directory: Path
) -> None:
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    process = started(drive_directory, **ignored)
    _wait_for(process, "resting")
    assert "nterrupted" in _stop(process, signal.SIGINT)["verdict"]
    assert list(drive_directory.iterdir()) == []


def test_under_nohup_a_hangup_does_not_end_a_run(started: Started, drive_directory: Path) -> None:
    nohup = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = started(drive_directory, SHORT_RESTS, **nohup)
    _wait_for(process, "resting")
    process.send_signal(signal.SIGHUP)
    _wait_for(process, "reading")
    _stop(process, signal.SIGINT)


def test_on_a_terminal_there_is_a_progress_bar_whatever_the_target_is_called(
    executable: str, tmp_path: Path
) -> None:
    odd = tmp_path / "[" / "red].toml"
    odd.parent.mkdir()
    odd.write_text(profiles.load("toshiba-xg5"))
    command = [executable, "run", "aging", f"twin:{odd}", "--size", "256MiB", "--json"]
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"cannot open a pseudo-terminal: {error.strerror}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path) as process:
        os.close(theirs)
        output = b""
        try:
            while block := os.read(ours, 65536):
                output += block
        except OSError:  # the other end is closed
            pass
        stdout, _ = process.communicate()
    os.close(ours)
    assert process.returncode == 0, output
    assert json.loads(stdout)["target"] == f"twin:{odd}"
    assert re.search(rb"\d+ % .*left", output)
    assert b"Traceback" not in output

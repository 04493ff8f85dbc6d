"""Unwritable standard output and endless input files: one line, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program

Refused = Callable[..., str]
TWIN = "twin:toshiba-xg5"
VERBS = (
    ("--help",),
    ("run", "aging", TWIN, "--size", "16MiB", "--quiet"),
    ("run", "aging", TWIN, "--size", "16MiB", "--quiet", "--json"),
    ("twin", "list"),
    ("doctor", "/", "--quiet", "--read", "0", "--json"),
)
READS = (
    ("twin", "check", "{}"),
    ("twin", "show", "{}"),
    ("run", "aging", "twin:{}", "--size", "16MiB"),
    ("run", "workload", TWIN, "--fio", "{}"),
    ("replay", "{}", TWIN),
    ("sweep", "{}"),
    ("twin", "fit", "{}", "--start", "toshiba-xg5", "--out", "fitted.toml"),
    ("doctor", "--recorded", "{}"),
)


@pytest.fixture
def in_shell(executable: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`in_shell(line, *words)`: a line of bash in which "$@" is ssdlab with these words."""

    def run(line: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-c", line, "bash", executable, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return run


@pytest.mark.parametrize("words", VERBS)
@pytest.mark.parametrize(
    ("redirection", "message"),
    [(">/dev/full", "cannot be written (No space left on device)"), (">&-", "is closed")],
)
def test_an_unwritable_standard_output_is_one_line_and_status_2(
    words: tuple[str, ...],
    redirection: str,
    message: str,
    in_shell: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = in_shell(f'"$@" {redirection}', *words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"standard output {message}" in done.stderr


@pytest.mark.parametrize("words", VERBS)
def test_a_closed_pipe_on_standard_output_ends_the_program_silently_by_sigpipe(
    words: tuple[str, ...], executable: str, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [executable, *words]
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "<&- 2>&-"])
def test_an_unwritable_standard_error_does_not_stop_the_work(
    redirection: str, in_shell: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = in_shell(f'"$@" {redirection}', "run", "aging", TWIN, "--size", "16MiB", "--json")
    assert done.returncode == 0
    assert done.stdout.startswith("{")


@pytest.fixture
def endless(tmp_path: Path) -> dict[str, Path]:
    """Paths that are not regular files of bounded size, by the reason in the error."""
    paths = {reason: tmp_path / f"{number}.toml" for number, reason in enumerate(REASONS)}
    paths["is a character device"].symlink_to("/dev/zero")
    os.mkfifo(paths["is a FIFO"])
    paths["is a directory"].mkdir()
    with paths["more than the limit"].open("wb") as file:
        file.truncate(1 << 40)
    return paths


REASONS = ("is a character device", "is a FIFO", "is a directory", "more than the limit")
CASES = [(words, "is a FIFO") for words in READS] + [(READS[0], reason) for reason in REASONS]


@pytest.mark.parametrize(("words", "reason"), CASES)
def test_a_path_that_is_not_a_file_of_bounded_size_is_refused(
    words: tuple[str, ...], reason: str, endless: dict[str, Path], refused: Refused
) -> None:
    path = endless[reason]
    message = refused(*(word.format(path) for word in words))
    assert reason in message
    assert str(path) in message


@pytest.mark.parametrize("name", ["result.json", "steps.parquet"])
def test_a_run_folder_with_a_fifo_is_refused(
    name: str, ssdlab: Program, refused: Refused, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    done = ssdlab("run", "aging", TWIN, "--size", "16MiB", "--json", "--out", out)
    folder = Path(json.loads(done.stdout)["folder"])
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert f"{name} is a FIFO" in refused("report", folder)

"""Standard output that takes nothing, and files that never end: one line, never a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]
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
    ("redirection", "told"),
    [(">/dev/full", "cannot be written (No space left on device)"), (">&-", "is closed")],
)
def test_no_room_on_standard_output_is_one_line_and_status_2(
    words: tuple[str, ...],
    redirection: str,
    told: str,
    in_shell: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = in_shell(f'"$@" {redirection}', *words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"standard output {told}" in done.stderr


@pytest.mark.parametrize("words", VERBS)
def test_a_reader_that_goes_away_ends_it_by_sigpipe_and_silently(
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
def test_messages_that_nobody_takes_do_not_stop_the_work(
    redirection: str, in_shell: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = in_shell(f'"$@" {redirection}', "run", "aging", TWIN, "--size", "16MiB", "--json")
    assert done.returncode == 0
    assert done.stdout.startswith("{")


@pytest.fixture
def endless(tmp_path: Path) -> dict[str, Path]:
    """Files that are no text of bounded size, by what the refusal says of them."""
    found = {what: tmp_path / f"{number}.toml" for number, what in enumerate(ODD)}
    found["is a character device"].symlink_to("/dev/zero")
    os.mkfifo(found["is a FIFO"])
    found["is a directory"].mkdir()
    with found["at most"].open("wb") as file:
        file.truncate(1 << 40)
    return found


ODD = ("is a character device", "is a FIFO", "is a directory", "at most")
CASES = [(words, "is a FIFO") for words in READS] + [(READS[0], what) for what in ODD]


@pytest.mark.parametrize(("words", "what"), CASES)
def test_what_is_no_file_of_bounded_size_is_refused_and_not_read(
    words: tuple[str, ...], what: str, endless: dict[str, Path], refused: Refused
) -> None:
    path = endless[what]
    told = refused(*(word.format(path) for word in words))
    assert what in told
    assert str(path) in told


@pytest.mark.parametrize("name", ["result.json", "steps.parquet"])
def test_a_run_with_a_file_that_never_ends_is_refused(
    name: str, ssdlab: Program, refused: Refused, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    done = ssdlab("run", "aging", TWIN, "--size", "16MiB", "--json", "--out", out)
    folder = Path(json.loads(done.stdout)["folder"])
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert f"{name} is a FIFO" in refused("report", folder)

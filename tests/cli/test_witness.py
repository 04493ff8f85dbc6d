"""`ssdlab witness` in processes: serve, write, kill, verify, report, and their exit statuses."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Program


@pytest.fixture
def witness(executable: str, tmp_path: Path) -> Iterator[list[str]]:
    """Options that name a running witness; its journals are in tmp_path/journals."""
    journals = tmp_path / "journals"
    process = subprocess.Popen(
        [executable, "witness", "serve", "--listen", "127.0.0.1:0", "--out", str(journals)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    address = process.stderr.readline().partition(",")[0].removeprefix("witness on ")
    yield ["--server", address, "--secret", str(journals / "secret")]
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0


def as_json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_killed_writer_loses_nothing_in_the_negative_control(
    ssdlab: Program, executable: str, witness: list[str], drive_directory: Path, tmp_path: Path
) -> None:
    file = drive_directory / "witness.bin"
    words = ["witness", "write", str(file), *witness, "--size", "8MiB", "--threads", "2"]
    process = subprocess.Popen([executable, *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "CUT THE POWER NOW" not in (line := process.stderr.readline()):
        assert line, "the writer has ended"
    journals = tmp_path / "journals"
    (journal,) = journals.glob("*.witness")
    size = journal.stat().st_size
    while journal.stat().st_size < size + 4000:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    done = ssdlab("witness", "verify", file, *witness, "--control", "negative", "--json")
    assert done.returncode == 0, done.stderr
    result = as_json(done)
    assert result["judgement"]["kinds"] == {}
    assert result["judgement"]["durable"] > 8
    assert result["proof"]["level"] == "none"
    report = ssdlab("witness", "report", journals, "--json")
    assert report.returncode == 0
    assert as_json(report)["verdict"].startswith("No verdict")


@pytest.mark.parametrize("sync", ["fsync", "dsync", "fua"])
def test_a_file_changed_after_the_cut_is_a_bad_finding(
    ssdlab: Program, witness: list[str], drive_directory: Path, tmp_path: Path, sync: str
) -> None:
    file = drive_directory / "witness.bin"
    words = ("--size", "4MiB", "--requests", "40", "--sync", sync, "--json")
    written = ssdlab("witness", "write", file, *witness, *words)
    assert written.returncode == 0, written.stderr
    assert as_json(written)["told"]
    with file.open("r+b") as content:
        content.seek(100)
        content.write(b"?")
    done = ssdlab("witness", "verify", file, *witness, "--power-was-cut", "--json")
    assert done.returncode == 1
    assert as_json(done)["judgement"]["kinds"] == {"corrupt": 1}
    report = ssdlab("witness", "report", tmp_path / "journals")
    assert report.returncode == 1
    assert "does not keep" in report.stdout
    again = ssdlab("witness", "write", file, *witness, "--run", as_json(written)["run"])
    assert again.returncode == 2
    assert "begin a new run" in again.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("write", "f", "--server", "x:y"), "is not an address"),
        (("write", "f", "--server", "127.0.0.1:1", "--secret", "none"), "cannot be read"),
        (("serve", "--cut-after", "5"), "together"),
        (("verify", "f", "--server", "127.0.0.1", "--control", "x"), "must be one of"),
        (("report", "nowhere"), "cannot be read"),
        (("write", "f", "--server", "h", "--sync", "maybe"), "--sync is 'maybe'"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    refused: Callable[..., str], words: tuple[str, ...], message: str
) -> None:
    assert message in refused("witness", *words)


def test_a_block_device_is_written_only_with_destroy_data(
    ssdlab: Program, witness: list[str], loop_device: Callable[..., Path]
) -> None:
    device = loop_device(8)
    refused = ssdlab("witness", "write", device, *witness)
    assert refused.returncode == 2
    assert "--destroy-data" in refused.stderr
    words = ("--destroy-data", "--requests", "20", "--json")
    written = ssdlab("witness", "write", device, *witness, *words)
    assert written.returncode == 0, written.stderr
    done = ssdlab("witness", "verify", device, *witness, "--power-was-cut", "--json")
    assert done.returncode == 0, done.stderr
    assert as_json(done)["findings"]["cuts"]["value"] == 1

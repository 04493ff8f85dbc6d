"""`ssdlab heal`: output, JSON, exit status and errors."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program

M = 1 << 20
CONTENT = random.Random(7).randbytes(6 * M + 100)
WAITING_PROGRAM = """
import sys, time
from ssdlab.cli import main
from ssdlab.heal.methods.move_extents import MoveExtents

rewrite, parts = MoveExtents.rewrite, []

def wait_in_the_second(self, part):
    parts.append(part)
    if len(parts) == 2:
        sys.stderr.write("now\\n")
        sys.stderr.flush()
        while True:
            time.sleep(0.01)  # A signal just before signal.pause() would not end it.
    return rewrite(self, part)

MoveExtents.rewrite = wait_in_the_second
main()
"""
"""The program; it waits for a signal in the second part that it rewrites."""


@pytest.fixture
def file(make_filesystem: Callable[..., Path]) -> Path:
    path = make_filesystem("ext4", 700, direct_io=True) / "file"
    path.write_bytes(CONTENT)
    os.sync()
    return path


def test_a_dry_run_prints_plan_map_and_wear_and_writes_nothing(ssdlab: Program, file: Path) -> None:
    done = ssdlab("heal", file, "--all", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["dry_run"] is True
    [one] = report["files"]
    assert one["planned_bytes"] == sum(length for _, length in one["plan"]) >= len(CONTENT)
    assert (one["moved_bytes"], one["written_bytes"], one["refused"]) == (0, 0, None)
    assert {"days_of_endurance", "fresh_from", "way", "left", "why"} <= set(one)
    assert [row["offset_bytes"] for row in one["map"]] == [at * M for at in range(6)]
    assert report["verdict"] == "Dry run of 1 file: 6.0 MiB would be rewritten."


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_empty_directory_has_no_files_to_heal(
    ssdlab: Program, tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = ssdlab("heal", tmp_path, *options, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "No files to heal: nothing was read or written."


def test_the_text_output_has_both_maps_the_plan_and_the_gain(ssdlab: Program, file: Path) -> None:
    done = ssdlab("heal", file, "--all")
    assert done.returncode == 0, done.stderr
    assert "reading" in done.stderr
    for text in (
        "before",
        "after",
        "to be rewritten",
        "method: move extents",
        "MiB were rewritten",
    ):
        assert text in done.stdout
    assert file.read_bytes() == CONTENT


def test_quiet_prints_no_progress_and_a_directory_selects_its_files(
    ssdlab: Program, file: Path
) -> None:
    (file.parent / "small").write_bytes(b"x")
    done = ssdlab("heal", file.parent, "--ranges", "1MiB-2MiB", "--json", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["small_files"] == 1
    [one] = report["files"]
    assert one["written_bytes"] == M
    assert file.read_bytes() == CONTENT


def test_each_refused_file_of_several_has_its_reason(ssdlab: Program, file: Path) -> None:
    hole = file.parent / "hole"
    with hole.open("wb") as empty:
        empty.truncate(4 * M)
    done = ssdlab("heal", file, hole, "--all", "--json")
    assert done.returncode == 0, done.stderr
    one, other = json.loads(done.stdout)["files"]
    assert one["refused"] is None
    assert other["refused"]["code"] == "nothing-there"


def test_ctrl_c_stops_cleanly_and_the_same_command_continues(
    ssdlab: Program, file: Path, tmp_path: Path
) -> None:
    big = file.parent / "big"
    content = random.Random(8).randbytes(100 * M)
    big.write_bytes(content)
    os.sync()
    state = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-c", WAITING_PROGRAM, "heal", str(big), "--all", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=state
    ) as process:
        assert process.stderr is not None
        assert "now\n" in process.stderr, "it ended before the second part"
        process.send_signal(signal.SIGINT)
        try:
            out, error = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 3, error
    first = json.loads(out)["files"][0]
    assert first["interrupted"] is True
    assert 0 < first["moved_bytes"] < len(content)
    assert "run the same command again" in error
    again = ssdlab("heal", big, "--all", "--json", env=state)
    assert again.returncode == 0, again.stderr
    second = json.loads(again.stdout)["files"][0]
    assert second["planned_bytes"] == len(content) - first["moved_bytes"]
    assert big.read_bytes() == content


def test_a_usage_error_is_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * M)
    assert "give files, or directories" in refused("heal", tmp_path / "absent")
    assert "give one of them" in refused("heal", file, "--all", "--ranges", "0-1MiB")
    assert "FROM below TO" in refused("heal", file, "--ranges", "2MiB-1MiB")
    assert "a power of two" in refused("heal", file, "--piece", "3MiB")
    assert "above 0 and at most 1" in refused("heal", file, "--slower-than", "1.5")
    assert "such as 500MiB" in refused("heal", file, "--fresh", "0")


def test_the_refusal_of_the_only_file_is_a_one_line_error(
    refused: Callable[..., str], make_filesystem: Callable[..., Path]
) -> None:
    path = make_filesystem("tmpfs", 20) / "file"
    path.write_bytes(b"x" * M)
    assert "left unchanged" in refused("heal", path)
    assert "a file system in memory" in refused("heal", path, "--all")

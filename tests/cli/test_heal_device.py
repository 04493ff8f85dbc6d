"""`ssdlab heal --device`: output, JSON, consent and errors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program


@pytest.fixture
def device(loop_device: Callable[..., Path]) -> Path:
    """A loop device with an ext4 on it."""
    node = loop_device(64)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(node)], check=True)
    return node


def test_a_dry_run_prints_plan_map_and_wear_and_needs_no_journal(
    ssdlab: Program, device: Path
) -> None:
    before = device.read_bytes()
    done = ssdlab("heal", "--device", device, "--all", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    [one] = report["files"]
    assert (one["path"], one["file_system"], one["way"]) == (str(device), "ext4", "in place")
    assert one["planned_bytes"] == sum(length for _, length in one["plan"]) > 0
    assert (one["written_bytes"], one["restored_bytes"]) == (0, 0)
    assert all(row["length_bytes"] == 4 << 20 for row in one["map"])
    assert device.read_bytes() == before


def test_the_text_output_has_the_plan_of_a_device(ssdlab: Program, device: Path) -> None:
    done = ssdlab("heal", "--device", device, "--all", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "method: in place" in done.stdout
    assert "of the device" in done.stdout


def test_a_device_must_be_named_twice_before_it_is_rewritten(
    refused: Callable[..., str], device: Path, tmp_path: Path
) -> None:
    command = ("heal", "--device", device, "--all")
    assert f"give --in-place={device}" in refused(*command)
    assert "names /dev/loop-control" in refused(*command, "--in-place", "/dev/loop-control")
    assert "--journal FILE is needed" in refused(*command, "--in-place", device)
    journal = tmp_path / "journal"
    message = refused(*command, "--in-place", device, "--journal", journal)
    assert "another drive" in message
    assert not journal.exists()
    assert "does not exist" in refused(*command[:3], "--recover", "--journal", journal)


def test_a_usage_error_of_a_device_is_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "nothing to heal is given" in refused("heal")
    assert "give one of them" in refused("heal", tmp_path, "--device", "/dev/null")
    assert "need --device" in refused("heal", tmp_path, "--journal", "x")
    assert "needs the --journal FILE" in refused("heal", "--device", "/dev/null", "--recover")
    assert "is not a block device" in refused("heal", "--device", "/dev/null")
    assert "is not a block device" in refused("heal", "--device", "/dev/null", "--dry-run")


def test_the_help_has_an_example_with_a_device(ssdlab: Program) -> None:
    done = ssdlab("heal", "--help")
    assert "--device" in done.stdout
    assert "ssdlab heal --device /dev/sdb1" in " ".join(done.stdout.split())

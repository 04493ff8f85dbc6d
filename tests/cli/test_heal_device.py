"""`ssdlab heal --device` as people and scripts see it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def device(loop_device: Callable[..., Path]) -> Path:
    """A loop device with an ext4 on it."""
    node = loop_device(64)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(node)], check=True)
    return node


def test_a_dry_run_tells_plan_map_and_wear_and_asks_for_no_journal(
    ssdlab: Program, device: Path
) -> None:
    before = device.read_bytes()
    done = ssdlab("heal", "--device", device, "--all", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    [one] = told["files"]
    assert (one["path"], one["file_system"], one["way"]) == (str(device), "ext4", "in place")
    assert one["planned_bytes"] == sum(length for _, length in one["plan"]) > 0
    assert (one["written_bytes"], one["restored_bytes"]) == (0, 0)
    assert all(row["length_bytes"] == 4 << 20 for row in one["map"])
    assert device.read_bytes() == before


def test_people_see_the_plan_of_a_device(ssdlab: Program, device: Path) -> None:
    done = ssdlab("heal", "--device", device, "--all", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "way: in place" in done.stdout
    assert "of the device" in done.stdout


def test_it_is_named_twice_before_it_is_rewritten(
    refused: Callable[..., str], device: Path, tmp_path: Path
) -> None:
    words = ("heal", "--device", device, "--all")
    assert f"give --in-place={device}" in refused(*words)
    assert "names /dev/loop-control" in refused(*words, "--in-place", "/dev/loop-control")
    assert "--journal FILE is needed" in refused(*words, "--in-place", device)
    journal = tmp_path / "journal"
    said = refused(*words, "--in-place", device, "--journal", journal)
    assert "another drive" in said
    assert not journal.exists()
    assert "is not there" in refused(*words[:3], "--recover", "--journal", journal)


def test_wrong_use_of_a_device_is_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "nothing is given to heal" in refused("heal")
    assert "give one of them" in refused("heal", tmp_path, "--device", "/dev/null")
    assert "belong to --device" in refused("heal", tmp_path, "--journal", "x")
    assert "takes the --journal FILE" in refused("heal", "--device", "/dev/null", "--recover")
    assert "is not a block device" in refused("heal", "--device", "/dev/null")
    assert "is not a block device" in refused("heal", "--device", "/dev/null", "--dry-run")


def test_its_help_has_an_example(ssdlab: Program) -> None:
    done = ssdlab("heal", "--help")
    assert "--device" in done.stdout
    assert "ssdlab heal --device /dev/sdb1" in " ".join(done.stdout.split())

"""`ssdlab trim` and `ssdlab provision`: output, JSON, exit status and errors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Program


def test_a_trim_shows_each_layer_and_what_it_received(
    ssdlab: Program, make_filesystem: Callable[..., Path]
) -> None:
    point = make_filesystem("ext4", 128, mount_options="nodiscard")
    done = ssdlab("trim", point, "--json")
    report = json.loads(done.stdout)
    layers = [row["layer"] for row in report["measures"] if not row["below_file"]]
    assert layers == ["file system", "loop"]
    reaches = report["findings"]["reaches"]["value"]
    assert done.returncode == int(reaches is False)
    drives = [row["sent"] for row in report["measures"] if row["layer"] == "drive"]
    if drives:
        assert report["findings"]["reached_bytes"]["value"] == drives[0]
    again = ssdlab("trim", point)
    assert "as the file system reports" in again.stdout or reaches is False
    assert "=> " in again.stdout


def test_a_trim_that_a_layer_stops_names_the_layer_and_fails(
    ssdlab: Program, make_filesystem: Callable[..., Path], tmp_path: Path
) -> None:
    image = make_filesystem("ramfs", 64) / "image"
    with image.open("wb") as file:
        file.truncate(48 << 20)
    command = ["losetup", "--find", "--show", str(image)]
    device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    point = tmp_path / "point"
    point.mkdir()
    try:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        subprocess.run(["mount", device, str(point)], check=True)
        done = ssdlab("trim", point, "--quiet")
        subprocess.run(["umount", str(point)], check=True)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    assert done.returncode == 1
    assert "does not support discards" in " ".join(done.stdout.split())
    assert f"{Path(device).name} (loop) stops it" in " ".join(done.stdout.split())


def test_an_ordinary_user_gets_the_command_with_sudo(executable: str, tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        pytest.skip("needs root and setpriv, to become an ordinary user")
    other = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*other, executable, "--version"], check=False, cwd="/").returncode:
        pytest.skip("an ordinary user may not run this installation")
    command = [*other, executable, "trim", "/usr"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 2
    assert "sudo ssdlab trim" in done.stderr
    assert done.stderr.count("\n") == 1


def test_provision_prints_both_definitions_and_a_plan_with_its_risks(ssdlab: Program) -> None:
    done = ssdlab("provision", "--visible", "128GB", "--flash", "129GiB")
    assert done.returncode == 0, done.stderr
    assert "7.59%" in done.stdout
    assert "8.21%" in done.stdout
    assert "danger: destroys all data" in done.stdout
    assert "Nothing was changed" in done.stdout


def test_provision_of_a_mounted_device_says_so_first(
    ssdlab: Program, make_filesystem: Callable[..., Path]
) -> None:
    point = make_filesystem("ext4", 64)
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    device = next(fields[0] for fields in mounts if fields[1] == str(point))
    done = ssdlab("provision", device)
    assert done.returncode == 2
    assert f"{device} is mounted at {point}" in done.stderr
    assert "its flash and spare are unknown" in done.stderr
    given = ssdlab("provision", device, "--flash", "80MiB")
    lines = given.stdout.replace("\n", " ").split("flash")[0]
    assert "! in use:" in lines
    commands = [line for line in given.stdout.splitlines() if "sudo " in line]
    assert commands
    assert not [line for line in commands if device in line]
    assert "danger: destroys all data" not in given.stdout


def test_provision_prints_json_for_the_840_pro(ssdlab: Program) -> None:
    done = ssdlab("provision", "twin:samsung-840-pro", "--twin", "none", "--json")
    report = json.loads(done.stdout)
    assert round(report["findings"]["spare"]["value"], 4) == 0.0685
    assert "1000215216" not in report["verdict"]
    assert [way["name"].split(" ")[0] for way in report["plan"]] == [
        *("partition,", "partition,", "hpa", "raid")
    ]


def test_a_usage_error_is_one_line(refused: Callable[..., str]) -> None:
    assert "give a drive" in refused("provision")
    assert "not a block device" in refused("provision", "/usr")
    assert "did you mean" in refused("provision", "twin:samsung-840-por")
    assert "must be from 6.848" in refused("provision", "twin:samsung-840-pro", "--spare", "3")
    assert "cannot show" in refused("provision", "--visible", "2GB", "--flash", "1GB")
    assert "without a target" in refused("provision", "twin:toshiba-xg5", "--visible", "1GB")
    assert "does not exist" in refused("trim", "/no/such/place")


def test_trim_of_a_twin_names_the_experiment(refused: Callable[..., str]) -> None:
    assert "is a twin, which has no file system" in refused("trim", "twin:toshiba-xg5")

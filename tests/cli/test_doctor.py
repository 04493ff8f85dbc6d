"""`ssdlab doctor` as a program: on this machine, on loop devices, without root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Program

from ssdlab.cli.doctor import doctor
from ssdlab.doctor import examine
from ssdlab.errors import UsageError
from ssdlab.snapshot import Device, Health, Snapshot

SEVERITIES = ["bad", "warn", "note", "good"]


def _doctor_json(ssdlab: Program, *words: object, **more: Any) -> dict[str, Any]:
    done = ssdlab("doctor", *words, "--json", **more)
    assert done.returncode in {0, 1}, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    is_bad = any(verdict["severity"] == "bad" for verdict in report["verdicts"])
    assert done.returncode == int(is_bad)
    return report


def test_verdicts_on_this_machine_are_sorted_worst_first(ssdlab: Program) -> None:
    report = _doctor_json(ssdlab, "/", "--read", "64MiB")
    order = [SEVERITIES.index(verdict["severity"]) for verdict in report["verdicts"]]
    assert order == sorted(order)
    assert report["verdict"]
    assert report["target"] == "/"
    assert {row["layer"] for row in report["measures"]} >= {"schedule", "file system"}
    for finding in report["findings"].values():
        assert set(finding) == {"value", "unit", "low", "high", "why"}
        assert finding["why"]


def test_the_terminal_report_has_layers_and_a_map(ssdlab: Program, drive_directory: Path) -> None:
    (drive_directory / "file").write_bytes(os.urandom(48 << 20))
    with (drive_directory / "file").open("rb") as file:
        os.fsync(file.fileno())
    wide = {**os.environ, "COLUMNS": str(200 + len(str(drive_directory)))}
    done = ssdlab("doctor", drive_directory, env=wide)
    assert done.returncode in {0, 1}
    assert "file system" in done.stdout
    assert str(drive_directory) in done.stdout
    assert "Read speed by position in the file" in done.stdout
    assert re.search(r"\|[▁▂▃▄▅▆▇█]+\|", done.stdout)
    assert "reading up to" in done.stderr
    assert "=> " in done.stdout


@pytest.fixture
def loop_over(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """`loop_over(directory)` -> a loop device over a sparse file there."""
    attached: list[tuple[str, Path]] = []

    def attach(directory: Path) -> Path:
        if os.geteuid() != 0 or shutil.which("losetup") is None:
            pytest.skip("needs root and losetup")
        image = directory / "image"
        with image.open("xb") as file:
            file.truncate(32 << 20)
        command = ["losetup", "--find", "--show", str(image)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"losetup failed: {done.stderr.strip()}")
        attached.append((done.stdout.strip(), image))
        return Path(done.stdout.strip())

    yield attach
    for device, image in attached:
        subprocess.run(["losetup", "--detach", device], check=True)
        image.unlink()


def test_a_loop_device_without_discard_is_named_as_the_layer_that_stops_trim(
    ssdlab: Program,
    make_filesystem: Callable[..., Path],
    loop_over: Callable[[Path], Path],
    tmp_path: Path,
) -> None:
    # ramfs cannot punch holes, so a loop device over it does not support discard.
    device = loop_over(make_filesystem("ramfs", 64))
    subprocess.run(["mkfs.ext4", "-q", "-b", "4096", str(device)], check=True)
    point = tmp_path / "mounted"
    point.mkdir()
    subprocess.run(["mount", str(device), str(point)], check=True)
    try:
        by_path, by_device = _doctor_json(ssdlab, point), _doctor_json(ssdlab, device)
    finally:
        subprocess.run(["umount", str(point)], check=True)
    assert by_path["verdicts"] == by_device["verdicts"]
    (verdict,) = [one for one in by_path["verdicts"] if one["code"] == "trim-stopped"]
    assert verdict["where"] == f"{device.name} (loop)"
    assert verdict["value"] == "loop"
    assert "punches no holes" in verdict["evidence"]
    assert "losetup" in verdict["remedy"]


def test_a_loop_device_over_a_sparse_file_passes_trim(
    ssdlab: Program, loop_over: Callable[[Path], Path], tmp_path: Path
) -> None:
    device = loop_over(tmp_path)
    limit = Path("/sys/block") / device.name / "queue/discard_max_bytes"
    if limit.read_text().strip() == "0":
        pytest.skip("this loop device does not support discard: see its discard_max_bytes")
    assert "trim-stopped" not in _doctor_json(ssdlab, device)["findings"]


def test_the_doctor_works_without_root(executable: str, tmp_path: Path) -> None:
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        pytest.skip("needs root and setpriv, to become an ordinary user")
    other = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*other, executable, "--version"], check=False, cwd="/").returncode:
        pytest.skip("an ordinary user may not run this installation")
    command = [*other, executable, "doctor", "/usr", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=60)
    assert done.returncode in {0, 1}, done.stderr
    report = json.loads(done.stdout)
    assert report["stack"]["as_root"] is False
    assert report["verdicts"]


def test_quiet_prints_only_problems(ssdlab: Program, tmp_path: Path) -> None:
    done = ssdlab("doctor", tmp_path, "--read", "0", "--quiet")
    assert done.stderr == ""
    assert "=> " not in done.stdout
    assert not re.search(r"^ (note|good) ", done.stdout, re.MULTILINE)


def test_a_recorded_report_gives_the_same_verdicts(ssdlab: Program, tmp_path: Path) -> None:
    report = _doctor_json(ssdlab, tmp_path, "--read", "0")
    record = tmp_path / "record.json"
    record.write_text(json.dumps(report))
    again = _doctor_json(ssdlab, "--recorded", record)
    assert again["verdicts"] == report["verdicts"]
    assert again["stack"] == report["stack"]


def test_the_page_is_self_contained(ssdlab: Program, tmp_path: Path) -> None:
    page = tmp_path / "doctor.html"
    done = ssdlab("doctor", tmp_path, "--read", "0", "--html", page)
    assert str(page) in done.stderr
    text = page.read_text()
    assert "<h1>Doctor:" in text
    assert not re.search(r"<script|<link|src=|url\(http", text)


@pytest.mark.parametrize(
    "words",
    [["doctor", "--help"], ["doctor", "/", "--read", "64"], ["runs", "--none"], ["runs", "--help"]],
)
def test_help_and_usage_errors_load_no_numerical_library(words: list[str]) -> None:
    script = (
        "import os, sys\n"
        "import ssdlab.cli\n"
        "def report(_status=0):\n"
        "    names = ('numpy', 'pyarrow', 'scipy', 'matplotlib', 'ssdlab.device')\n"
        "    print('LOADED', [name for name in names if name in sys.modules], flush=True)\n"
        "    exit_now(0)\n"
        "exit_now, os._exit, sys.exit = os._exit, report, report\n"
        "ssdlab.cli.main()\n"
        "report()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
    )
    assert "LOADED []" in done.stdout


def test_usage_errors_are_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "does not exist" in refused("doctor", "/no/such/place")
    assert "cannot be read" in refused("doctor", "/", "--map", "/no/such/file")
    assert "needs a unit" in refused("doctor", "/", "--read", "64")
    (tmp_path / "x.json").write_text("[1]")
    assert "not a snapshot" in refused("doctor", "--recorded", tmp_path / "x.json")
    assert "cannot be read" in refused("doctor", "--recorded", tmp_path / "none.json")


def test_collector_scripts_are_printed_and_their_output_is_judged(
    ssdlab: Program, refused: Callable[..., str]
) -> None:
    recording = Path(__file__).parents[1] / "doctor" / "freebsd.txt"
    printed = ssdlab("doctor", "--collector", "freebsd").stdout
    assert printed.startswith("#!/bin/sh\n")
    assert "kern.geom.confxml" in printed
    done = ssdlab("doctor", "--recorded", recording, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["stack"]["kernel"] == "FreeBSD 14.1-RELEASE"
    assert "give linux, freebsd, windows" in refused("doctor", "--collector", "plan9")


def test_remember_ends_with_status_1_if_something_is_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for errors, status in ((0, 0), (0, 0), (7, 1)):
        health = Health("smartctl", link_errors=errors)
        drive = Device("sda", "/dev/sda", "drive", "sata", is_drive=True, serial="x", health=health)
        stack = Snapshot("/", as_root=True, devices=(drive,))
        monkeypatch.setattr(examine, "read_stack", lambda *_, stack=stack: stack)
        assert doctor("/", json=True, remember=True) == status
        [changes] = json.loads(capsys.readouterr().out)["history"]
        assert len(changes["regressions"]) == status
    with pytest.raises(UsageError, match="leave --recorded out"):
        doctor("/", recorded=tmp_path / "x.json", remember=True)

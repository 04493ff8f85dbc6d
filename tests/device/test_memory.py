"""The loop device over memory: it stores data, and it disappears with its user."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from ssdlab.device import Job, open_memory, run_job
from ssdlab.errors import TargetError

MIB = 1 << 20
SIZE = 16 * MIB + 512 * os.getpid()
"""Unique to this process, so that the test recognises its own loop devices."""
TIMEOUT_S = 60


def _loops() -> list[str]:
    """The loop devices of this test."""
    names = []
    for device in Path("/sys/class/block").glob("loop*"):
        with contextlib.suppress(OSError):  # another program may have detached it
            backing_file = (device / "loop/backing_file").read_text()
            size_bytes = int((device / "size").read_text()) * 512
            if "memfd:ssdlab" in backing_file and size_bytes == SIZE:
                names.append(device.name)
    return names


def _all_detached() -> bool:
    """Waits until no loop device is left: another program may hold one open for a moment."""
    end = time.monotonic() + TIMEOUT_S
    while _loops() and time.monotonic() < end:
        time.sleep(0.05)
    return not _loops()


@pytest.fixture(autouse=True)
def _root() -> None:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("needs root and loop devices")


def test_a_drive_in_memory_is_written_and_read_and_then_detached() -> None:
    with open_memory(SIZE) as drive:
        assert not drive.is_virtual
        assert drive.capacity_bytes == SIZE
        assert len(_loops()) == 1
        write = Job("write", length_bytes=16 * MIB, block_bytes=MIB, amount_bytes=16 * MIB)
        for job in (write, msgspec.structs.replace(write, op="read")):
            assert run_job(drive, job).bytes == 16 * MIB
    del drive
    assert _all_detached()


def test_a_killed_program_leaves_no_loop_device() -> None:
    code = (
        "import sys; from ssdlab.device import open_memory\n"
        f"with open_memory({SIZE}): print('open', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    assert len(_loops()) == 1
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert _all_detached()


def test_without_permission_the_error_suggests_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TargetError, match=r"cannot be set up .Permission denied.; run as root"):
        open_memory(MIB).__enter__()

"""The drive in memory: it keeps what it is given, and nothing is left of it, however it ends."""

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
"""No other program that runs now has a drive in memory that is as large: it is this one's."""
PATIENCE_S = 600


def _loops() -> list[str]:
    """Loop devices over a memory of this test's."""
    found = []
    for device in Path("/sys/class/block").glob("loop*"):
        with contextlib.suppress(OSError):  # another's, that is gone meanwhile
            over = (device / "loop/backing_file").read_text()
            if "memfd:ssdlab" in over and int((device / "size").read_text()) * 512 == SIZE:
                found.append(device.name)
    return found


def _gone() -> bool:
    """Whether none is left: another program that looks at it keeps it for a moment."""
    end = time.monotonic() + PATIENCE_S
    while _loops() and time.monotonic() < end:
        time.sleep(0.05)
    return not _loops()


@pytest.fixture(autouse=True)
def _root() -> None:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("needs root and loop devices")


def test_a_drive_in_memory_is_written_and_read_and_then_gone() -> None:
    with open_memory(SIZE) as drive:
        assert not drive.is_virtual
        assert drive.capacity_bytes == SIZE
        assert len(_loops()) == 1
        write = Job("write", length_bytes=16 * MIB, block_bytes=MIB, amount_bytes=16 * MIB)
        for job in (write, msgspec.structs.replace(write, op="read")):
            assert run_job(drive, job).bytes == 16 * MIB
    del drive
    assert _gone()


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
    assert _gone()


def test_without_leave_it_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TargetError, match=r"which takes root .Permission denied"):
        open_memory(MIB).__enter__()

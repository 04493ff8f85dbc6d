"""The drive in memory: it keeps what it is given, and nothing is left of it, however it ends."""

from __future__ import annotations

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
PATIENCE_S = 60


def _loops() -> set[str]:
    """Loop devices over a memory of ours."""
    found = Path("/sys/class/block").glob("loop*/loop/backing_file")
    return {path.parts[4] for path in found if "memfd:ssdlab" in path.read_text()}


@pytest.fixture(autouse=True)
def _root() -> None:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("needs root and loop devices")


def test_a_drive_in_memory_is_written_and_read_and_then_gone() -> None:
    before = _loops()
    with open_memory(16 * MIB) as drive:
        assert not drive.is_virtual
        assert drive.capacity_bytes == 16 * MIB
        assert len(_loops() - before) == 1
        write = Job("write", length_bytes=16 * MIB, block_bytes=MIB, amount_bytes=16 * MIB)
        for job in (write, msgspec.structs.replace(write, op="read")):
            assert run_job(drive, job).bytes == 16 * MIB
    del drive
    assert _loops() <= before


def test_a_killed_program_leaves_no_loop_device() -> None:
    before = _loops()
    code = (
        "import time; from ssdlab.device import open_memory\n"
        "with open_memory(1 << 20): print('open', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    # The kernel lets go of it a little later where another program looks at it just then.
    end = time.monotonic() + PATIENCE_S
    while _loops() - before and time.monotonic() < end:
        time.sleep(0.05)
    assert _loops() <= before


def test_without_leave_it_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(TargetError, match=r"which takes root .Permission denied"):
        open_memory(MIB).__enter__()

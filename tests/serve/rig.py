"""A served twin as tests hold it, and the programs that attach it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from ssdlab.device import Control

PATIENCE_S = 600
TWIN = """
[drive]
model = "Twin"
interface = "nvme"
capacity = "{capacity}"
[link]
bandwidth = "3 GiB/s"
[flash]
channels = 4
dies_per_channel = 1
planes = 1
page = "16 KiB"
pages_per_block = 64
read = ["50 us"]
program = "{program}"
erase = "3 ms"
channel_bandwidth = "500 MB/s"
[ftl]
mapping_unit = "4 KiB"
spare = 0.1
[buffer]
size = "4 MiB"
power_loss_protection = {protected}
honours_flush = {honest}
"""


@dataclass
class Served:
    """A running `ssdlab serve`."""

    socket: Path
    process: subprocess.Popen[str]
    messages: Path

    @property
    def uri(self) -> str:
        return f"nbd+unix:///?socket={self.socket}"

    @property
    def control(self) -> Control:
        return Control(f"{self.socket}.control")

    def count(self, name: str) -> float:
        with self.control as control:
            return control.counters()[name] or 0.0

    def stop(self) -> str:
        """Ends it as Ctrl-C does; returns what it printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        assert "panicked" not in self.messages.read_text(), self.messages.read_text()
        return out


Serve = Callable[..., Served]


@dataclass
class Attached:
    """A served twin as a block device of this machine: nbdfuse makes a file, losetup a device."""

    device: str
    undo: ExitStack

    def detach(self) -> None:
        self.undo.close()


Attach = Callable[[Served], Attached]
Mounted = Callable[[str, str], Path]


def executable() -> str:
    """The installed program."""
    beside = Path(sys.executable).parent / "ssdlab"
    found = str(beside) if beside.exists() else shutil.which("ssdlab")
    assert found, "ssdlab is not installed: run `make build`"
    return found


def loop_of(file: Path, undo: ExitStack) -> str:
    """A loop device that passes discards on: one that was used before may have lost that."""
    for _ in range(16):
        made = run("losetup", "--find", "--show", "--direct-io=on", str(file), check=False)
        if made.returncode:
            pytest.skip(f"no loop device can be had here: {made.stderr.strip()}")
        device = made.stdout.strip()
        undo.callback(subprocess.run, ["losetup", "--detach", device], check=False)
        limit = Path("/sys/block", Path(device).name, "queue/discard_max_bytes")
        if int(limit.read_text()):
            return device
        # It stays attached until the test ends, so that the next one found is another.
    pytest.skip("every loop device here has discard_max_bytes 0")


def end_fuse(fuse: subprocess.Popen[str], folder: Path) -> None:
    """Unmounts it as root does: not every machine has fusermount."""
    unmount(folder)
    fuse.communicate(timeout=PATIENCE_S)


def unmount(point: Path) -> None:
    """Unmounts what is mounted there."""
    end = time.monotonic() + PATIENCE_S
    while f" {point} " in Path("/proc/self/mounts").read_text():  # to stat it may fail
        done = run("umount", str(point), check=False)
        assert time.monotonic() < end, f"umount: {done.stderr}"
        time.sleep(0.02)


def need(*tools: str, root: bool = False) -> None:
    """Skips where a tool or root is missing."""
    if root and os.geteuid() != 0:
        pytest.skip("needs root: it makes loop devices and mounts")
    for tool in tools:
        if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            pytest.skip(f"needs {tool}, which is not installed")


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; its output comes with the failure."""
    # The system's own first: nbdsh takes the Python that it finds, and needs the distribution's.
    path = f"/usr/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE_S,
        env={**os.environ, "PATH": path},
    )
    if check and done.returncode:
        pytest.fail(f"{shlex.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def wait_for(met: Callable[[], bool], what: str | Path) -> None:
    """Waits until something is so; a path is of a file that tells why it is not."""
    end = time.monotonic() + PATIENCE_S
    while not met():
        told = what.read_text() if isinstance(what, Path) else what
        assert time.monotonic() < end, f"{told}: not within {PATIENCE_S} s"
        time.sleep(0.02)

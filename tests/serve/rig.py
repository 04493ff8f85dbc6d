"""Served twins for tests, and the programs that attach them."""

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
from fuse_mounts import run_beside_fuse

from ssdlab.device import Control

PATIENCE_S = 60
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
        """Ends the server as Ctrl-C does; returns its standard output."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        assert "panicked" not in self.messages.read_text(), self.messages.read_text()
        return out


Serve = Callable[..., Served]


@dataclass
class Attached:
    """A served twin as a local block device, by nbdfuse and losetup."""

    device: str
    undo: ExitStack

    def detach(self) -> None:
        self.undo.close()


Attach = Callable[[Served], Attached]
Mounted = Callable[[str, str], Path]


def executable() -> str:
    """The path of the installed program."""
    installed = Path(sys.executable).parent / "ssdlab"
    path = str(installed) if installed.exists() else shutil.which("ssdlab")
    assert path, "ssdlab is not installed: run `make build`"
    return path


def loop_of(file: Path, undo: ExitStack) -> str:
    """A loop device that supports discard: the kernel may have disabled it on a reused one."""
    for _ in range(16):
        done = run("losetup", "--find", "--show", "--direct-io=on", str(file), check=False)
        if done.returncode:
            pytest.skip(f"no loop device is available: {done.stderr.strip()}")
        device = done.stdout.strip()
        undo.callback(subprocess.run, ["losetup", "--detach", device], check=False)
        limit = Path("/sys/block", Path(device).name, "queue/discard_max_bytes")
        if int(limit.read_text()):
            return device
        # It stays attached until the test ends, so that losetup finds another one.
    pytest.skip("every loop device has discard_max_bytes 0")


def end_fuse(fuse: subprocess.Popen[str], folder: Path) -> None:
    """Ends nbdfuse by umount: not every machine has fusermount."""
    unmount(folder)
    fuse.communicate(timeout=PATIENCE_S)


def unmount(point: Path) -> None:
    """Unmounts a mount point; retries while it is busy."""
    end = time.monotonic() + PATIENCE_S
    while f" {point} " in Path("/proc/self/mounts").read_text():  # stat may fail after a cut
        done = run("umount", str(point), check=False)
        assert time.monotonic() < end, f"umount: {done.stderr}"
        time.sleep(0.02)


def need(*tools: str, root: bool = False) -> None:
    """Skips the test without a tool or without root."""
    if root and os.geteuid() != 0:
        pytest.skip("needs root: it makes loop devices and mounts")
    for tool in tools:
        if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            pytest.skip(f"needs {tool}, which is not installed")


def make_file_system(*command: str) -> None:
    """Runs a `mkfs`, which may examine the mounts of other tests."""
    done = run_beside_fuse(command, timeout=2 * PATIENCE_S, env=_environment())
    if done.returncode:
        pytest.fail(f"{shlex.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")


def _environment() -> dict[str, str]:
    """With the programs of root, and the distribution's first: nbdsh needs its python3."""
    return {**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}:/usr/sbin:/sbin"}


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a program; a failure shows its output."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",  # without `file`, nbdinfo 1.14 prints random bytes as the content
        check=False,
        timeout=2 * PATIENCE_S,
        env=_environment(),
    )
    if check and done.returncode:
        pytest.fail(f"{shlex.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def wait_for(condition: Callable[[], bool], reason: str | Path) -> None:
    """Waits for a condition; the message of a timeout is `reason`, or the content of that file."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        message = reason.read_text() if isinstance(reason, Path) else reason
        assert time.monotonic() < end, f"{message}: not within {PATIENCE_S} s"
        time.sleep(0.02)

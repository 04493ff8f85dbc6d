"""`Rig`: a twin's file system with a file to heal; `Healing`: a running `ssdlab heal`."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rig import end_fuse, loop_of, run, unmount, wait_for
from watchdogs import watchdog_of

from ssdlab.cli import main as program
from ssdlab.device import Control

Way = Literal["file", "device", "frozen"]
MKFS = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-b", "4096"),
    "tables": ("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^extent,^64bit"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
CHECK = {
    "ext4": ("e2fsck", "-f", "-n"),
    "tables": ("e2fsck", "-f", "-n"),
    "xfs": ("xfs_repair", "-n"),
    "btrfs": ("btrfs", "check", "--readonly"),
}
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["ssdlab.cli", "ssdlab.cli.app", "ssdlab.heal.file"])
WRITER = Path(__file__).parent.parent / "heal" / "support" / "random_writer.py"
UNMEASURED = {
    "file": (),
    "device": ("--piece", "1GiB"),
    "frozen": ("--piece", "1GiB", "--freeze", "5000"),
}
"""Options that skip the measurement: a device smaller than one piece is not measured."""
OTHERS = 5


@dataclass
class Tally:
    """Counts of a series of interrupted heals.

    `interrupted`: heals that were running when they were killed or cut; the others had ended.
    `with_watchdog`: kills that included the watchdog and its helper process. `restored`: heals
    after which the journal restored bytes.
    """

    done: dict[str, int] = field(default_factory=lambda: {"kill": 0, "cut": 0})
    interrupted: dict[str, int] = field(default_factory=lambda: {"kill": 0, "cut": 0})
    with_watchdog: int = 0
    restored: int = 0
    bytes_differ: int = 0
    files_missing: int = 0
    strangers: int = 0
    checks_failed: int = 0
    not_recovered: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def bad(self) -> bool:
        """Whether anything was lost."""
        losses = self.bytes_differ + self.files_missing + self.strangers
        return losses + self.checks_failed + self.not_recovered > 0


@dataclass
class Rig:
    """A served twin at `socket`; with `writes`, a program writes to the file during the heal."""

    kind: str
    way: Way
    folder: Path
    socket: Path
    rng: random.Random
    size_bytes: int
    writes: bool = False
    content: dict[str, bytes] = field(default_factory=dict)
    round: int = 0

    def __post_init__(self) -> None:
        """Generates the content of the files."""
        for number in range(OTHERS):
            self.content[f"other-{number}"] = self.rng.randbytes(100_000 + number)
        self.content["patient"] = self.rng.randbytes(self.size_bytes)

    @property
    def point(self) -> Path:
        """Mount point of the file system."""
        return self.folder / "mounted"

    @property
    def journal(self) -> Path:
        """Journal of the heal of a whole device, on another drive."""
        return self.folder / "journal"

    @property
    def log(self) -> Path:
        """Log of the writes that the writing program made durable."""
        return self.folder / "kept"

    @property
    def control(self) -> Control:
        """A connection to the server's control socket."""
        return Control(f"{self.socket}.control")

    def host_writes(self) -> float:
        """Host writes of the twin, in units of 4 KiB."""
        with self.control as control:
            return control.counters()["host_writes"] or 0.0


@contextmanager
def attached(rig: Rig) -> Iterator[str]:
    """The twin as a block device."""
    folder = rig.folder / "fuse"
    folder.mkdir(exist_ok=True)
    with ExitStack() as undo:
        fuse = subprocess.Popen(
            ["nbdfuse", str(folder), f"nbd+unix:///?socket={rig.socket}"],
            stderr=subprocess.PIPE,
            text=True,
        )
        undo.callback(end_fuse, fuse, folder)
        wait_for(lambda: os.path.ismount(folder) and (folder / "nbd").exists(), "nbdfuse")
        yield loop_of(folder / "nbd", undo)


@contextmanager
def mounted(rig: Rig, device: str, *, always: bool = False) -> Iterator[None]:
    """Mounts the file system, unless the unmounted device is to be healed."""
    if rig.way == "device" and not always:
        yield
        return
    rig.point.mkdir(exist_ok=True)
    kind = "ext4" if rig.kind == "tables" else rig.kind
    run("mount", "-t", kind, device, str(rig.point))
    try:
        yield
    finally:
        unmount(rig.point)


class Healing:
    """`ssdlab heal` in its own process, forked from one that has imported the program."""

    def __init__(self, words: list[str], state: Path, output: Path) -> None:
        self._process = _FORKS.Process(target=_program, args=(words, str(state), str(output)))
        self._process.start()

    @property
    def is_running(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def kill_with_watchdog(self, point: Path) -> bool:
        """Kills it together with the watchdog of a mount point and its helper process.

        Those two are a process group, which does not include their guard. Returns whether there was
        a watchdog.
        """
        watchdog = watchdog_of(point)
        with suppress(ProcessLookupError):
            if watchdog:
                os.killpg(watchdog.pid, signal.SIGKILL)
        self.kill()
        return bool(watchdog)

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode


def _program(words: list[str], state: str, output: str) -> None:
    os.environ["XDG_STATE_HOME"] = state
    fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    sys.argv = ["ssdlab", *words]
    program()


@contextmanager
def healing(rig: Rig, device: str) -> Iterator[Healing]:
    """Runs the heal, and with `rig.writes` a program that writes at the same time."""
    words = ["heal", str(rig.point / "patient")]
    if rig.way != "file":
        words = ["heal", "--device", device, "--journal", str(rig.journal), "--in-place", device]
    with ExitStack() as undo:
        if rig.writes:
            undo.enter_context(_writing(rig))
        words += ["--all", "--quiet", *UNMEASURED[rig.way]]
        process = Healing(words, rig.folder / f"state-{rig.round}", rig.folder / "output")
        undo.callback(process.kill)
        yield process


@contextmanager
def _writing(rig: Rig) -> Iterator[None]:
    rig.log.unlink(missing_ok=True)
    words = [sys.executable, str(WRITER), str(rig.point / "patient"), "buffered"]
    process = subprocess.Popen(
        [*words, str(rig.round), "500", str(rig.log), str(rig.round << 32)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        process.communicate()

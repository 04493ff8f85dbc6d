"""A served twin as a mounted file system, until Ctrl-C; mounted again after a power cut."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM, signal
from typing import Final

from ssdlab.attach.device import AttachedTwin, is_mounted
from ssdlab.attach.programs import missing, run, run_or_fail
from ssdlab.attach.remains import remove_remains
from ssdlab.device import Control, Power
from ssdlab.errors import TargetError, UsageError
from ssdlab.storage_stack.blockdev import device_at
from ssdlab.storage_stack.holders import holders
from ssdlab.storage_stack.signatures import signatures

FILE_SYSTEMS: Final = {
    "ext4": ("mkfs.ext4", "-q", "-E", "nodiscard"),
    "xfs": ("mkfs.xfs", "-q", "-K"),
    "btrfs": ("mkfs.btrfs", "-q", "--nodiscard"),
}
"""How each file system is made. A new twin is empty, so discarding all of it changes nothing."""
_PROGRAMS: Final = ("nbdfuse", "losetup", "mount", "umount", "wipefs")
_POLL_S: Final = 0.2
_TRIES: Final = 10
"""Failed attempts to unmount, without a known user, before a message."""
_REPEAT_S: Final = 10.0
"""Seconds between two messages about the same processes."""

Say = Callable[[str], None]


def check_mount(directory: Path, kind: str, say: Say) -> None:
    """Checks what can be checked before the twin is served.

    A mount that a killed server left there is undone.

    Raises:
        UsageError: no root, a program is missing, or the directory cannot be used.
    """
    if os.geteuid() != 0:
        raise UsageError(
            "--mount needs root, to make a loop device and to mount: run it with sudo; without "
            "root, serve the twin with --unix SOCKET, and use it by fio, qemu or nbdfuse"
        )
    if kind not in FILE_SYSTEMS:
        raise UsageError(f"--fs is {kind!r}; it must be one of {', '.join(FILE_SYSTEMS)}")
    if lacking := missing((*_PROGRAMS, FILE_SYSTEMS[kind][0])):
        raise UsageError(
            f"--mount needs {', '.join(lacking)}, which {'is' if len(lacking) == 1 else 'are'} not "
            "installed; Debian has nbdfuse in the package nbdfuse or libnbd-bin, and mkfs in "
            "e2fsprogs, xfsprogs and btrfs-progs"
        )
    if not Path("/dev/fuse").exists():
        raise UsageError("--mount needs /dev/fuse, which does not exist here: modprobe fuse")
    remove_remains(directory, say)
    _check_directory(directory)


def _check_directory(directory: Path) -> None:
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            what = "not empty" if directory.is_dir() else "not a directory"
            raise UsageError(f"--mount {directory} is {what}; give an empty or a new directory")
        if not directory.exists() and not directory.absolute().parent.is_dir():
            raise UsageError(
                f"--mount {directory}: {directory.absolute().parent} does not exist; create it, or "
                "give another directory"
            )
    except OSError as error:
        raise UsageError(
            f"--mount {directory} cannot be read ({error.strerror}); give another directory"
        ) from error
    if os.path.ismount(directory):
        raise UsageError(f"--mount {directory} is a mount point already; give another directory")


class MountedTwin:
    """The file system of a served twin at a directory.

    `say` gets sentences for the user: power cuts, and what it waits for.
    """

    def __init__(self, directory: Path, kind: str, say: Say) -> None:
        self.directory, self.kind, self._say = directory.resolve(), kind, say
        self._attached: AttachedTwin | None = None
        self._device = 0  # of the mounted file system: st_dev
        self._cuts = 0

    @property
    def node(self) -> Path:
        """The loop device."""
        assert self._attached is not None, "only while it is attached"
        return self._attached.node

    @contextmanager
    def mounted(self, socket: Path, control: Path, *, compensate: bool) -> Iterator[float]:
        """Makes the file system, unless the twin has one, and mounts it until the end.

        With `compensate`, the server first measures the latency of this way to the twin, and
        answers earlier by as much; yields that in microseconds, else 0. On exit it is unmounted, as
        soon as nothing uses it.

        Raises:
            TargetError: a program failed.
        """
        is_new = not self.directory.exists()
        self.directory.mkdir(exist_ok=True)
        try:
            try:
                yield self._attach_first(socket, control, compensate=compensate)
            finally:
                with _signals_held() as signalled:
                    self._leave(signalled)
        finally:
            if is_new:
                with contextlib.suppress(OSError):  # it holds files by now
                    self.directory.rmdir()

    def watch(self, socket: Path, control: Path) -> None:
        """Mounts the file system again after each power cut; ends with Ctrl-C.

        Raises:
            TargetError: the twin cannot be attached again.
        """
        while True:
            time.sleep(_POLL_S)
            attached = self._attached
            assert attached is not None, "it is attached again before the next look"
            is_cut = _power(control).cuts != self._cuts
            if not is_cut and attached.is_alive:
                continue
            cause = "the drive lost its power" if is_cut else "nbdfuse has ended"
            self._say(f"{cause}: unmounting the file system")
            self._leave(lambda: False)
            self._attach_again(socket, control)
            try:
                self._mount()
            except TargetError as error:
                self._say(f"{error}; still serving: repair it on {self.node}, or end with Ctrl-C")
            else:
                self._say(f"mounted again at {self.directory}")

    def _attach_first(self, socket: Path, control: Path, *, compensate: bool) -> float:
        lead_us = 0.0
        self._cuts = _power(control).cuts
        self._attached = AttachedTwin(socket)
        if compensate:
            with Control(control) as client:
                lead = client.request("lead", through=str(self.node))
            lead_us = float(lead["transport_us"])
        found = signatures(device_at(self.node))
        if not found:
            command, *flags = FILE_SYSTEMS[self.kind]
            run_or_fail(command, *flags, str(self.node))
        elif found[0].kind != self.kind:
            raise TargetError(
                f"the twin holds {found[0].kind}, not {self.kind}; give --fs {found[0].kind}, or "
                "another --data file"
            )
        self._mount()
        return lead_us

    def _attach_again(self, socket: Path, control: Path) -> None:
        """Attaches the twin once it has power, and tries again after another cut."""
        while self._attached is None:
            self._wait_for_power(control)
            try:
                self._attached = AttachedTwin(socket)
            except TargetError:
                if _power(control).cuts == self._cuts:
                    raise

    def _mount(self) -> None:
        run_or_fail("mount", "-t", self.kind, str(self.node), str(self.directory))
        self._device = self.directory.stat().st_dev

    def _wait_for_power(self, control: Path) -> None:
        is_said = False
        while (power := _power(control)).power == "off":
            if not is_said:
                self._say(f"the power is off; turn it on: ssdlab control {control} power-on")
                is_said = True
            time.sleep(_POLL_S)
        self._cuts = power.cuts

    def _leave(self, signalled: Callable[[], bool]) -> None:
        """Unmounts, detaches the loop device and ends nbdfuse, in this order.

        While the file system is in use, says by what and tries again.
        """
        said, said_at, tries = "", 0.0, 0
        while is_mounted(self.directory):
            done, tries = run("umount", str(self.directory)), tries + 1
            if done.returncode == 0:
                continue
            users = holders(self.directory, self._device)
            text = f"{self.directory} is in use by {', '.join(users)}: serving until it is free"
            if not users:  # the last one may just have ended
                text = "" if tries < _TRIES else f"{' '.join(done.stderr.split())}: trying again"
            now = time.monotonic()
            if text and (text != said or signalled() or now > said_at + _REPEAT_S):
                self._say(text)
                said, said_at = text, now
            time.sleep(_POLL_S)
        if self._attached is not None:
            self._attached.detach()
            self._attached = None


def _power(control: Path) -> Power:
    with Control(control) as client:
        return client.power()


@contextmanager
def _signals_held() -> Iterator[Callable[[], bool]]:
    """Signals do not interrupt this context; returns whether one has come since the last call."""
    count = 0

    def count_up(_number: int, _frame: object) -> None:
        nonlocal count
        count += 1

    def signalled() -> bool:
        nonlocal count
        came, count = count > 0, 0
        return came

    earlier = {number: signal(number, count_up) for number in (SIGINT, SIGTERM, SIGHUP)}
    try:
        yield signalled
    finally:
        for number, handler in earlier.items():
            signal(number, handler)

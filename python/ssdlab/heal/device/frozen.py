"""Heals the device of a mounted file system: each window under a freeze of a part of a second."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

import ssdlab
from ssdlab.device import sync_file_system
from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.device import kernel
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.guard import release
from ssdlab.heal.device.in_place import UNREADABLE, Job, record_of
from ssdlab.heal.device.journal import Journal
from ssdlab.heal.device.watchdog import READY, Answer
from ssdlab.heal.device.windows import (
    GUARDED_BYTES,
    PAGE_BYTES,
    Window,
    complement,
    overlap,
    without_zeros,
)
from ssdlab.heal.methods.rewriter import Rewritten
from ssdlab.heal.pieces import Range, joined
from ssdlab.storage_stack.blockdev import SYS, BlockDevice
from ssdlab.storage_stack.filesystem import live_options
from ssdlab.storage_stack.in_use import uses_except_mounts
from ssdlab.storage_stack.layers import devices_of_mount, layers_under
from ssdlab.storage_stack.mounts import PROC, Mount, mount_of, read_mounts
from ssdlab.storage_stack.pseudofile import read_text, unescape

FREEZE_MS: Final = 200
TRIES: Final = 4
LEAST_BYTES: Final = 256 << 10
"""A window that is late is halved down to this."""
_NEEDED: Final = ("/", "/usr", "/etc", "/var", "/var/log", "/tmp", "/var/tmp", "/run")  # noqa: S108


def mount_on(device: BlockDevice, proc: Path = PROC, sys_: Path = SYS) -> Mount | None:
    """Where a device is mounted, the first of several; None: nowhere."""
    for mount in read_mounts(proc):
        if any(each.name == device.name for each in devices_of_mount(mount, sys_)):
            return mount
    return None


def require_freezable(device: BlockDevice, mount: Mount, kind: str, journal: Path | None) -> None:
    """Refuses a mounted file system that must not be frozen, or whose thaw leaves no trace.

    Raises:
        TargetError: the reason.
    """
    where = f"{device.node} is mounted at {mount.mount_point}"
    if kind != "ext4":
        raise TargetError(f"{where} ({kind}): umount it first, or heal its files: only ext4 tells")
    options = {option.partition("=")[0]: option for option in live_options(mount)}
    if options.get("barrier") == "barrier=0" or "nobarrier" in options or "norecovery" in options:
        raise TargetError(f"{where} without barriers: umount it first")
    if options.get("data") == "data=journal" or "dax" in options or mount.has("ro"):
        raise TargetError(f"{where} ({','.join(mount.options)}): umount it first")
    if not Path("/sys/fs/ext4", device.name, "journal_task").exists():
        raise TargetError(f"{where} and has no journal: umount it first")
    for path in _needed(journal):
        if device.name in _below(path):
            raise TargetError(
                f"{where}, and {path} is on it, which is needed while it is frozen: start from "
                "another system, and heal it unmounted"
            )
    for reason in (*_swap_files(mount), *uses_except_mounts(device)):
        raise TargetError(f"{device.node} stays as it is: {reason}")


def _needed(journal: Path | None) -> list[Path]:
    own = (sys.executable, sys.prefix, sys.base_prefix, os.__file__, str(Path(ssdlab.__file__)))
    kept = [] if journal is None else [str(journal.parent)]
    return [Path(each) for each in (*_NEEDED, *own, *kept) if Path(each).exists()]


def _below(path: Path) -> set[str]:
    devices = devices_of_mount(mount_of(path))
    return {layer.device.name for device in devices for layer in layers_under(device)}


def _swap_files(mount: Mount) -> Iterator[str]:
    for line in (read_text(PROC / "swaps") or "").splitlines()[1:]:
        path = Path(unescape(line.split()[0]))
        if path.is_file() and path.stat().st_dev == os.makedev(mount.major, mount.minor):
            yield f"{path} is swap space: the kernel writes there also while it is frozen; swapoff"


@dataclass(frozen=True)
class Site:
    """What is healed: a device that is open, where it is mounted, and its journal."""

    device: DirectDevice
    mount_point: Path
    journal: Journal
    freeze_ms: int


class Frozen:
    """Rewrites windows by way of the watchdog."""

    def __init__(self, site: Site, job: Job, sequence: int) -> None:
        """Starts the watchdog; `sequence` is the number of the last record there was.

        Raises:
            TargetError: this kernel is too old.
            DeviceFailure: the watchdog does not start.
        """
        self._site, self._job, self._sequence = site, job, sequence
        self._fd = os.open(site.mount_point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            kernel.untouchable(self._fd, 0, GUARDED_BYTES)
            kernel.in_cache(site.device.fd, (Range(GUARDED_BYTES, PAGE_BYTES),))
        except OSError as error:
            os.close(self._fd)
            raise TargetError(
                f"{site.mount_point}: this kernel does not tell what is where ({error.strerror}; "
                "Linux 6.5 does): umount it first"
            ) from error
        words = (site.mount_point, site.device.path, site.journal.path, site.freeze_ms)
        # In a session of its own: neither Ctrl-C nor the terminal's end is meant for it.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "ssdlab.heal.device.watchdog", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.longest_ms = 0.0
        if self._line() != READY:
            raise DeviceFailure("the watchdog did not start: nothing was frozen")

    def rewrite(self, window: Window) -> Rewritten:
        """Rewrites what of a window holds files' data and no zeros.

        Raises:
            DeviceFailure: the drive or the journal's failed, or somebody meddled with the freeze.
        """
        for _ in range(TRIES):
            # What is dirty would be written while others wait for the freeze to end.
            sync_file_system(self._site.mount_point)
            kept, content = self._looked_at(window)
            if kept is None:
                return Rewritten(window.length, 0)
            if content is None:
                return Rewritten(0, 0, window.ranges, UNREADABLE)
            answer = self._asked(kept, content)
            if answer.end == "done":
                return Rewritten(window.length, kept.length)
            if answer.end == "late":
                return self._halved(window)
            if answer.end != "changed":
                raise DeviceFailure(f"{self._site.mount_point}: {_MEANT[answer.end]}")
        return Rewritten(0, 0, window.ranges, "its files came and went each time")

    def close(self) -> None:
        """Ends the watchdog; nothing is frozen then."""
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        with suppress(BrokenPipeError):  # it is gone already
            self._watchdog.stdin.close()
        self._watchdog.wait()
        self._watchdog.stdout.close()
        os.close(self._fd)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """As `close`."""
        self.close()

    def _looked_at(self, window: Window) -> tuple[Window | None, bytes | None]:
        """What of a window can be rewritten now, and its content."""
        end = window.ranges[-1].end
        left = kernel.untouchable(self._fd, window.offset, end)
        left += kernel.in_cache(self._site.device.fd, window.ranges)
        ranges = overlap(list(window.ranges), complement(joined(left), end))
        if not ranges:
            return None, b""
        part = Window(tuple(ranges))
        try:
            return without_zeros(part, self._site.device.read(part))
        except DeviceFailure:
            return part, None

    def _asked(self, window: Window, content: bytes) -> Answer:
        self._sequence += 1
        record = record_of(window, content, self._job, self._sequence)
        record = msgspec.structs.replace(record, state="prepared")
        self._site.journal.write(record, content)
        assert self._watchdog.stdin is not None
        try:
            self._watchdog.stdin.write(msgspec.json.encode(record).decode() + "\n")
            self._watchdog.stdin.flush()
            line = self._line()
        except BrokenPipeError:
            line = ""
        if not line:
            # Its hand and its guard have ended too: all have held the other end of the pipe.
            release(self._fd, self._site.device)
            raise DeviceFailure("the watchdog was killed: what it froze is thawed, nothing is lost")
        answer = msgspec.json.decode(line, type=Answer)
        self.longest_ms = max(self.longest_ms, answer.took_ms)
        return answer

    def _halved(self, window: Window) -> Rewritten:
        """The halves of a window that was too much for the bound, one after the other."""
        if window.length <= LEAST_BYTES:
            why = f"it takes more than the {self._site.freeze_ms} ms of a freeze"
            return Rewritten(0, 0, window.ranges, why)
        middle = (window.offset + window.ranges[-1].end) // 2 // 4096 * 4096
        ends = ((0, middle), (middle, window.ranges[-1].end))
        parts = [overlap(list(window.ranges), [Range(a, b - a)]) for a, b in ends]
        found = [self.rewrite(Window(tuple(part))) for part in parts if part]
        return Rewritten(
            sum(each.moved for each in found),
            sum(each.written for each in found),
            tuple(left for each in found for left in each.left),
            next((each.why for each in found if each.why), ""),
        )

    def _line(self) -> str:
        assert self._watchdog.stdout is not None
        return self._watchdog.stdout.readline()


_MEANT: Final = {
    "busy": "somebody else has frozen it: thaw it (fsfreeze --unfreeze) and start again",
    "failed": "a window could not be rewritten; the journal has it",
    "thawed by others": "somebody thawed it in between: compare what was written meanwhile with a "
    "backup; the journal has what it held before",
}

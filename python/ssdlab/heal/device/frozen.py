"""Rewrites a mounted device: each window during a short freeze of the file system."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import msgspec

import ssdlab
from ssdlab.device import sync_file_system
from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.device import kernel
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.in_place import UNREADABLE, RunFields, armed_record
from ssdlab.heal.device.journal import Journal
from ssdlab.heal.device.watchdog import READY, Answer, flush_and_thaw
from ssdlab.heal.device.windows import (
    PAGE_BYTES,
    PROTECTED_BYTES,
    Window,
    complement,
    drop_zero_pages,
)
from ssdlab.heal.methods.rewriter import RewriteResult
from ssdlab.heal.pieces import Range, intersection, merge
from ssdlab.storage_stack.blockdev import SYS, BlockDevice
from ssdlab.storage_stack.filesystem import live_options
from ssdlab.storage_stack.in_use import uses_except_mounts
from ssdlab.storage_stack.layers import devices_of_mount, layers_under
from ssdlab.storage_stack.mounts import PROC, Mount, mount_of, read_mounts
from ssdlab.storage_stack.pseudofile import read_text, unescape

MAX_TRIES: Final = 4
MIN_WINDOW_BYTES: Final = 256 << 10
"""A window that exceeds the time limit is halved, down to this size."""
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/run")  # noqa: S108 -- compared, not written to
_SYSTEM_PATHS: Final = ("/", "/usr", "/etc", "/var", "/var/log", *_TEMPORARY)


def mount_on(device: BlockDevice, proc: Path = PROC, sys_: Path = SYS) -> Mount | None:
    """The first mount of a device; None if it is not mounted."""
    for mount in read_mounts(proc):
        if any(each.name == device.name for each in devices_of_mount(mount, sys_)):
            return mount
    return None


def require_freezable(device: BlockDevice, mount: Mount, kind: str, journal: Path | None) -> None:
    """Refuses a mount that must not be frozen, or on which recovery could not detect a thaw.

    Raises:
        TargetError: the reason.
    """
    where = f"{device.node} is mounted at {mount.mount_point}"
    if kind != "ext4":
        raise TargetError(
            f"{where} ({kind}), but only ext4 can be healed mounted: unmount it first, or heal its "
            "files"
        )
    options = {option.partition("=")[0]: option for option in live_options(mount)}
    if options.get("barrier") == "barrier=0" or "nobarrier" in options or "norecovery" in options:
        raise TargetError(f"{where} without barriers: unmount it first")
    if options.get("data") == "data=journal" or "dax" in options or mount.has("ro"):
        raise TargetError(
            f"{where} with data=journal, dax or ro ({','.join(mount.options)}): unmount it first"
        )
    if not Path("/sys/fs/ext4", device.name, "journal_task").exists():
        raise TargetError(f"{where} and has no journal: unmount it first")
    for path in _required_paths(journal):
        if device.name in _devices_below(path):
            raise TargetError(
                f"{where} and contains {path}, which is needed while it is frozen: boot another "
                "system, and heal it unmounted"
            )
    for reason in (*_swap_files(mount), *uses_except_mounts(device)):
        raise TargetError(f"{device.node} was left unchanged: {reason}")


def _required_paths(journal: Path | None) -> list[Path]:
    program = (sys.executable, sys.prefix, sys.base_prefix, os.__file__, str(Path(ssdlab.__file__)))
    journal_folder = [] if journal is None else [str(journal.parent)]
    paths = (*_SYSTEM_PATHS, *program, *journal_folder)
    return [Path(path) for path in paths if Path(path).exists()]


def _devices_below(path: Path) -> set[str]:
    devices = devices_of_mount(mount_of(path))
    return {layer.device.name for device in devices for layer in layers_under(device)}


def _swap_files(mount: Mount) -> Iterator[str]:
    for line in (read_text(PROC / "swaps") or "").splitlines()[1:]:
        path = Path(unescape(line.split()[0]))
        if path.is_file() and path.stat().st_dev == os.makedev(mount.major, mount.minor):
            yield f"{path} is swap space, which the kernel writes even in a freeze; swapoff"


@dataclass(frozen=True)
class MountedDevice:
    """An open device, its mount point, its journal, and the time limit of each freeze."""

    device: DirectDevice
    mount_point: Path
    journal: Journal
    freeze_ms: int


class FrozenRewriter:
    """Rewrites windows through the watchdog process."""

    def __init__(self, mounted: MountedDevice, run: RunFields, sequence: int) -> None:
        """Starts the watchdog; `sequence` is the number of the last record in the journal.

        Raises:
            TargetError: this kernel is too old.
            DeviceFailure: the watchdog did not start.
        """
        self._mounted, self._run, self._sequence = mounted, run, sequence
        self._fd = os.open(mounted.mount_point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            kernel.free_or_metadata(self._fd, 0, PROTECTED_BYTES)
            kernel.cached_pages(mounted.device.fd, (Range(PROTECTED_BYTES, PAGE_BYTES),))
        except OSError as error:
            os.close(self._fd)
            raise TargetError(
                f"{mounted.mount_point}: a heal while mounted needs Linux 6.5 ({error.strerror}): "
                "unmount it first"
            ) from error
        paths = (mounted.mount_point, mounted.device.path, mounted.journal.path)
        arguments = (*paths, mounted.freeze_ms)
        # The watchdog has its own session, so that Ctrl-C or a closed terminal does not end it.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "ssdlab.heal.device.watchdog", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.longest_ms = 0.0
        if self._read_line() != READY:
            raise DeviceFailure("the watchdog did not start; nothing was frozen: run heal again")

    def rewrite(self, window: Window) -> RewriteResult:
        """Rewrites the pages of a window that hold files' data and are not all zeros.

        Raises:
            DeviceFailure: the drive or the journal's drive failed, the watchdog was killed, or
                another program froze or thawed the file system.
        """
        for _ in range(MAX_TRIES):
            # Otherwise the freeze would write dirty pages while other programs wait for the thaw.
            sync_file_system(self._mounted.mount_point)
            kept, content = self._rewritable(window)
            if kept is None:
                return RewriteResult(window.length, 0)
            if content is None:
                return RewriteResult(0, 0, window.ranges, UNREADABLE)
            answer = self._send(kept, content)
            if answer.end == "done":
                return RewriteResult(window.length, kept.length)
            if answer.end == "late":
                return self._rewrite_halves(window)
            if answer.end != "changed":
                raise DeviceFailure(f"{self._mounted.mount_point}: {_FAILURES[answer.end]}")
        return RewriteResult(0, 0, window.ranges, "its files changed at each try")

    def close(self) -> None:
        """Ends the watchdog; afterwards nothing is frozen."""
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        with suppress(BrokenPipeError):  # it has exited already
            self._watchdog.stdin.close()
        self._watchdog.wait()
        self._watchdog.stdout.close()
        os.close(self._fd)

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the watchdog."""
        self.close()

    def _rewritable(self, window: Window) -> tuple[Window | None, bytes | None]:
        """The part of a window that can be rewritten now, and its content (None if unreadable)."""
        end = window.ranges[-1].end
        excluded = kernel.free_or_metadata(self._fd, window.offset, end)
        excluded += kernel.cached_pages(self._mounted.device.fd, window.ranges)
        ranges = intersection(list(window.ranges), complement(merge(excluded), end))
        if not ranges:
            return None, b""
        part = Window(tuple(ranges))
        try:
            return drop_zero_pages(part, self._mounted.device.read(part))
        except DeviceFailure:
            return part, None

    def _send(self, window: Window, content: bytes) -> Answer:
        self._sequence += 1
        record = armed_record(window, content, self._run, self._sequence)
        record = msgspec.structs.replace(record, state="prepared")
        self._mounted.journal.write(record, content)
        assert self._watchdog.stdin is not None
        try:
            self._watchdog.stdin.write(msgspec.json.encode(record).decode() + "\n")
            self._watchdog.stdin.flush()
            line = self._read_line()
        except BrokenPipeError:
            line = ""
        if not line:
            # The watchdog's worker and guard have exited too: all three held the pipe open.
            flush_and_thaw(self._fd, self._mounted.device)
            raise DeviceFailure(
                "the watchdog was killed; the file system is thawed, and no data is lost: run heal "
                "again"
            )
        answer = msgspec.json.decode(line, type=Answer)
        self.longest_ms = max(self.longest_ms, answer.took_ms)
        return answer

    def _rewrite_halves(self, window: Window) -> RewriteResult:
        """Rewrites, in two halves, a window that exceeded the time limit."""
        if window.length <= MIN_WINDOW_BYTES:
            reason = f"it takes longer than a freeze of {self._mounted.freeze_ms} ms (--freeze)"
            return RewriteResult(0, 0, window.ranges, reason)
        middle = (window.offset + window.ranges[-1].end) // 2 // 4096 * 4096
        ends = ((0, middle), (middle, window.ranges[-1].end))
        parts = [intersection(list(window.ranges), [Range(a, b - a)]) for a, b in ends]
        results = [self.rewrite(Window(tuple(part))) for part in parts if part]
        return RewriteResult(
            sum(each.moved_bytes for each in results),
            sum(each.written_bytes for each in results),
            tuple(left for each in results for left in each.left),
            next((each.reason for each in results if each.reason), ""),
        )

    def _read_line(self) -> str:
        assert self._watchdog.stdout is not None
        return self._watchdog.stdout.readline()


_FAILURES: Final = {
    "busy": "another program has frozen it: thaw it (fsfreeze --unfreeze), then run heal again",
    "failed": "a window could not be rewritten; the journal has its data: use --recover",
    "thawed by others": "another program thawed it during a write: compare files that were written "
    "since with a backup; the journal has the data from before",
}

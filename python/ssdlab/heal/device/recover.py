"""After a crash: restores torn data from the journal, unless newer data may be there.

Each sector of a window that was being overwritten has its old bytes, the same bytes rewritten, or
the remains that a power cut left. Writing the journal's copy repairs the sector, unless the file
system has written there since: then the copy would be older. So the copy is written only if the
superblock (for XFS also the head of the log) is unchanged, byte by byte. Each of these file systems
changes its superblock when it is mounted for writing, repaired by a check, or thawed.

If it has changed, but neither this machine nor the drive has restarted (only the program was
killed), nothing can be torn: data that differs is newer, and stays. The exception is a window that
the drive failed to write before the file system was thawed: the user must compare that one.

A mounted file system can still be frozen if the program, watchdog, worker and guard were killed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import TargetError
from ssdlab.heal.device import kernel
from ssdlab.heal.device.drive import DirectDevice, mount_id, needs_recovery
from ssdlab.heal.device.journal import Identity, Journal, Record
from ssdlab.storage_stack.blockdev import SYS, BlockDevice, directory_of
from ssdlab.storage_stack.layers import drives_under
from ssdlab.storage_stack.mounts import PROC
from ssdlab.storage_stack.pseudofile import read_text


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """Windows compared, bytes restored, the last record, and whether recovery had to thaw."""

    compared: int = 0
    restored_bytes: int = 0
    last: Record | None = None
    thawed: bool = False


def current_session(device: BlockDevice, sys: Path = SYS) -> str:
    """A text that changes when this machine boots or an underlying drive disappears and returns."""
    drives = (device, *drives_under(device, sys))
    sequences = [read_text(directory_of(each, sys) / "diskseq") or "" for each in drives]
    return " ".join([read_text(PROC / "sys/kernel/random/boot_id") or "", *sequences])


def recover(
    device: DirectDevice, journal: Journal, identity: Identity, session: str, point: Path | None
) -> RecoveryResult:
    """Compares the journal with the device, and restores torn data.

    A file system that is mounted, at `point`, is first thawed if a run left it frozen.

    Raises:
        TargetError: the journal belongs to another device, or the file system has been used since
            and its bytes differ; nothing was written.
        DeviceFailure: a read or write failed.
    """
    records = journal.records()
    for record, _ in records:
        _require_same(record.identity, identity, journal.path)
    last = records[0][0] if records else None
    thawed = (
        point is not None and last is not None and _thaw_left_frozen(device, point, last, session)
    )
    compared = restored = 0
    # The older record is restored first: where both have a byte, the newer record is right.
    for record, content in reversed(records):
        if record.state not in {"armed", "torn"}:
            continue
        compared += 1
        if device.read(record.window) == content:
            continue
        if not _is_unchanged(device, record):
            if record.state == "torn":
                raise _may_be_newer(device, record, journal.path)
            if _was_thawed(device, record):
                continue
            _require_session(device, record, session, journal.path)
            continue
        if not device.exclusive:
            raise TargetError(f"{device.path} was torn by a crash: unmount it, then use --recover")
        device.write(record.window, content)
        restored += record.window.length
    journal.mark_all_done()
    return RecoveryResult(compared, restored, last, thawed)


def _thaw_left_frozen(device: DirectDevice, point: Path, last: Record, session: str) -> bool:
    """Thaws the file system mounted at `point` if a run left it frozen; returns whether it did.

    Because this run has the journal's lock, no other process works on the last record. If that
    record is armed, the superblock proves that the freeze is still the same one. If it is only
    prepared, another program may have made the freeze since: the two cannot be distinguished.
    """
    if last.state == "done" or last.session != session:
        return False
    if last.state != "prepared" and not _is_unchanged(device, last):
        return False
    fd = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_NOATIME | os.O_CLOEXEC)
    try:
        device.flush()
    finally:
        thawed = kernel.thaw(fd)
        os.close(fd)
    return thawed


def _require_same(recorded: Identity, current: Identity, path: Path) -> None:
    if (recorded.kind, recorded.uuid, recorded.size_bytes) == (
        current.kind,
        current.uuid,
        current.size_bytes,
    ) and (None in {recorded.serial, current.serial} or recorded.serial == current.serial):
        return
    serial = f", serial {recorded.serial}" if recorded.serial else ""
    raise TargetError(
        f"{path} is the journal of another device ({recorded.kind} {recorded.uuid}, "
        f"{recorded.size_bytes} bytes{serial}): give that device, or another --journal"
    )


def _is_unchanged(device: DirectDevice, record: Record) -> bool:
    return device.generation(record.identity.kind) == record.generation


def _was_thawed(device: DirectDevice, record: Record) -> bool:
    """Whether the file system was thawed after the record's freeze, then crashed while mounted.

    The window was then written and flushed before the thaw, and data that differs is newer.
    """
    superblock = device.superblock()
    return record.mount == mount_id(superblock) and needs_recovery(superblock)


def _require_session(device: DirectDevice, record: Record, session: str, path: Path) -> None:
    if record.session != session:
        raise _may_be_newer(device, record, path)


def _may_be_newer(device: DirectDevice, record: Record, path: Path) -> TargetError:
    return TargetError(
        f"{device.path} was mounted or changed since {path} was written, and differs from it at "
        f"byte {record.window.offset} ({record.window.length} bytes): these may be newer, so "
        "nothing was written; compare the files there with a backup, then remove the journal"
    )

"""After a crash: what was torn is put back, unless others may have written there since.

A window that was being overwritten has, sector for sector, its old bytes, the same bytes anew, or
what a power cut made of them. Writing the journal's copy over it mends that, as long as nobody
wrote there in between: then the copy would be older than what stands there. So it is written only
where the superblock (of XFS also the head of the log) is still what it was, byte by byte: each of
the file systems changes it when it is mounted for writing, checked with repairs, or thawed.

Where it is not, but neither this machine nor the drive went out since (only the program was
killed), nothing can be torn: what differs is newer, and stays. Except what the drive failed to
write and a frozen file system had to go on with: that is for the user to compare.

A mounted one may be frozen still, if the program and all three processes that thaw were killed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import TargetError
from ssdlab.heal.device import kernel
from ssdlab.heal.device.drive import DirectDevice, mount_of, was_live
from ssdlab.heal.device.journal import Identity, Journal, Record
from ssdlab.storage_stack.blockdev import SYS, BlockDevice, directory_of
from ssdlab.storage_stack.layers import drives_under
from ssdlab.storage_stack.mounts import PROC
from ssdlab.storage_stack.pseudofile import read_text


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a recovery found: how many windows were compared, bytes put back, whether it thawed."""

    compared: int = 0
    restored_bytes: int = 0
    last: Record | None = None
    thawed: bool = False


def session_of(device: BlockDevice, sys: Path = SYS) -> str:
    """Another one after each start of this machine, and each time that a drive comes back."""
    drives = (device, *drives_under(device, sys))
    told = [read_text(directory_of(each, sys) / "diskseq") or "" for each in drives]
    return " ".join([read_text(PROC / "sys/kernel/random/boot_id") or "", *told])


def recover(
    device: DirectDevice, journal: Journal, identity: Identity, session: str, point: Path | None
) -> Recovered:
    """Compares what the journal holds with the device, and puts back what was torn.

    What is mounted, at `point`, is thawed first if it was left frozen.

    Raises:
        TargetError: the journal is of another device, or the file system was in use since and the
            bytes differ: nothing was written.
        DeviceFailure: a read or write failed.
    """
    found = journal.records()
    for record, _ in found:
        _require_same(record.identity, identity, journal.path)
    last = found[0][0] if found else None
    thawed = point is not None and last is not None and _thaw_left(device, point, last, session)
    compared = restored = 0
    # The older first: where both hold a byte, the newer knows better.
    for record, content in reversed(found):
        if record.state not in {"armed", "torn"}:
            continue
        compared += 1
        if device.read(record.window) == content:
            continue
        if not _is_unused(device, record):
            if record.state == "torn":
                raise _may_be_newer(device, record, journal.path)
            if _was_thawed(device, record):
                continue
            _require_session(device, record, session, journal.path)
            continue
        if not device.exclusive:
            raise TargetError(f"{device.path} was torn by a crash: umount it, then use --recover")
        device.write(record.window, content)
        restored += record.window.length
    journal.settle()
    return Recovered(compared, restored, last, thawed)


def _thaw_left(device: DirectDevice, point: Path, last: Record, session: str) -> bool:
    """Thaws the file system mounted at `point` if a run left it frozen; whether it did.

    Who holds the journal's lock knows that nobody works on the last record any more. Once that was
    armed, the superblock proves that the freeze is still the same one; in the moment before, it
    cannot be told from one that somebody else made since.
    """
    if last.state == "done" or last.session != session:
        return False
    if last.state != "prepared" and not _is_unused(device, last):
        return False
    fd = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_NOATIME | os.O_CLOEXEC)
    try:
        device.flush()
    finally:
        thawed = kernel.thaw(fd)
        os.close(fd)
    return thawed


def _require_same(was: Identity, now: Identity, path: Path) -> None:
    if (was.kind, was.uuid, was.size_bytes) == (now.kind, now.uuid, now.size_bytes) and (
        None in {was.serial, now.serial} or was.serial == now.serial
    ):
        return
    serial = f", serial {was.serial}" if was.serial else ""
    raise TargetError(
        f"{path} is the journal of another device ({was.kind} {was.uuid}, {was.size_bytes} bytes"
        f"{serial}): give that one, or another --journal"
    )


def _is_unused(device: DirectDevice, record: Record) -> bool:
    return device.generation(record.identity.kind) == record.generation


def _was_thawed(device: DirectDevice, record: Record) -> bool:
    """Whether the file system went on after that freeze, in the same mount, until all went out.

    Then the window was written and flushed before, and what differs is newer.
    """
    superblock = device.superblock()
    return record.mount == mount_of(superblock) and was_live(superblock)


def _require_session(device: DirectDevice, record: Record, session: str, path: Path) -> None:
    if record.session != session:
        raise _may_be_newer(device, record, path)


def _may_be_newer(device: DirectDevice, record: Record, path: Path) -> TargetError:
    return TargetError(
        f"{device.path} was mounted or changed since {path} was written, and differs from it at "
        f"byte {record.window.offset} ({record.window.length} bytes): what stands there may be "
        "newer, so nothing was written; check the files there against a backup, then remove the "
        "journal"
    )

"""Heals a whole device: held exclusively while nobody uses it, or mounted and frozen by turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ssdlab.errors import DeviceFailure, SsdlabError, TargetError
from ssdlab.heal.device.allocated import allocated
from ssdlab.heal.device.drive import DirectDevice, family_of
from ssdlab.heal.device.frozen import FREEZE_MS, Frozen, Site, mount_on, require_freezable
from ssdlab.heal.device.in_place import InPlace, Job
from ssdlab.heal.device.journal import Identity, Journal
from ssdlab.heal.device.recover import Recovered, recover, session_of
from ssdlab.heal.device.refusal import (
    kind_on,
    require_journal_elsewhere,
    require_rewritable,
    require_root,
)
from ssdlab.heal.device.run import DeviceCourse, Patient, Rewriter, wish_words
from ssdlab.heal.options import Watch, Wish
from ssdlab.heal.outcome import FileOutcome
from ssdlab.storage_stack.blockdev import BlockDevice, device_at, size_of
from ssdlab.storage_stack.in_use import in_use
from ssdlab.storage_stack.layers import drives_under
from ssdlab.storage_stack.mounts import Mount

WAY: Final = "in place"
WAY_FROZEN: Final = "in place, frozen by turns"


@dataclass(frozen=True)
class DeviceWish:
    """What is asked of a device.

    `journal` may be None for a dry run alone; `freeze_ms` bounds each freeze of a mounted one.
    """

    wish: Wish
    journal: Path | None
    freeze_ms: int = FREEZE_MS


@dataclass(frozen=True)
class _Case:
    """A device that was found fit, and open; `mount` is None while nobody uses it."""

    held: DirectDevice
    device: BlockDevice
    mount: Mount | None
    asked: DeviceWish


def heal_device(path: Path, asked: DeviceWish, watch: Watch) -> FileOutcome:
    """Rewrites in place what of a device is in use and slow, or what was asked for.

    What a crash left of an earlier run with the same journal is mended first.

    Raises:
        TargetError: it must not be touched, or the journal must not be where it was asked for.
        DeviceFailure: the drive or the journal's failed; the journal has what may be torn.
    """
    with _reported(path, asked.journal):
        return _healed(path, asked, watch)


def _healed(path: Path, asked: DeviceWish, watch: Watch) -> FileOutcome:
    device = device_at(path)
    require_root()
    result = FileOutcome(path=str(path), way=WAY, file_system=kind_on(device))
    mount = mount_on(device)
    if mount is None:
        _require_free(path)
    else:
        require_freezable(device, mount, result.file_system, asked.journal)
        result.way = WAY_FROZEN
    require_rewritable(device)
    with _opened(path, exclusive=mount is None) as held:
        case = _Case(held, device, mount, asked)
        if asked.wish.dry_run:
            DeviceCourse(_patient(case, result), asked.wish, watch, result).run(_never)
        else:
            _heal(case, watch, result)
    return result


def recover_device(path: Path, journal: Path) -> Recovered:
    """Mends what a crash left of a run, and thaws what it left frozen; the journal is removed.

    Raises:
        TargetError: as `recover`, or the device is in use otherwise, or there is no journal.
        DeviceFailure: a read or write failed.
    """
    with _reported(path, journal):
        return _recovered(path, journal)


def _recovered(path: Path, journal: Path) -> Recovered:
    device = device_at(path)
    require_root()
    if not journal.exists():
        raise TargetError(f"{journal} is not there: no run was interrupted, or it is elsewhere")
    mount = mount_on(device)
    if mount is None:
        _require_free(path)
    with _opened(path, exclusive=mount is None) as held, _journal(journal, device) as opened:
        found = _mended(held, device, mount, opened)
        opened.remove()
    return found


@contextmanager
def _reported(path: Path, journal: Path | None) -> Iterator[None]:
    """Any other system call that fails is one line too."""
    try:
        yield
    except OSError as error:
        kept = "" if journal is None else f"; if {journal} is there, keep it and use --recover"
        raise DeviceFailure(f"{path}: {error.strerror or error}{kept}") from error


def _mended(
    held: DirectDevice, device: BlockDevice, mount: Mount | None, journal: Journal
) -> Recovered:
    point = None if mount is None else mount.mount_point
    return recover(held, journal, identity_of(held, device), session_of(device), point)


def identity_of(held: DirectDevice, device: BlockDevice) -> Identity:
    """What a journal is bound to.

    Raises:
        TargetError: no file system that can be rewritten in place.
    """
    found = family_of(held.superblock())
    if found is None:
        raise TargetError(f"{held.path} holds neither ext2, ext3, ext4 nor xfs")
    kind, uuid = found
    return Identity(kind, uuid, size_of(held.path), device.serial, device.model)


def _heal(case: _Case, watch: Watch, result: FileOutcome) -> None:
    """Mends, rewrites, and leaves the journal only after an interruption or a failure."""
    identity, session = identity_of(case.held, case.device), session_of(case.device)
    wish = case.asked.wish
    with _journal(case.asked.journal, case.device) as journal, ExitStack() as undo:
        before = _mended(case.held, case.device, case.mount, journal)
        result.restored_bytes = before.restored_bytes
        words = wish_words(wish)
        patient = _going_on(_patient(case, result), before, words)
        job = Job(identity, case.held.generation(identity.kind), session, words)
        last = before.last.sequence if before.last else 0

        def rewriter() -> Rewriter:
            if case.mount is None:
                return InPlace(case.held, journal, job, last)
            site = Site(case.held, case.mount.mount_point, journal, case.asked.freeze_ms)
            frozen = undo.enter_context(Frozen(site, job, last))
            undo.callback(lambda: setattr(result, "longest_freeze_ms", frozen.longest_ms))
            return frozen

        DeviceCourse(patient, wish, watch, result).run(rewriter)
        undo.close()  # no hand writes any more
        if result.interrupted:
            case.held.flush()
            journal.settle()
        else:
            journal.remove()


@contextmanager
def _opened(path: Path, *, exclusive: bool) -> Iterator[DirectDevice]:
    held = DirectDevice(path, exclusive=exclusive)
    try:
        yield held
    finally:
        held.close()


@contextmanager
def _journal(where: Path | None, device: BlockDevice) -> Iterator[Journal]:
    """The journal, on another drive; one that holds nothing when it fails goes."""
    if where is None:
        raise TargetError("--journal FILE is needed: a path on another drive, for what is in hand")
    require_journal_elsewhere(where, device)
    journal = Journal(where)
    try:
        yield journal
    except SsdlabError:
        if not journal.records():
            journal.remove()
        raise
    finally:
        journal.close()


def _require_free(path: Path) -> None:
    reasons = in_use(path)
    if reasons:
        raise TargetError(f"{path} stays as it is: {reasons[0]}")


def _patient(case: _Case, result: FileOutcome) -> Patient:
    path = case.held.path
    found = allocated(path, result.file_system, mounted=case.mount is not None)
    size = size_of(path)
    if found.size_bytes > size:
        raise TargetError(f"{path} has {size} bytes, and its file system {found.size_bytes}")
    result.size_bytes = size
    return Patient(case.held, size, found.block_bytes, found.ranges, drives_under(case.device))


def _going_on(patient: Patient, before: Recovered, words: str) -> Patient:
    """Where the last window of a run that was asked the same ended, this one begins."""
    last = before.last
    if last is None or last.wish != words or last.state == "prepared":
        return patient
    return replace(patient, begin_at=last.window.ranges[-1].end)


def _never() -> Rewriter:
    raise AssertionError("a dry run rewrites nothing")

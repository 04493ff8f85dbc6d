"""Heals a whole device: opened exclusively, or mounted and frozen for one window at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ssdlab.errors import DeviceFailure, SsdlabError, TargetError
from ssdlab.heal.device.allocated import read_file_system
from ssdlab.heal.device.drive import DirectDevice, family_of
from ssdlab.heal.device.frozen import (
    FrozenRewriter,
    MountedDevice,
    mount_on,
    require_freezable,
)
from ssdlab.heal.device.in_place import InPlaceRewriter, RunFields
from ssdlab.heal.device.journal import Identity, Journal
from ssdlab.heal.device.recover import RecoveryResult, current_session, recover
from ssdlab.heal.device.refusal import (
    kind_on,
    require_journal_elsewhere,
    require_rewritable,
    require_root,
)
from ssdlab.heal.device.run import DeviceHeal, DeviceLayout, Rewriter, request_text
from ssdlab.heal.options import DeviceOptions, ProgressCallback
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.refusal import cached_below, untimed
from ssdlab.storage_stack.blockdev import BlockDevice, device_at, size_of
from ssdlab.storage_stack.in_use import in_use
from ssdlab.storage_stack.layers import drives_under
from ssdlab.storage_stack.mounts import Mount

METHOD: Final = "in place"
METHOD_MOUNTED: Final = "in place, in short freezes"


@dataclass(frozen=True)
class _OpenDevice:
    """An open device that passed all checks; `mount` is None if it is not mounted."""

    direct: DirectDevice
    device: BlockDevice
    mount: Mount | None
    options: DeviceOptions


def heal_device(path: Path, options: DeviceOptions, progress: ProgressCallback) -> FileOutcome:
    """Rewrites in place the parts of a device that are in use and slow, or that the user chose.

    First repairs data torn by a crash of an earlier run with the same journal.

    Raises:
        TargetError: the device must not be rewritten, or the journal's path cannot be used.
        DeviceFailure: the drive or the journal's drive failed; torn data is in the journal.
    """
    with _os_errors_reported(path, options.journal):
        return _heal_device(path, options, progress)


def _heal_device(path: Path, options: DeviceOptions, progress: ProgressCallback) -> FileOutcome:
    device = device_at(path)
    require_root()
    result = FileOutcome(path=str(path), way=METHOD, file_system=kind_on(device))
    mount = mount_on(device)
    if mount is None:
        _require_unused(path)
    else:
        require_freezable(device, mount, result.file_system, options.journal)
        result.way = METHOD_MOUNTED
    require_rewritable(device)
    result.not_timed = cached_below([device])
    if result.not_timed is not None:
        if options.heal.measures:
            raise TargetError(f"{path} was left unchanged: {untimed(result.not_timed).sentence}")
        options = replace(options, heal=replace(options.heal, timed=False))
    with _opened(path, exclusive=mount is None) as direct:
        opened = _OpenDevice(direct, device, mount, options)
        if options.heal.dry_run:
            layout = _layout(opened, result)
            DeviceHeal(layout, options.heal, progress, result).run(_no_rewriter)
        else:
            _heal(opened, progress, result)
    return result


def recover_device(path: Path, journal: Path) -> RecoveryResult:
    """Repairs data torn by a crash, thaws a file system left frozen, and removes the journal.

    Raises:
        TargetError: as `recover`, or another program uses the device, or there is no journal.
        DeviceFailure: a read or write failed.
    """
    with _os_errors_reported(path, journal):
        return _recover_device(path, journal)


def _recover_device(path: Path, journal: Path) -> RecoveryResult:
    device = device_at(path)
    require_root()
    if not journal.exists():
        raise TargetError(
            f"{journal} does not exist: no run was interrupted, or its journal is elsewhere"
        )
    mount = mount_on(device)
    if mount is None:
        _require_unused(path)
    with _opened(path, exclusive=mount is None) as direct, _journal(journal, device) as opened:
        recovered = _recover(direct, device, mount, opened)
        opened.remove()
    return recovered


@contextmanager
def _os_errors_reported(path: Path, journal: Path | None) -> Iterator[None]:
    """Turns any other failed system call into a one-line error."""
    try:
        yield
    except OSError as error:
        kept = "" if journal is None else f"; if {journal} exists, keep it and use --recover"
        raise DeviceFailure(f"{path}: {error.strerror or error}{kept}") from error


def _recover(
    direct: DirectDevice, device: BlockDevice, mount: Mount | None, journal: Journal
) -> RecoveryResult:
    point = None if mount is None else mount.mount_point
    return recover(direct, journal, identity_of(direct, device), current_session(device), point)


def identity_of(direct: DirectDevice, device: BlockDevice) -> Identity:
    """The file system and device that a journal belongs to.

    Raises:
        TargetError: it has no file system that can be rewritten in place.
    """
    family = family_of(direct.superblock())
    if family is None:
        raise TargetError(f"{direct.path} holds neither ext2, ext3, ext4 nor xfs")
    kind, uuid = family
    return Identity(kind, uuid, size_of(direct.path), device.serial, device.model)


def _heal(opened: _OpenDevice, progress: ProgressCallback, result: FileOutcome) -> None:
    """Recovers, then rewrites; the journal stays only after an interruption or a failure."""
    direct, device, mount = opened.direct, opened.device, opened.mount
    identity, session = identity_of(direct, device), current_session(device)
    options = opened.options
    with _journal(options.journal, device) as journal, ExitStack() as undo:
        recovered = _recover(direct, device, mount, journal)
        result.restored_bytes = recovered.restored_bytes
        request = request_text(options.heal)
        layout = _continued(_layout(opened, result), recovered, request)
        run = RunFields(identity, direct.generation(identity.kind), session, request)
        last = recovered.last.sequence if recovered.last else 0

        def rewriter() -> Rewriter:
            if mount is None:
                return InPlaceRewriter(direct, journal, run, last)
            mounted = MountedDevice(direct, mount.mount_point, journal, options.freeze_ms)
            frozen = undo.enter_context(FrozenRewriter(mounted, run, last))
            undo.callback(lambda: setattr(result, "longest_freeze_ms", frozen.longest_ms))
            return frozen

        DeviceHeal(layout, options.heal, progress, result).run(rewriter)
        undo.close()  # afterwards no worker can write any more
        if result.interrupted:
            direct.flush()
            journal.mark_all_done()
        else:
            journal.remove()


@contextmanager
def _opened(path: Path, *, exclusive: bool) -> Iterator[DirectDevice]:
    direct = DirectDevice(path, exclusive=exclusive)
    try:
        yield direct
    finally:
        direct.close()


@contextmanager
def _journal(path: Path | None, device: BlockDevice) -> Iterator[Journal]:
    """The journal, opened; after an error, it is removed if it has no records."""
    if path is None:
        raise TargetError(
            "--journal FILE is needed: a path on another drive, for a copy of the data"
        )
    require_journal_elsewhere(path, device)
    journal = Journal(path)
    try:
        yield journal
    except SsdlabError:
        if not journal.records():
            journal.remove()
        raise
    finally:
        journal.close()


def _require_unused(path: Path) -> None:
    reasons = in_use(path)
    if reasons:
        raise TargetError(f"{path} was left unchanged: {reasons[0]}")


def _layout(opened: _OpenDevice, result: FileOutcome) -> DeviceLayout:
    direct = opened.direct
    file_system = read_file_system(
        direct.path, result.file_system, mounted=opened.mount is not None
    )
    size = size_of(direct.path)
    if file_system.size_bytes > size:
        raise TargetError(
            f"{direct.path} has {size} bytes, but its file system {file_system.size_bytes}: it is "
            "damaged, or its device was truncated"
        )
    result.size_bytes = size
    drives = drives_under(opened.device)
    return DeviceLayout(direct, size, file_system.block_bytes, file_system.ranges, drives)


def _continued(layout: DeviceLayout, recovered: RecoveryResult, request: str) -> DeviceLayout:
    """The layout, beginning where an earlier run with the same request ended its last window."""
    last = recovered.last
    if last is None or last.request != request or last.state == "prepared":
        return layout
    return replace(layout, begin_at=last.window.ranges[-1].end)


def _no_rewriter() -> Rewriter:
    raise AssertionError("a dry run rewrites nothing")

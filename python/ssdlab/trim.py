"""FITRIM, with the discards that reached each layer; a second pass if ext4 skipped trimmed groups.

ext4 remembers, until it is unmounted, which block groups it has trimmed, and skips them, even if
something else has written to the drive since; `mount -o remount` does not help. A FITRIM whose
minimum length is greater than a group makes ext4 forget them (tested on Linux 6.18). XFS trims all
free space each time. btrfs trims never-allocated space only once per mount: only a new mount helps.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.device import sync_file_system, trim_free
from ssdlab.errors import TargetError
from ssdlab.snapshot import TrimLayer
from ssdlab.storage_stack.blockdev import device_by_name
from ssdlab.storage_stack.filesystem import PSEUDO, is_network
from ssdlab.storage_stack.live import live_roots
from ssdlab.storage_stack.mounts import Mount, mount_of
from ssdlab.storage_stack.resync import resync_warnings
from ssdlab.storage_stack.space import space_on
from ssdlab.storage_stack.trim.devices import discarded_bytes, used_bytes
from ssdlab.storage_stack.trim.stack import blocking_layer, discards_online, trim_layers_of_mount
from ssdlab.warning import MeasurementWarning

_ALL: Final = (1 << 64) - 1
_COMPLETE_SHARE: Final = 0.5
"""A pass that trimmed less than this share of the free space skipped groups trimmed before."""
_SKIPS_TRIMMED: Final = frozenset({"ext4"})
_EPERM, _EOPNOTSUPP, _ENOTTY, _EROFS = 1, 95, 25, 30


@dataclass(frozen=True)
class LayerResult:
    """One layer: whether it says that it passes TRIM on, and the discarded bytes it counted.

    `sent` is None if the kernel does not count them. `used_before` and `used_after` are the bytes
    that the storage below reports as in use, None if it does not report them.
    """

    layer: str
    device: str
    passes: str
    why: str
    below_file: bool
    sent: int | None
    used_before: int | None = None
    used_after: int | None = None


@dataclass(frozen=True)
class TrimResult:
    """The result in bytes; `passes` has the bytes that the file system reported for each pass."""

    mount_point: str
    fs_type: str
    free: int
    passes: tuple[int, ...]
    forced: bool
    layers: tuple[LayerResult, ...]
    stops: str | None
    refused: str
    warnings: tuple[MeasurementWarning, ...] = ()
    """What a resync did to the drives, as they were before the trim."""
    keeps: str | None = None
    """Mount point of a file system that holds a loop device's file and does not discard at once."""
    keeps_until_later: bool = False
    """Whether that file system discards by a timer or with a delay."""

    @property
    def drives(self) -> tuple[LayerResult, ...]:
        """The drives at the bottom, also those below a loop device's file."""
        return tuple(layer for layer in self.layers if layer.layer in {"drive", "USB"})

    @property
    def loops(self) -> tuple[LayerResult, ...]:
        """The loop devices that the file system is on; each frees space of its file."""
        return tuple(
            layer for layer in self.layers if layer.layer == "loop" and not layer.below_file
        )

    @property
    def reached(self) -> int | None:
        """Discarded bytes that the drives counted in total; None if one does not count."""
        return _total(layer.sent for layer in self.drives)

    @property
    def expected(self) -> int | None:
        """Bytes that the drives have to receive if no layer drops any; None if unknown.

        All that it sent; below loop devices, the bytes they freed of their files: often fewer.
        """
        if not self.loops:
            return sum(self.passes)
        return _total(
            None
            if loop.used_before is None or loop.used_after is None
            else max(0, loop.used_before - loop.used_after)
            for loop in self.loops
        )


def trim(path: Path, *, force: bool = True) -> TrimResult:
    """Trims the file system that holds `path`; with `force`, again if it skipped most free space.

    Raises:
        TargetError: this user may not trim it, it is not on a drive, or it is read-only.
    """
    mount = mount_of(path)
    _require_on_drive(mount)
    roots = live_roots()
    rows = trim_layers_of_mount(mount, roots)
    free = space_on(mount.mount_point).free_bytes_root
    devices = [d for d in (device_by_name(row.device) for row in rows) if d is not None]
    before = {device.name: discarded_bytes(device) for device in devices}
    used = {device.name: used_bytes(device) for device in devices}
    warnings = resync_warnings(devices)
    sync_file_system(mount.mount_point)
    passes, refused, forced = _trim_passes(mount, free, force=force)
    _sync_below(rows)
    keeper = _keeper(rows)
    return TrimResult(
        mount_point=str(mount.mount_point),
        fs_type=mount.fs_type,
        free=free,
        passes=passes,
        forced=forced,
        layers=tuple(_layer_result(row, before, used) for row in rows if row.layer != "schedule"),
        stops=_describe(blocking_layer(rows)),
        refused=refused,
        warnings=warnings,
        keeps=None if keeper is None else keeper.device,
        keeps_until_later=keeper is not None and keeper.passes == "yes",
    )


def _sync_below(rows: Iterable[TrimLayer]) -> None:
    """Commits what loop devices freed in their files: ext4 sends its discards then."""
    for row in rows:
        if row.layer == "file system" and row.below_file:
            with suppress(OSError):  # read-only, or not visible here
                sync_file_system(Path(row.device))


def _keeper(rows: Iterable[TrimLayer]) -> TrimLayer | None:
    """The schedule of the first file system below a loop device that does not discard at once."""
    below = (row for row in rows if row.layer == "schedule" and row.below_file)
    return next((row for row in below if not _discards_at_once(Path(row.device))), None)


def _discards_at_once(point: Path) -> bool:
    """Whether a mount sends discards by its next commit at the latest."""
    return discards_online(mount_of(point)) in {"discard", "discard=sync"}


def _require_on_drive(mount: Mount) -> None:
    if mount.fs_type in PSEUDO or is_network(mount.fs_type) or mount.fs_type in {"tmpfs", "ramfs"}:
        raise TargetError(
            f"{mount.mount_point} is {mount.fs_type}, which is not on a drive of this machine: "
            "give a directory on a drive"
        )


def _trim_passes(mount: Mount, free: int, *, force: bool) -> tuple[tuple[int, ...], str, bool]:
    try:
        first = trim_free(mount.mount_point, 0, _ALL)
    except OSError as error:
        return (), _refused(mount, error), False
    if not force or mount.fs_type not in _SKIPS_TRIMMED or first >= _COMPLETE_SHARE * free:
        return (first,), "", False
    try:
        trim_free(mount.mount_point, 0, _ALL, _group_bytes(mount))
        return (first, trim_free(mount.mount_point, 0, _ALL)), "", True
    except OSError:  # its groups have another size (bigalloc), so it still skips them
        return (first,), "", False


def _group_bytes(mount: Mount) -> int:
    """Bytes of an ext4 block group, whose bitmap is one block. No free extent is longer."""
    block = os.statvfs(mount.mount_point).f_frsize
    return 8 * block * block


def _refused(mount: Mount, error: OSError) -> str:
    if error.errno == _EPERM:
        raise TargetError(
            f"{mount.mount_point}: trimming needs root; run sudo ssdlab trim {mount.mount_point}"
        ) from error
    if error.errno == _EROFS:
        raise TargetError(
            f"{mount.mount_point} is mounted read-only: remount it for writing to trim it"
        ) from error
    if error.errno in {_EOPNOTSUPP, _ENOTTY}:
        return "the file system, or a layer below it, does not support discards"
    return f"the file system refused ({os.strerror(error.errno or 0)})"


def _layer_result(
    row: TrimLayer, before: dict[str, int | None], used: dict[str, int | None]
) -> LayerResult:
    device = device_by_name(row.device)
    discarded = None if device is None else discarded_bytes(device)
    discarded_before = before.get(row.device)
    return LayerResult(
        layer=row.layer,
        device=row.device,
        passes=row.passes,
        why=row.why,
        below_file=row.below_file,
        sent=None
        if discarded is None or discarded_before is None
        else discarded - discarded_before,
        used_before=used.get(row.device),
        used_after=None if device is None else used_bytes(device),
    )


def _total(counts: Iterable[int | None]) -> int | None:
    """The sum; None if one is unknown, or there are none."""
    known = list(counts)
    return sum(count or 0 for count in known) if known and None not in known else None


def _describe(row: TrimLayer | None) -> str | None:
    return None if row is None else f"{row.device} ({row.layer})"

"""FITRIM, with an account of what reached each layer; ext4's memory is gone round where it matters.

ext4 remembers for each mount which groups it has trimmed and leaves them out, also where something
else has filled the drive's blocks since; `mount -o remount` does not help. A pass whose least
length is longer than any group can have makes it forget (tried on Linux 6.18). XFS trims all that
is free each time, btrfs once for each mount what it never allocated: there a new mount is the only
way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.device import sync_file_system, trim_free
from ssdlab.errors import TargetError
from ssdlab.storage_stack.blockdev import BlockDevice, device_by_name
from ssdlab.storage_stack.filesystem import PSEUDO, is_network
from ssdlab.storage_stack.mounts import Mount, mount_of
from ssdlab.storage_stack.space import space_on
from ssdlab.storage_stack.trim import (
    Roots,
    TrimLayer,
    blocking_layer,
    discarded_bytes,
    read_tables,
    trim_layers_of_mount,
    used_bytes,
)

_ALL: Final = (1 << 64) - 1
_ENOUGH: Final = 0.5
"""Of what is free; less after a pass, and the file system has left out what it remembers."""
_FORGETS: Final = frozenset({"ext4"})
_EPERM, _EOPNOTSUPP, _ENOTTY, _EROFS = 1, 95, 25, 30


@dataclass(frozen=True)
class Sent:
    """One layer: whether it declares to pass a TRIM, and bytes of discards that it counted.

    `sent` is None where the kernel does not count; `used_before` and `used_after` are what lies
    below says that it holds, None where nothing tells.
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
class Trimmed:
    """What a trim came to, in bytes; `passes` are what the file system said of each pass."""

    mount_point: str
    fs_type: str
    free: int
    passes: tuple[int, ...]
    forced: bool
    layers: tuple[Sent, ...]
    stops: str | None
    refused: str

    @property
    def reached(self) -> int | None:
        """Bytes of discards that the drives counted together; None where one does not count."""
        drives = [row.sent for row in self.layers if _is_bottom(row)]
        known = [sent for sent in drives if sent is not None]
        return sum(known) if drives and len(known) == len(drives) else None


def trim(path: Path, *, force: bool = True) -> Trimmed:
    """Trims the file system that holds `path`, a second time where it left out most of it.

    Raises:
        TargetError: it cannot be trimmed by this user, or not at all.
    """
    mount = mount_of(path)
    _check(mount)
    roots = Roots(tables=read_tables())
    rows = trim_layers_of_mount(mount, roots)
    free = space_on(mount.mount_point).free_bytes_root
    devices = _devices(rows)
    before = {device.name: discarded_bytes(device) for device in devices}
    used = {device.name: used_bytes(device) for device in devices}
    sync_file_system(mount.mount_point)
    passes, refused, forced = _passes(mount, free, force=force)
    return Trimmed(
        mount_point=str(mount.mount_point),
        fs_type=mount.fs_type,
        free=free,
        passes=passes,
        forced=forced,
        layers=tuple(_sent(row, before, used) for row in rows if row.layer != "schedule"),
        stops=_named(blocking_layer(rows)),
        refused=refused,
    )


def _check(mount: Mount) -> None:
    if mount.fs_type in PSEUDO or is_network(mount.fs_type) or mount.fs_type in {"tmpfs", "ramfs"}:
        raise TargetError(
            f"{mount.mount_point} is {mount.fs_type}, which stands on no drive of this machine: "
            "give a directory on a drive"
        )


def _passes(mount: Mount, free: int, *, force: bool) -> tuple[tuple[int, ...], str, bool]:
    try:
        first = trim_free(mount.mount_point, 0, _ALL)
    except OSError as error:
        return (), _refused(mount, error), False
    if not force or mount.fs_type not in _FORGETS or first >= _ENOUGH * free:
        return (first,), "", False
    try:
        trim_free(mount.mount_point, 0, _ALL, _group_bytes(mount))
        return (first, trim_free(mount.mount_point, 0, _ALL)), "", True
    except OSError:  # it has groups of another size (bigalloc): it remembers on
        return (first,), "", False


def _group_bytes(mount: Mount) -> int:
    """A whole group of ext4: as many blocks as one block has bits. No free piece is longer."""
    block = os.statvfs(mount.mount_point).f_frsize
    return 8 * block * block


def _refused(mount: Mount, error: OSError) -> str:
    if error.errno == _EPERM:
        raise TargetError(
            f"{mount.mount_point}: trimming takes root; say sudo ssdlab trim {mount.mount_point}"
        ) from error
    if error.errno == _EROFS:
        raise TargetError(
            f"{mount.mount_point} is mounted read-only: nothing there is discarded"
        ) from error
    if error.errno in {_EOPNOTSUPP, _ENOTTY}:
        return "the file system cannot trim here: it, or a layer below, takes no discards"
    return f"the file system refused ({os.strerror(error.errno or 0)})"


def _devices(rows: Sequence[TrimLayer]) -> list[BlockDevice]:
    found = (device_by_name(row.device) for row in rows)
    return [device for device in found if device is not None]


def _sent(row: TrimLayer, before: dict[str, int | None], used: dict[str, int | None]) -> Sent:
    device = device_by_name(row.device)
    now = None if device is None else discarded_bytes(device)
    then = before.get(row.device)
    return Sent(
        layer=row.layer,
        device=row.device,
        passes=row.passes,
        why=row.why,
        below_file=row.below_file,
        sent=None if now is None or then is None else now - then,
        used_before=used.get(row.device),
        used_after=None if device is None else used_bytes(device),
    )


def _is_bottom(row: Sent) -> bool:
    return row.layer in {"drive", "USB", "loop"} and not row.below_file


def _named(row: TrimLayer | None) -> str | None:
    return None if row is None else f"{row.device} ({row.layer})"

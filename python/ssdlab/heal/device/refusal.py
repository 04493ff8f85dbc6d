"""Whether a device may be rewritten in place, and whether a file may hold the journal for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError
from ssdlab.heal.device.allocated import EXT
from ssdlab.heal.device.journal import JOURNAL_BYTES
from ssdlab.storage_stack.blockdev import (
    SYS,
    BlockDevice,
    device_by_name,
    directory_of,
    partitions_of,
)
from ssdlab.storage_stack.filesystem import COPY_ON_WRITE, is_network
from ssdlab.storage_stack.layers import (
    Tables,
    backing_mount,
    drives_of_mount,
    drives_under,
    layers_under,
)
from ssdlab.storage_stack.mounts import PROC, mount_of
from ssdlab.storage_stack.pseudofile import read_text
from ssdlab.storage_stack.signatures import signatures
from ssdlab.storage_stack.space import space_on
from ssdlab.storage_stack.trim.tables import read_tables

_PARITY: Final = frozenset({"raid4", "raid5", "raid6"})
_STRIPE: Final = "a power cut while a stripe is written could damage the rest of the stripe"
_SHARED_SPACE: Final = frozenset({"thin", "thin-pool", "vdo", "snapshot", "snapshot-origin", "era"})
_ADVICE: Final = {
    "btrfs": "it copies on write, so nothing is rewritten in place: mount it and heal its files",
    "crypto_LUKS": "it is encrypted: open it, and give its device in /dev/mapper",
    "LVM2_member": "it belongs to a volume group: give a logical volume",
    "linux_raid_member": "it belongs to a RAID: give the array",
    "swap": "it is swap space, which has no files",
    "zfs_member": "it belongs to a ZFS pool, which copies on write",
    "dos": "it has partitions: give one of them",
    "gpt": "it has partitions: give one of them",
}


def require_root() -> None:
    """Refuses a user without root privileges.

    Raises:
        TargetError: not root.
    """
    if os.geteuid() != 0:
        raise TargetError("rewriting a device in place needs root: run it with sudo")


def kind_on(device: BlockDevice, sys: Path = SYS) -> str:
    """The file system on a device: ext2, ext3, ext4 or xfs.

    Raises:
        TargetError: it has none, several, or an unsupported one; the message says what to do.
    """
    if partitions_of(device, sys):
        raise TargetError(f"{device.node} has partitions: give one of them")
    kinds = list(dict.fromkeys(each.kind for each in signatures(device, sys)))
    for kind in kinds:
        if kind in _ADVICE:
            raise TargetError(f"{device.node} holds {kind}: {_ADVICE[kind]}")
    if len(kinds) == 1 and kinds[0] in {*EXT, "xfs"}:
        return kinds[0]
    holds = " and ".join(kinds) or "no known file system"
    raise TargetError(
        f"{device.node} holds {holds}: only ext2, ext3, ext4 and xfs can be healed as a whole"
    )


def require_rewritable(
    device: BlockDevice, sys: Path = SYS, proc: Path = PROC, tables: Tables | None = None
) -> None:
    """Refuses a device whose layers make writing in place unsafe, or allocate shared space for it.

    Raises:
        TargetError: it is read-only, zoned, on a RAID with parity, thin, a snapshot, or backed by
            a file on a copy-on-write file system.
    """
    known = read_tables() if tables is None else tables
    for layer in layers_under(device, sys, proc):
        for reason in _reasons(layer.device, known, sys, proc):
            raise TargetError(f"{device.node} was left unchanged: {reason}")


def require_journal_elsewhere(
    journal: Path, device: BlockDevice, sys: Path = SYS, proc: Path = PROC
) -> None:
    """Refuses a journal in memory, on a network file system, or on the device's own drive.

    Raises:
        TargetError: one of these, or its directory does not exist or is full.
    """
    if not journal.parent.is_dir():
        raise TargetError(
            f"{journal.parent} is not a directory: give --journal a path on another drive"
        )
    mount = mount_of(journal.parent, proc)
    drives = drives_of_mount(mount, sys, proc)
    if not drives or is_network(mount.fs_type):
        raise TargetError(
            f"{journal} would be on {mount.fs_type}, which is not on a drive of this machine: the "
            "journal must survive a power cut; give --journal a path on another drive"
        )
    own = {each.name for each in (*drives_under(device, sys, proc), device)}
    same = own & {each.name for each in drives}
    if same:
        raise TargetError(
            f"{journal} is on the same drive as {device.node} ({', '.join(sorted(same))}): give "
            "--journal a path on another drive"
        )
    space = space_on(journal.parent)
    if not journal.exists() and space.free_bytes < 2 * JOURNAL_BYTES:
        raise TargetError(
            f"{journal.parent} has less than {2 * JOURNAL_BYTES >> 20} MiB free: free some space"
        )


def _reasons(device: BlockDevice, tables: Tables, sys: Path, proc: Path) -> Iterator[str]:
    name, here = device.name, directory_of(device, sys)
    if device.read_only:
        yield f"{name} is read-only"
    whole = device_by_name(device.whole_disk, sys)
    queue = directory_of(whole, sys) / "queue" if whole else here / "queue"
    if read_text(queue / "zoned") not in {None, "none"}:
        yield f"{name} is zoned: its zones can only be written in order"
    level = read_text(here / "md" / "level")
    if level in _PARITY:
        yield f"{name} is {level}: {_STRIPE}"
    mapped = read_text(here / "dm" / "name") or ""
    shared = _SHARED_SPACE.intersection(tables.get(mapped, ()))
    parity = [word for word in tables.get(mapped, ()) if word[:5] in _PARITY]
    if parity:
        yield f"{mapped} is {parity[0]}: {_STRIPE}"
    if shared:
        yield f"{mapped} is {', '.join(sorted(shared))}: a rewrite takes the space a second time"
    mount = backing_mount(device, sys, proc)
    if mount is not None and mount.fs_type in COPY_ON_WRITE:
        yield f"{name} is backed by a file on {mount.fs_type}, which copies on write"

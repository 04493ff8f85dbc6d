"""Warnings about the file system under a test file, and sets of file systems by kind.

ssdlab writes a file, overwrites it at random offsets with direct I/O, reads it again, and
attributes a slower read to the drive. Each warning here is a case in which the file system may be
the cause instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from ssdlab.storage_stack.blockdev import SYS
from ssdlab.storage_stack.mounts import PROC, UNSEEN, Mount
from ssdlab.storage_stack.pseudofile import read_text
from ssdlab.warning import MeasurementWarning

MEMORY: Final = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "afs", "lustre", "gfs2", "ocfs2"}
    | {"glusterfs", "beegfs", "gpfs", "vboxsf", "vmhgfs", "prl_fs", "orangefs", "pvfs2"}
)
COPY_ON_WRITE: Final = frozenset({"btrfs", "zfs", "bcachefs"})
LOG_STRUCTURED: Final = frozenset({"f2fs", "nilfs2"})
STACKED: Final = frozenset({"overlay", "aufs", "ecryptfs", "unionfs", "shiftfs"})
IN_PLACE: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "jfs", "vfat", "exfat", "ntfs3"})
READ_ONLY: Final = frozenset({"squashfs", "erofs", "iso9660", "udf", "cramfs", "romfs"})
PSEUDO: Final = frozenset(
    {"proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "bpf"}
    | {"devpts", "mqueue", "pstore", "efivarfs", "binfmt_misc", "fusectl", "autofs", "nsfs"}
)
_EXT: Final = frozenset({"ext2", "ext3", "ext4"})


def mount_warnings(mount: Mount, proc: Path = PROC, sys: Path = SYS) -> list[MeasurementWarning]:
    """Warnings about a measurement on this mount; fatal ones first.

    Codes: memory, pseudo, network, read-only (these are fatal); stacked, data-journal,
    log-structured, copy-on-write, compressed, no-barrier, dax, synchronous, unknown-filesystem,
    unseen-mount.
    """
    live = replace(mount, options=live_options(mount, proc, sys))
    warnings = [warning for check in _CHECKS if (warning := check(live)) is not None]
    return sorted(warnings, key=lambda warning: not warning.fatal)


def live_options(mount: Mount, proc: Path = PROC, sys: Path = SYS) -> tuple[str, ...]:
    """The options of mountinfo and, on ext2 to ext4, those of /proc/fs/ext4.

    mountinfo omits options that equal the superblock's defaults: after `tune2fs -o journal_data`,
    it does not show data=journal (checked on Linux 6.18).
    """
    if mount.fs_type not in _EXT:
        return mount.options
    link = sys / "dev" / "block" / f"{mount.major}:{mount.minor}"
    text = read_text(proc / "fs" / "ext4" / link.resolve().name / "options") or ""
    # "rw" or "ro" in this file is the superblock's, not the mount's.
    return (*mount.options, *text.split())


def is_network(fs_type: str) -> bool:
    """Whether another machine, or the host of this virtual machine, serves the file system."""
    return fs_type in NETWORK or fs_type in {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs"}


def _memory(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in MEMORY:
        return None
    sentence = f"{mount.mount_point} is {mount.fs_type}, which is in memory and not on a drive."
    return MeasurementWarning("memory", sentence, fatal=True)


def _pseudo(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in PSEUDO:
        return None
    sentence = f"{mount.mount_point} is {mount.fs_type}, a file system of the kernel without data."
    return MeasurementWarning("pseudo", sentence, fatal=True)


def _network(mount: Mount) -> MeasurementWarning | None:
    if not is_network(mount.fs_type):
        return None
    sentence = (
        f"{mount.mount_point} is {mount.fs_type}: the drive belongs to another machine or the "
        "host, and the test would measure the network and that machine's cache."
    )
    return MeasurementWarning("network", sentence, fatal=True)


def _read_only(mount: Mount) -> MeasurementWarning | None:
    if not mount.has("ro") and mount.fs_type not in READ_ONLY:
        return None
    sentence = f"{mount.mount_point} is mounted read-only, so no test file can be written."
    return MeasurementWarning("read-only", sentence, fatal=True)


def _stacked(mount: Mount) -> MeasurementWarning | None:
    is_fuse = mount.fs_type in {"fuse", "fuseblk"} or mount.fs_type.startswith("fuse.")
    if is_network(mount.fs_type) or not (mount.fs_type in STACKED or is_fuse):
        return None
    below = mount.option("upperdir") or mount.source
    sentence = (
        f"{mount.fs_type} is stacked on another file system ({below}): results include its "
        "overhead and cache, and direct I/O may not reach the drive; use a directory on the lower "
        "file system."
    )
    return MeasurementWarning("stacked", sentence)


def _data_journal(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in _EXT or mount.option("data") != "journal":
        return None
    sentence = (
        "With data=journal, ext4 silently turns direct I/O into page-cache I/O and writes data "
        "twice: reads come from memory, and random writes reach the drive as a log; mount it with "
        "data=ordered."
    )
    return MeasurementWarning("data-journal", sentence)


def _log_structured(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in LOG_STRUCTURED:
        return None
    sentence = (
        f"{mount.fs_type} is log-structured: random overwrites reach the drive sequentially and "
        "fragment the file, so slower reads may be due to its layout; compare with ext4 or XFS."
    )
    return MeasurementWarning("log-structured", sentence)


def _copy_on_write(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in COPY_ON_WRITE or mount.has("nodatacow"):
        return None
    sentence = (
        f"{mount.fs_type} copies on write: each overwrite goes to a new address, which fragments "
        "the file and changes the access pattern that the drive sees"
    )
    if mount.fs_type == "zfs":
        sentence += ", and ZFS also serves direct reads from its own cache (ARC)"
    remedy = "chattr +C on the directory, " if mount.fs_type == "btrfs" else ""
    return MeasurementWarning("copy-on-write", f"{sentence}: use {remedy}ext4 or XFS.")


def _compressed(mount: Mount) -> MeasurementWarning | None:
    cause = _compression(mount)
    if cause is None:
        return None
    sentence = (
        f"{cause}: the drive gets fewer bytes than the test writes, and direct I/O may fall back "
        "to the page cache; mount without compression, or rely only on tests with random data."
    )
    return MeasurementWarning("compressed", sentence)


def _compression(mount: Mount) -> str | None:
    names = {
        "btrfs": ("compress", "compress-force"),
        "f2fs": ("compress_extension", "compress_algorithm"),
        "bcachefs": ("compression", "background_compression"),
    }.get(mount.fs_type, ())
    for name in names:
        value = mount.option(name)
        if value is not None and value not in {"no", "none", "off"}:
            return f"{mount.fs_type} compresses ({name}={value})"
    return (
        "zfs compresses unless its dataset has compression=off" if mount.fs_type == "zfs" else None
    )


def _no_barrier(mount: Mount) -> MeasurementWarning | None:
    if not mount.has("nobarrier") and mount.option("barrier") not in {"0", "none", "off"}:
        return None
    sentence = (
        "Barriers are off: fsync sends no flush to the drive, so it is cheap and does "
        "not protect data; mount with barriers."
    )
    return MeasurementWarning("no-barrier", sentence)


def _dax(mount: Mount) -> MeasurementWarning | None:
    if mount.option("dax") not in {"", "always"}:
        return None
    sentence = (
        "With the mount option dax, files are mapped directly to persistent memory and the test "
        "does no block I/O: mount with dax=never."
    )
    return MeasurementWarning("dax", sentence)


def _synchronous(mount: Mount) -> MeasurementWarning | None:
    if not mount.has("sync"):
        return None
    sentence = (
        "With the mount option sync, each write waits for the drive, so writes are slower than the "
        "drive: mount without it."
    )
    return MeasurementWarning("synchronous", sentence)


def _unseen(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type != UNSEEN:
        return None
    sentence = (
        f"The mount of {mount.mount_point} is not in /proc/self/mountinfo, as in a chroot, so its "
        "file system and options are unknown: run ssdlab where the mount is listed."
    )
    return MeasurementWarning("unseen-mount", sentence)


def _unknown(mount: Mount) -> MeasurementWarning | None:
    known = MEMORY | COPY_ON_WRITE | LOG_STRUCTURED | STACKED | IN_PLACE | READ_ONLY | PSEUDO
    is_fuse = mount.fs_type.startswith("fuse")
    if mount.fs_type in known or is_fuse or is_network(mount.fs_type) or mount.fs_type == UNSEEN:
        return None
    sentence = (
        f"ssdlab does not know {mount.fs_type}, so where it writes overwritten data is unknown: "
        "compare with ext4 or XFS."
    )
    return MeasurementWarning("unknown-filesystem", sentence)


_CHECKS: Final[tuple[Callable[[Mount], MeasurementWarning | None], ...]] = (
    *(_memory, _pseudo, _network, _read_only),
    *(_stacked, _data_journal, _log_structured, _copy_on_write, _compressed),
    *(_no_barrier, _dax, _synchronous, _unknown, _unseen),
)

"""What the kind of a file system does to the meaning of a read-after-random-write measurement.

The measurement in mind: write a file, overwrite it at random places with direct I/O, and read it
again; what got slower is blamed on the drive. Each warning is a way in which that blame is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from ssdlab.storage_stack.mounts import PROC, UNSEEN, Mount
from ssdlab.storage_stack.pseudofile import read_text
from ssdlab.warning import MeasurementWarning

SYS = Path("/sys")

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
    """Warnings about a read-after-random-write measurement on this mount; the worst first.

    Codes: memory, pseudo, network, read-only (these are fatal); stacked, data-journal,
    log-structured, copy-on-write, compressed, no-barrier, dax, synchronous, unknown-filesystem,
    unseen-mount.
    """
    seen = replace(mount, options=live_options(mount, proc, sys))
    found = [warning for examine in _EXAMINERS if (warning := examine(seen)) is not None]
    return sorted(found, key=lambda warning: not warning.fatal)


def live_options(mount: Mount, proc: Path = PROC, sys: Path = SYS) -> tuple[str, ...]:
    """Options in force: those of mountinfo and, on ext4, those only /proc/fs/ext4 tells.

    mountinfo hides what equals the default in the superblock, so `tune2fs -o journal_data`
    puts data=journal in force and it is not seen there (tried on Linux 6.18).
    """
    if mount.fs_type not in _EXT:
        return mount.options
    link = sys / "dev" / "block" / f"{mount.major}:{mount.minor}"
    text = read_text(proc / "fs" / "ext4" / link.resolve().name / "options") or ""
    # "rw" and "ro" tell of the super block there; the mount's own first word stays the first.
    return (*mount.options, *text.split())


def is_network(fs_type: str) -> bool:
    """Whether the drive is behind another machine's or the host's file system."""
    return fs_type in NETWORK or fs_type in {"fuse.sshfs", "fuse.glusterfs", "fuse.s3fs"}


def _memory(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in MEMORY:
        return None
    sentence = f"{mount.mount_point} is {mount.fs_type}: it lives in memory and is not on a drive."
    return MeasurementWarning("memory", sentence, fatal=True)


def _pseudo(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in PSEUDO:
        return None
    sentence = f"{mount.mount_point} is {mount.fs_type}: it holds no files, the kernel makes them."
    return MeasurementWarning("pseudo", sentence, fatal=True)


def _network(mount: Mount) -> MeasurementWarning | None:
    if not is_network(mount.fs_type):
        return None
    sentence = (
        f"{mount.mount_point} is {mount.fs_type}: the drive is behind another machine or the host, "
        "whose cache and network would be measured."
    )
    return MeasurementWarning("network", sentence, fatal=True)


def _read_only(mount: Mount) -> MeasurementWarning | None:
    if not mount.has("ro") and mount.fs_type not in READ_ONLY:
        return None
    sentence = f"{mount.mount_point} is mounted read-only: no test file can be written."
    return MeasurementWarning("read-only", sentence, fatal=True)


def _stacked(mount: Mount) -> MeasurementWarning | None:
    is_fuse = mount.fs_type in {"fuse", "fuseblk"} or mount.fs_type.startswith("fuse.")
    if is_network(mount.fs_type) or not (mount.fs_type in STACKED or is_fuse):
        return None
    below = mount.option("upperdir") or mount.source
    sentence = (
        f"{mount.fs_type} stands on another file system ({below}): its own cost and cache are part "
        "of each number, and whether direct I/O reaches the drive depends on what is below."
    )
    return MeasurementWarning("stacked", sentence)


def _data_journal(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in _EXT or mount.option("data") != "journal":
        return None
    sentence = (
        "data=journal: ext4 silently turns direct I/O into page-cache I/O and writes data twice, "
        "so reads come from memory and random writes reach the drive as a log."
    )
    return MeasurementWarning("data-journal", sentence)


def _log_structured(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in LOG_STRUCTURED:
        return None
    sentence = (
        f"{mount.fs_type} is log-structured: random overwrites reach the drive in sequence and the "
        "file itself is scattered, so what slows down is its layout as much as the flash."
    )
    return MeasurementWarning("log-structured", sentence)


def _copy_on_write(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type not in COPY_ON_WRITE or mount.has("nodatacow"):
        return None
    sentence = (
        f"{mount.fs_type} copies on write: each overwrite goes to a new address, so the file "
        "itself is fragmented and the drive sees another pattern than the one asked for"
    )
    own_cache = "; ZFS also reads from its own cache (ARC), direct I/O or not"
    return MeasurementWarning(
        "copy-on-write", sentence + (own_cache if mount.fs_type == "zfs" else "") + "."
    )


def _compressed(mount: Mount) -> MeasurementWarning | None:
    how = _compression(mount)
    if how is None:
        return None
    sentence = (
        f"{how}: the drive gets fewer bytes than were written, and direct I/O may fall back to "
        "the page cache; only random data is measured truly."
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
    return "zfs compresses unless told not to" if mount.fs_type == "zfs" else None


def _no_barrier(mount: Mount) -> MeasurementWarning | None:
    if not mount.has("nobarrier") and mount.option("barrier") not in {"0", "none", "off"}:
        return None
    sentence = "Barriers are off: fsync sends no flush, so it costs little and protects nothing."
    return MeasurementWarning("no-barrier", sentence)


def _dax(mount: Mount) -> MeasurementWarning | None:
    if mount.option("dax") not in {"", "always"}:
        return None
    sentence = "dax: files are mapped straight to persistent memory; there is no block I/O."
    return MeasurementWarning("dax", sentence)


def _synchronous(mount: Mount) -> MeasurementWarning | None:
    if not mount.has("sync"):
        return None
    sentence = "sync: each write waits for the drive, so writes are slower than the drive is."
    return MeasurementWarning("synchronous", sentence)


def _unseen(mount: Mount) -> MeasurementWarning | None:
    if mount.fs_type != UNSEEN:
        return None
    sentence = (
        f"{mount.mount_point} lies on no mount that this process sees (/proc/self/mountinfo), as "
        "in a chroot: the kind of file system and its options are unknown."
    )
    return MeasurementWarning("unseen-mount", sentence)


def _unknown(mount: Mount) -> MeasurementWarning | None:
    known = MEMORY | COPY_ON_WRITE | LOG_STRUCTURED | STACKED | IN_PLACE | READ_ONLY | PSEUDO
    is_fuse = mount.fs_type.startswith("fuse")
    if mount.fs_type in known or is_fuse or is_network(mount.fs_type) or mount.fs_type == UNSEEN:
        return None
    sentence = f"ssdlab does not know {mount.fs_type}: where it puts overwritten data is unknown."
    return MeasurementWarning("unknown-filesystem", sentence)


_EXAMINERS: Final[tuple[Callable[[Mount], MeasurementWarning | None], ...]] = (
    *(_memory, _pseudo, _network, _read_only),
    *(_stacked, _data_journal, _log_structured, _copy_on_write, _compressed),
    *(_no_barrier, _dax, _synchronous, _unknown, _unseen),
)

"""The mount that holds a path: by the kernel's mount id, or by the longest prefix in mountinfo.

Source: proc(5), /proc/pid/mountinfo and /proc/pid/fdinfo.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ssdlab.errors import TargetError
from ssdlab.storage_stack.pseudofile import unescape

PROC = Path("/proc")
UNSEEN = "unseen"
"""`fs_type` of a mount that this process cannot see."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo.

    `options` holds the options of the mount, then those of the superblock; "ro" may be in either.
    `source` is a device path, "tmpfs", "host:/export" ... `major` is 0 for anonymous device numbers
    (btrfs, tmpfs, NFS ...); `source` then names the device, if any.
    """

    mount_id: int
    mount_point: Path
    fs_type: str
    source: str
    options: tuple[str, ...]
    major: int
    minor: int

    def option(self, name: str) -> str | None:
        """Value of the last option `name`: "" for one without a value, None if absent."""
        for option in reversed(self.options):
            key, _, value = option.partition("=")
            if key == name:
                return value
        return None

    def has(self, name: str) -> bool:
        """Whether option `name` is set, with or without a value."""
        return self.option(name) is not None


def read_mounts(proc: Path = PROC) -> tuple[Mount, ...]:
    """All mounts in this process's namespace, in the kernel's order (later mounts cover earlier).

    Raises:
        TargetError: mountinfo cannot be read.
    """
    try:
        text = (proc / "self" / "mountinfo").read_text("utf-8", "surrogateescape")
    except OSError as error:
        reason = f"{error.filename} cannot be read ({error.strerror})"
        raise TargetError(f"{reason}, so the mounts are unknown: mount /proc") from error
    return tuple(_parse(line) for line in text.split("\n") if line)


def _parse(line: str) -> Mount:
    # Split at single spaces: a field may be empty (a source of "").
    before, _, after = line.partition(" - ")
    mount_id, _, number, _, point, options = before.split(" ")[:6]
    fs_type, source, super_options = after.split(" ")[:3]
    major, minor = number.split(":")
    return Mount(
        mount_id=int(mount_id),
        mount_point=Path(unescape(point)),
        fs_type=fs_type,
        source=unescape(source),
        options=tuple(unescape(option) for option in f"{options},{super_options}".split(",")),
        major=int(major),
        minor=int(minor),
    )


def mount_of(path: Path, proc: Path = PROC) -> Mount:
    """The mount that holds `path`, or its nearest existing parent if it does not exist yet.

    Follows symbolic links. Uses the mount id of fdinfo, which is exact for bind mounts, stacked
    mounts and btrfs subvolumes. A captured `proc` has no fdinfo: there the longest mount point that
    is a prefix wins, preferably one with the path's device number. In a chroot the mount may not be
    listed: the result then has `fs_type` UNSEEN and the device number from stat(2).

    Raises:
        TargetError: the path cannot be reached.
    """
    existing = _nearest_existing(path)
    try:
        mounts = read_mounts(proc)
    except TargetError:  # no /proc
        mounts = ()
    mount_id = _mount_id(existing, proc)
    for mount in mounts:
        if mount.mount_id == mount_id:
            return mount
    return longest_prefix(existing, mounts, existing.stat().st_dev) or _unseen(existing)


def _unseen(path: Path) -> Mount:
    number = path.stat().st_dev
    top = path
    while top != top.parent and top.parent.stat().st_dev == number:
        top = top.parent
    return Mount(-1, top, UNSEEN, "unknown", (), os.major(number), os.minor(number))


def longest_prefix(path: Path, mounts: tuple[Mount, ...], device: int | None) -> Mount | None:
    """The mount with the longest mount point that is a prefix of `path` (absolute, resolved).

    Prefers mounts with the device number `device` (st_dev). Of equally long mount points the
    last one wins. None if no mount matches.
    """
    above = [mount for mount in mounts if path.is_relative_to(mount.mount_point)]
    same = [m for m in above if device is not None and os.makedev(m.major, m.minor) == device]
    best = None
    for mount in same or above:
        if best is None or len(mount.mount_point.parts) >= len(best.mount_point.parts):
            best = mount
    return best


def _nearest_existing(path: Path) -> Path:
    # Python 3.13's resolve() and exists() ignore a loop of symbolic links; stat() reports it.
    resolved = Path(os.path.realpath(path))
    for candidate in (resolved, *resolved.parents):
        try:
            candidate.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            message = f"{path} cannot be reached ({error}): give an accessible path"
            raise TargetError(message) from error
        return candidate
    raise TargetError(f"{path} and its parents do not exist: give an existing path")


def _mount_id(path: Path, proc: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise TargetError(
            f"{path} cannot be opened ({error.strerror}): give an accessible path"
        ) from error
    try:
        text = (proc / "self" / "fdinfo" / str(descriptor)).read_text()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields["mnt_id"]) if "mnt_id" in fields else None

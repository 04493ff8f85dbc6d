"""Which mount holds a path: the kernel's own answer, or the longest prefix in mountinfo.

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
"""The kind of a file system whose mount this process cannot see."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo.

    `options` holds the options of the mount first, then those of the file system ("ro" among
    the first is this mount's, among the second the file system's). `source` is what was
    mounted: a device path, "tmpfs", "host:/export" ... `major` is 0 where the file system made
    its own device number (btrfs, tmpfs, nfs ...); `source` then tells the device, if any.
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
    """All mounts this process can see, in the kernel's order (a later one covers an earlier).

    Raises:
        TargetError: there is no mountinfo.
    """
    try:
        text = (proc / "self" / "mountinfo").read_text("utf-8", "surrogateescape")
    except OSError as error:
        reason = f"{error.filename} cannot be read ({error.strerror})"
        raise TargetError(f"{reason}, so what is mounted is unknown: mount /proc") from error
    return tuple(_parsed(line) for line in text.split("\n") if line)


def _parsed(line: str) -> Mount:
    # A field may be empty (a source of ""), so the separator is one blank and not white space.
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
    """The mount that holds `path`, or will: of a path yet to be made, its nearest parent counts.

    Symbolic links are followed. Asks the kernel for the mount id (exact, also for bind mounts,
    mounts on top of mounts and btrfs subvolumes); in a captured `proc` that cannot answer, the
    longest mount point that is a prefix wins, among those with the path's device number if any.
    In a chroot no mount may be listed that holds it: the answer then has the kind `UNSEEN` and the
    device number that stat(2) gives.

    Raises:
        TargetError: the path cannot be reached.
    """
    existing = _nearest_existing(path)
    try:
        mounts = read_mounts(proc)
    except TargetError:  # no /proc: the path is there all the same
        mounts = ()
    mount_id = _mount_id(existing, proc)
    for mount in mounts:
        if mount.mount_id == mount_id:
            return mount
    found = longest_prefix(existing, mounts, existing.stat().st_dev)
    return found or _unseen(existing)


def _unseen(path: Path) -> Mount:
    number = path.stat().st_dev
    top = path
    while top != top.parent and top.parent.stat().st_dev == number:
        top = top.parent
    return Mount(-1, top, UNSEEN, "unknown", (), os.major(number), os.minor(number))


def longest_prefix(path: Path, mounts: tuple[Mount, ...], device: int | None) -> Mount | None:
    """The last of the mounts with the longest mount point above `path` (absolute, resolved).

    Mounts whose number is `device` (a st_dev) are preferred; None if nothing is above.
    """
    above = [mount for mount in mounts if path.is_relative_to(mount.mount_point)]
    same = [m for m in above if device is not None and os.makedev(m.major, m.minor) == device]
    best = None
    for mount in same or above:
        if best is None or len(mount.mount_point.parts) >= len(best.mount_point.parts):
            best = mount
    return best


def _nearest_existing(path: Path) -> Path:
    try:
        resolved = path.resolve()
        for candidate in (resolved, *resolved.parents):
            if candidate.exists():
                return candidate
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        raise TargetError(f"{path} cannot be reached ({error}): give a path you may use") from error
    raise TargetError(f"{path} does not exist, nor any directory above it: give an existing one")


def _mount_id(path: Path, proc: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise TargetError(f"{path} cannot be opened ({error.strerror})") from error
    try:
        text = (proc / "self" / "fdinfo" / str(descriptor)).read_text()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields["mnt_id"]) if "mnt_id" in fields else None

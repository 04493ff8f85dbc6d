"""Does a file system send discards, and does anything ask it to?

Two ways lead to a discard: the mount option `discard` (as files are deleted) and FITRIM, which
fstrim calls, mostly by a weekly timer. Source: mount(8), fstrim(8), systemd.timer(5).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ssdlab.storage_stack.filesystem import (
    MEMORY,
    PSEUDO,
    READ_ONLY,
    STACKED,
    is_network,
    live_options,
)
from ssdlab.storage_stack.mounts import Mount
from ssdlab.storage_stack.pseudofile import read_text, unescape
from ssdlab.storage_stack.trim.passage import Passage, Passes, Roots

DISCARDING: Final = frozenset(
    {"ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "vfat", "exfat", "ntfs3", "nilfs2"}
    | {"gfs2", "ocfs2", "bcachefs"}
)
"""File systems that have FITRIM, the option `discard`, or both."""
_HERE: Final = Roots()
_TIMER: Final = "timers.target.wants/fstrim.timer"


def file_system_row(mount: Mount) -> Passage:
    """Whether the file system can send discards at all."""
    passes, why = _can_send(mount)
    return Passage("file system", str(mount.mount_point), passes, why)


def _can_send(mount: Mount) -> tuple[Passes, str]:
    kind = mount.fs_type
    if mount.has("ro"):
        return "no", f"{kind}, mounted read-only: nothing is deleted and nothing is discarded"
    if kind in DISCARDING:
        return "yes", f"{kind} discards what is free"
    if kind in MEMORY | PSEUDO | READ_ONLY:
        return "no", f"{kind} stands on no drive, or frees nothing"
    if is_network(kind):
        return "no", f"{kind}: the drive is another machine's or the host's affair"
    if kind in STACKED or kind.startswith("fuse"):
        why = f"{kind} stands on another file system: ask about that one"
    elif kind == "zfs":
        why = "zfs discards where its pool has autotrim=on, or by zpool trim"
    else:
        why = f"whether {kind} discards is not known here"
    return "unknown", why


def schedule_row(mount: Mount, roots: Roots) -> Passage:
    """Whether anything asks the file system to discard without being told to each time."""
    passes, why = _is_asked(mount, roots)
    return Passage("schedule", str(mount.mount_point), passes, why)


def discards_online(mount: Mount, roots: Roots = _HERE) -> str:
    """The option by which a mount discards as files are deleted; "" where it does not."""
    options = live_options(mount, roots.proc, roots.sys)
    words = {"discard", "nodiscard", "discard=sync", "discard=async"}
    chosen = [option for option in options if option in words]
    return chosen[-1] if chosen and chosen[-1] != "nodiscard" else ""


def _is_asked(mount: Mount, roots: Roots) -> tuple[Passes, str]:
    online = discards_online(mount, roots)
    if online:
        later = ", which may lag by minutes" if online == "discard=async" else ""
        return "yes", f"mounted with {online}: as files are deleted{later}"
    if (roots.etc / "cron.weekly" / "fstrim").exists():
        return "yes", "a weekly cron job runs fstrim"
    without = "mounted without discard"
    if not _timer_is_enabled(roots.etc):
        return "no", f"{without}, and fstrim.timer is not enabled: only an fstrim by hand"
    if not (roots.run / "systemd" / "system").is_dir():
        return "no", f"{without}; fstrim.timer is enabled, but systemd does not run here"
    skipped = _skipped_by_timer(mount, roots.etc)
    if skipped:
        return "no", f"{without}; fstrim.timer is enabled, but {skipped}"
    return "yes", f"{without}; fstrim.timer is enabled: once a week"


def _timer_is_enabled(etc: Path) -> bool:
    units = etc / "systemd" / "system"
    mask = units / "fstrim.timer"
    if mask.is_symlink() and str(mask.readlink()) == "/dev/null":
        return False
    link = units / _TIMER
    return link.is_symlink() or link.exists()


def _skipped_by_timer(mount: Mount, etc: Path) -> str:
    """Why the timer's fstrim leaves this mount out, or "".

    It goes by fstab; by what is mounted only where fstab has no entries (fstrim --listed-in).
    """
    text = read_text(etc / "fstab") or ""
    lines = [line.split() for line in text.splitlines() if line.strip()[:1] not in {"", "#"}]
    entries = [fields for fields in lines if len(fields) >= 3]
    if not entries:
        return ""
    for fields in entries:
        if Path(unescape(fields[1])) == mount.mount_point:
            options = fields[3].split(",") if len(fields) > 3 else []
            return "fstab says X-fstrim.notrim" if "X-fstrim.notrim" in options else ""
    return "it trims only what fstab names, and this mount is not there"

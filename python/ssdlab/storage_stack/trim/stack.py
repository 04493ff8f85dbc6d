"""The layers under a mount or a device, from the top down, and the one that blocks a TRIM.

A file system discards when files are deleted (mount option `discard`), or on FITRIM, which fstrim
calls, usually from a weekly timer. Source: mount(8), fstrim(8), systemd.timer(5).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ssdlab.snapshot import Pool, TrimLayer
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.filesystem import (
    MEMORY,
    PSEUDO,
    READ_ONLY,
    STACKED,
    is_network,
    live_options,
)
from ssdlab.storage_stack.layers import (
    LIVE,
    Roots,
    backing_mount,
    devices_of,
    directly_below,
    pool_of,
)
from ssdlab.storage_stack.mounts import Mount
from ssdlab.storage_stack.pseudofile import read_text, unescape
from ssdlab.storage_stack.trim.devices import Passes, device_layer

DISCARDING: Final = frozenset(
    {"ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "vfat", "exfat", "ntfs3", "nilfs2"}
    | {"gfs2", "ocfs2", "bcachefs"}
)
"""File systems with FITRIM, the mount option `discard`, or both."""
NO_SYSTEMD: Final = "systemd does not run here"
"""Why an enabled timer does not discard."""


def trim_layers_of_mount(mount: Mount, roots: Roots = LIVE) -> tuple[TrimLayer, ...]:
    """The layers: the schedule, the file system, and each device under it once, depth first."""
    layers = [schedule_layer(mount, roots), file_system_layer(mount, roots)]
    visited: set[str] = set()
    for device in devices_of(mount, roots):
        layers += _descend(device, roots, visited)
    return tuple(layers)


def trim_layers_of_device(device: BlockDevice, roots: Roots = LIVE) -> tuple[TrimLayer, ...]:
    """The device and each one under it once, depth first."""
    return tuple(_descend(device, roots, set()))


def _descend(device: BlockDevice, roots: Roots, visited: set[str]) -> list[TrimLayer]:
    if device.name in visited:
        return []
    visited.add(device.name)
    below = directly_below(device, roots.sys, roots.proc)
    layers: list[TrimLayer] = []
    mount = backing_mount(device, roots.sys, roots.proc)
    if mount is not None:
        layers += [schedule_layer(mount, roots), file_system_layer(mount, roots)]
    for lower in below:
        layers += _descend(lower, roots, visited)
    if device.transport == "loop":
        layers = [replace(layer, below_file=True) for layer in layers]
    return [device_layer(device, below, roots), *layers]


def blocking_layer(layers: Iterable[TrimLayer]) -> TrimLayer | None:
    """The topmost layer that itself blocks a TRIM, down to a loop device's file; None if none does.

    The schedule does not count: it says whether discards are sent, not whether they arrive.
    """
    for layer in layers:
        is_own = not (layer.of_below or layer.below_file or layer.layer == "schedule")
        if layer.passes == "no" and is_own:
            return layer
    return None


def file_system_layer(mount: Mount, roots: Roots = LIVE) -> TrimLayer:
    """Whether the file system can send discards."""
    passes, why = _can_send(mount, roots)
    return TrimLayer("file system", str(mount.mount_point), passes, why)


def _can_send(mount: Mount, roots: Roots) -> tuple[Passes, str]:
    kind = mount.fs_type
    pool = pool_of(mount, roots)
    if mount.has("ro"):
        return "no", f"{kind}, mounted read-only: nothing is deleted, so nothing is discarded"
    if kind in DISCARDING:
        return "yes", f"{kind} discards free space"
    if kind in MEMORY | PSEUDO | READ_ONLY:
        return "no", f"{kind} is not on a drive, or is read-only"
    if is_network(kind):
        return "no", f"{kind}: the drive belongs to another machine or the host, which must trim it"
    if kind in STACKED or kind.startswith("fuse"):
        why = f"{kind} is stacked on another file system: check that one"
    elif pool is not None:
        return _pool_can_send(pool)
    elif kind == "zfs":
        why = "zfs discards if its pool has autotrim=on, or on zpool trim; zpool printed nothing"
    else:
        why = f"ssdlab does not know whether {kind} discards"
    return "unknown", why


def _pool_can_send(pool: Pool) -> tuple[Passes, str]:
    without = [m.node for m in pool.members if m.trim == "trim unsupported" and m.role != "cache"]
    if without:
        return "no", f"zfs: trim is unsupported on {', '.join(without)} (zpool status -t)"
    states = {m.trim for m in pool.members if m.trim and m.role in {"data", "special", "log"}}
    last = f"; last: {', '.join(sorted(states))}" if states else ""
    return "yes", f"zfs frees space by autotrim and zpool trim{last}"


def schedule_layer(mount: Mount, roots: Roots) -> TrimLayer:
    """Whether discards happen automatically: by a mount option, a timer or a cron job."""
    decide = _is_scheduled if pool_of(mount, roots) is None else _pool_is_scheduled
    passes, why = decide(mount, roots)
    return TrimLayer("schedule", str(mount.mount_point), passes, why)


def discards_online(mount: Mount, roots: Roots = LIVE) -> str:
    """The mount option that discards when files are deleted, such as "discard=async"; or ""."""
    options = live_options(mount, roots.proc, roots.sys)
    words = {"discard", "nodiscard", "discard=sync", "discard=async"}
    chosen = [option for option in options if option in words]
    return chosen[-1] if chosen and chosen[-1] != "nodiscard" else ""


def _is_scheduled(mount: Mount, roots: Roots) -> tuple[Passes, str]:
    online = discards_online(mount, roots)
    if online:
        delay = ", with a delay of minutes" if online == "discard=async" else ""
        return "yes", f"mounted with {online}: as files are deleted{delay}"
    if (roots.etc / "cron.weekly" / "fstrim").exists():
        return "yes", "a weekly cron job runs fstrim"
    without = "mounted without discard"
    if not _timer_is_enabled(roots.etc):
        return "no", f"{without}, and fstrim.timer is not enabled: only a manual fstrim discards"
    if not (roots.run / "systemd" / "system").is_dir():
        return "no", f"{without}; fstrim.timer is enabled, but {NO_SYSTEMD}"
    skipped = _skipped_by_timer(mount, roots.etc)
    if skipped:
        return "no", f"{without}; fstrim.timer is enabled, but {skipped}"
    return "yes", f"{without}; fstrim.timer is enabled: once a week"


def _pool_is_scheduled(mount: Mount, roots: Roots) -> tuple[Passes, str]:
    pool = pool_of(mount, roots)
    assert pool is not None
    if pool.autotrim:
        return "yes", f"the pool {pool.name} has autotrim=on"
    off = "autotrim=off" if pool.autotrim is False else "autotrim is not known"
    for path in ("cron.d/zfsutils-linux", "cron.weekly/zfs-trim", "cron.monthly/zfs-trim"):
        text = read_text(roots.etc / path) or ""
        if "trim" in text:
            # Debian's job trims pools all of whose drives are NVMe, or that have its property set.
            return "yes", f"{off}; /etc/{path} trims, by default only pools on NVMe drives"
    return "no", f"{off}, and no cron job trims: only a manual zpool trim discards"


def _timer_is_enabled(etc: Path) -> bool:
    units = etc / "systemd" / "system"
    mask = units / "fstrim.timer"
    if mask.is_symlink() and str(mask.readlink()) == "/dev/null":
        return False
    link = units / "timers.target.wants" / "fstrim.timer"
    return link.is_symlink() or link.exists()


def _skipped_by_timer(mount: Mount, etc: Path) -> str:
    """Why the timer's fstrim skips this mount, or "".

    fstrim trims the entries of fstab, or all mounts if fstab has no entries (fstrim --listed-in).
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
    return "it trims only what fstab lists, and this mount is not in it"

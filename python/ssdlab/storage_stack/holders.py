"""What keeps a file system from being unmounted: processes, and mounts below it.

Source: proc(5), umount(8).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from ssdlab.storage_stack.mounts import PROC, read_mounts
from ssdlab.storage_stack.pseudofile import read_text


def holders(mount_point: Path, device: int, proc: Path = PROC) -> list[str]:
    """The uses of the file system with this device number (st_dev), as text: "bash (4711)".

    A process uses it by an open or mapped file, its working directory, its root or its program.
    Other users' processes are seen only as root.
    """
    return [*_processes(device, proc), *_mounts_below(mount_point, proc)]


def _processes(device: int, proc: Path) -> Iterator[str]:
    for process in sorted(proc.glob("[0-9]*"), key=lambda entry: int(entry.name)):
        if any(_is_on(link, device) for link in _links(process)):
            yield f"{read_text(process / 'comm') or '?'} ({process.name})"


def _links(process: Path) -> Iterator[Path]:
    """Links to what a process has open; none if it has ended or belongs to another user."""
    yield from (process / name for name in ("cwd", "root", "exe"))
    for folder in ("fd", "map_files"):
        with contextlib.suppress(OSError):
            yield from (process / folder).iterdir()


def _is_on(link: Path, device: int) -> bool:
    try:
        # Does not read the file, so this also works on a file system whose drive is gone.
        return os.stat(link).st_dev == device  # noqa: PTH116 -- a fraction of Path.stat's time
    except OSError:
        return False


def _mounts_below(mount_point: Path, proc: Path) -> Iterator[str]:
    for mount in read_mounts(proc):
        if mount.mount_point != mount_point and mount.mount_point.is_relative_to(mount_point):
            yield f"the mount {mount.mount_point}"

"""Files as records: how they lie on their device, how old they are; the largest of a directory.

Nothing is written, also not delayed data: what has no address yet is left out of the count.
"""

from __future__ import annotations

import heapq
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError
from ssdlab.snapshot import File
from ssdlab.storage_stack.cache import resident_bytes
from ssdlab.storage_stack.extents import Extent, ExtentFlag, all_flags, merged, read_extents

GROUP: Final = 128 << 20
"""ext4 lays its own tables between groups of this size: a large file cannot be in one piece."""
_DAY_S: Final = 86_400
_TOLD: Final = (
    (ExtentFlag.SHARED, "shared"),
    (ExtentFlag.ENCODED, "compressed"),
    (ExtentFlag.INLINE, "inline"),
    (ExtentFlag.UNWRITTEN, "unwritten"),
)


def largest(directory: Path, count: int, seconds: float) -> tuple[list[Path], bool]:
    """The `count` largest readable files below a directory, on its file system, largest first.

    And whether all were looked at: it ends after `seconds`. Links are not followed.
    """
    sizes: list[tuple[int, str]] = []
    seen: set[int] = set()
    end = time.monotonic() + seconds
    for path, found in _files(directory):
        if time.monotonic() > end:
            return _chosen(sizes), False
        if found.st_ino not in seen:
            seen.add(found.st_ino)
            # By what it takes on the device: a sparse file of a terabyte may hold nothing.
            heapq.heappush(sizes, (found.st_blocks * 512, path))
            if len(sizes) > count:
                heapq.heappop(sizes)
    return _chosen(sizes), True


def _chosen(sizes: list[tuple[int, str]]) -> list[Path]:
    return [Path(path) for size, path in sorted(sizes, reverse=True) if size]


def _files(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    device = directory.stat().st_dev
    waiting = [str(directory)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    found = _stat(entry)
                    if found is None or found.st_dev != device:
                        continue
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(entry.path)
                    elif stat.S_ISREG(found.st_mode) and os.access(entry.path, os.R_OK):
                        yield entry.path, found
        except OSError:
            continue


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def file_record(path: Path) -> tuple[File, tuple[Extent, ...]]:
    """A file's layout and age, and its extents after joining; empty where none are told.

    Raises:
        TargetError: it is no plain file, or cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise TargetError(f"{path} cannot be read ({error.strerror})") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise TargetError(f"{path} is no plain file: give one, or a directory")
        return _record(fd, path, found)
    finally:
        os.close(fd)


def _record(fd: int, path: Path, found: os.stat_result) -> tuple[File, tuple[Extent, ...]]:
    listed = read_extents(fd, sync=False)
    extents = merged(listed or ())
    written = tuple(extent for extent in extents if extent.is_written)
    allocated = sum(extent.length for extent in written)
    flags = all_flags(extents)
    record = File(
        path=str(path),
        size_bytes=found.st_size,
        extents=None if listed is None else len(written),
        allocated_bytes=None if listed is None else allocated,
        ideal_extents=max(1, -(-allocated // GROUP)),
        written_days=max(0.0, (time.time() - found.st_mtime) / _DAY_S),
        cached_bytes=resident_bytes(fd),
        flags=tuple(name for flag, name in _TOLD if flag in flags),
    )
    return record, written

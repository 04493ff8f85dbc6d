"""Layout and age of files as records; the largest files of a directory.

Read-only: dirty pages are not written back, so data that has no address yet is not counted.
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
"""Bytes of an ext4 block group. ext4 puts metadata between groups, so a larger file has more than
one extent."""
_DAY_S: Final = 86_400
_FLAG_NAMES: Final = (
    (ExtentFlag.SHARED, "shared"),
    (ExtentFlag.ENCODED, "compressed"),
    (ExtentFlag.INLINE, "inline"),
    (ExtentFlag.UNWRITTEN, "unwritten"),
)


def largest(directory: Path, count: int, seconds: float) -> tuple[list[Path], bool]:
    """The `count` largest readable files below a directory, on its file system, largest first.

    Also returns whether the search was complete: it stops after `seconds`. Does not follow links.
    Compares allocated bytes, since a sparse file may have a large size and no data.
    """
    sizes: list[tuple[int, str]] = []
    inodes: set[int] = set()
    end = time.monotonic() + seconds
    is_complete = True
    for path, status in _files(directory):
        if time.monotonic() > end:
            is_complete = False
            break
        if status.st_ino not in inodes:
            inodes.add(status.st_ino)
            heapq.heappush(sizes, (status.st_blocks * 512, path))
            if len(sizes) > count:
                heapq.heappop(sizes)
    return [Path(path) for size, path in sorted(sizes, reverse=True) if size], is_complete


def _files(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    device = directory.stat().st_dev
    directories = [str(directory)]
    while directories:
        try:
            with os.scandir(directories.pop()) as entries:
                for entry in entries:
                    status = _stat(entry)
                    if status is None or status.st_dev != device:
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        directories.append(entry.path)
                    elif stat.S_ISREG(status.st_mode) and os.access(entry.path, os.R_OK):
                        yield entry.path, status
        except OSError:
            continue


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def file_record(path: Path) -> tuple[File, tuple[Extent, ...]]:
    """A file's layout and age, and its extents with data, joined; empty without FIEMAP.

    Raises:
        TargetError: it is not a regular file, or cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise TargetError(
            f"{path} cannot be read ({error.strerror}); give a readable file"
        ) from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise TargetError(f"{path} is not a regular file; give one, or a directory")
        return _record(fd, path, status)
    finally:
        os.close(fd)


def _record(fd: int, path: Path, status: os.stat_result) -> tuple[File, tuple[Extent, ...]]:
    mapped = read_extents(fd, sync=False)
    extents = merged(mapped or ())
    written = tuple(extent for extent in extents if extent.is_written)
    allocated = sum(extent.length for extent in written)
    flags = all_flags(extents)
    record = File(
        path=str(path),
        size_bytes=status.st_size,
        extents=None if mapped is None else len(written),
        allocated_bytes=None if mapped is None else allocated,
        ideal_extents=max(1, -(-allocated // GROUP)),
        written_days=max(0.0, (time.time() - status.st_mtime) / _DAY_S),
        cached_bytes=resident_bytes(fd),
        flags=tuple(name for flag, name in _FLAG_NAMES if flag in flags),
    )
    return record, written

"""FIEMAP on files whose layout is known."""

from __future__ import annotations

import ctypes
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ssdlab.storage_stack.extents import (
    Extent,
    ExtentFlag,
    all_flags,
    merged,
    read_extents,
    unwritten_bytes,
)

MIB = 1 << 20
BLOCK = 4096
TRIES = 10
"""Another program may call sync and write the dirty pages first."""
_FICLONE = 0x40049409
ON_DRIVES = pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
LAST, UNWRITTEN, NONE = ExtentFlag.LAST, ExtentFlag.UNWRITTEN, ExtentFlag(0)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        yield fd
    finally:
        os.close(fd)


@ON_DRIVES
def test_holes_and_preallocated_bytes_are_unwritten(
    make_filesystem: Callable[..., Path], kind: str
) -> None:
    with opened(make_filesystem(kind, 64) / "file") as fd:
        os.posix_fallocate(fd, 0, 4 * MIB)
        assert unwritten_bytes(fd) == 4 * MIB
        os.pwrite(fd, os.urandom(MIB), MIB)
        os.ftruncate(fd, 8 * MIB)
        assert unwritten_bytes(fd) == 7 * MIB
        assert unwritten_bytes(fd, MIB, MIB) == 0
        assert unwritten_bytes(fd, MIB // 2, MIB) == MIB // 2
        assert unwritten_bytes(fd, 3 * MIB // 2, 2 * MIB) == 3 * MIB // 2
        assert unwritten_bytes(fd, 7 * MIB, 10 * MIB) == 10 * MIB


@ON_DRIVES
def test_dirty_data_is_delayed_until_sync_writes_it(
    make_filesystem: Callable[..., Path], kind: str
) -> None:
    top = make_filesystem(kind, 64)
    for number in range(TRIES):
        with opened(top / f"file-{number}") as fd:
            os.pwrite(fd, os.urandom(MIB), 0)
            before = read_extents(fd, sync=False)
            assert before is not None
            after = read_extents(fd)
            assert after is not None
            assert ExtentFlag.DELALLOC not in all_flags(after)
            assert sum(extent.length for extent in after) == MIB
        if ExtentFlag.DELALLOC in all_flags(before):
            return
    pytest.fail("no extent had delayed allocation")


def test_a_file_with_more_extents_than_one_call_returns_is_read_completely(
    make_filesystem: Callable[..., Path],
) -> None:
    pieces = 2500
    with opened(make_filesystem("ext4", 64) / "file") as fd:
        for piece in range(pieces):
            os.pwrite(fd, os.urandom(BLOCK), piece * 2 * BLOCK)
        extents = read_extents(fd)
        assert extents is not None
        assert [extent.logical for extent in extents] == [n * 2 * BLOCK for n in range(pieces)]
        assert [LAST in extent.flags for extent in extents].count(True) == 1
        part = read_extents(fd, 2 * BLOCK, 4 * BLOCK)
        assert part is not None
        assert [extent.logical // BLOCK for extent in part] == [2, 4]
        assert unwritten_bytes(fd) == (pieces - 1) * BLOCK


@pytest.mark.parametrize("kind", ["ext4", "xfs"])  # on btrfs an address is logical
def test_physical_addresses_point_to_the_data_on_the_device(
    make_filesystem: Callable[..., Path], kind: str, tmp_path: Path
) -> None:
    content = os.urandom(MIB)
    with opened(make_filesystem(kind, 64) / "file") as fd:
        os.pwrite(fd, content, 0)
        os.fsync(fd)
        extents = read_extents(fd)
    assert extents is not None
    with next(tmp_path.glob("image-*")).open("rb") as image:
        for extent in extents:
            image.seek(extent.physical)
            expected = content[extent.logical : extent.end]
            assert image.read(extent.length)[: len(expected)] == expected


def test_compressed_data_is_reported_as_encoded(make_filesystem: Callable[..., Path]) -> None:
    top = make_filesystem("btrfs", 64, mount_options="compress-force=zstd")
    with opened(top / "file") as fd:
        os.pwrite(fd, bytes(MIB), 0)
        extents = read_extents(fd)
        assert extents is not None
        assert ExtentFlag.ENCODED in all_flags(extents)
        assert unwritten_bytes(fd) == 0
        assert merged(extents) == extents


@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_a_reflinked_file_is_reported_as_shared(
    make_filesystem: Callable[..., Path], kind: str
) -> None:
    top = make_filesystem(kind, 64)
    with opened(top / "file") as fd, opened(top / "copy") as copy:
        os.pwrite(fd, os.urandom(MIB), 0)
        fcntl.ioctl(copy, _FICLONE, fd)
        os.fsync(copy)
        extents = read_extents(fd)
        assert extents is not None
        assert ExtentFlag.SHARED in all_flags(extents)


def test_a_small_file_on_btrfs_is_reported_as_inline(make_filesystem: Callable[..., Path]) -> None:
    with opened(make_filesystem("btrfs", 64) / "file") as fd:
        os.pwrite(fd, b"small", 0)
        extents = read_extents(fd)
        assert extents is not None
        assert ExtentFlag.INLINE in all_flags(extents)
        assert unwritten_bytes(fd) == 0


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
def test_without_fiemap_the_extents_are_none(
    make_filesystem: Callable[..., Path], kind: str
) -> None:
    with opened(make_filesystem(kind, 1) / "file") as fd:
        os.pwrite(fd, b"x", 0)
        assert read_extents(fd) is None
        assert unwritten_bytes(fd) is None


def test_a_bad_descriptor_raises_an_error() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        read_extents(ctypes.c_int(-1).value + 10_000)


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        (Extent(0, 100, 10, NONE), Extent(10, 110, 10, LAST), True),
        (Extent(0, 100, 10, UNWRITTEN), Extent(10, 110, 10, UNWRITTEN | LAST), True),
        (Extent(0, 100, 10, NONE), Extent(10, 120, 10, LAST), False),  # a gap on the device
        (Extent(0, 100, 10, NONE), Extent(20, 110, 10, LAST), False),  # a hole in the file
        (Extent(0, 100, 10, NONE), Extent(10, 110, 10, UNWRITTEN), False),
        (Extent(0, 0, 10, ExtentFlag.DELALLOC), Extent(10, 10, 10, ExtentFlag.DELALLOC), False),
    ],
)
def test_extents_are_joined_only_if_contiguous_in_file_and_on_device(
    left: Extent, right: Extent, joined: bool
) -> None:
    expected = (Extent(0, left.physical, 20, right.flags),) if joined else (left, right)
    assert merged([left, right]) == expected


def test_an_empty_file_has_no_extents_and_nothing_unwritten(
    make_filesystem: Callable[..., Path],
) -> None:
    with opened(make_filesystem("ext4", 16) / "file") as fd:
        assert read_extents(fd) == ()
        assert unwritten_bytes(fd) == 0

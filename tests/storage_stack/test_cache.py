"""Page cache residency by cachestat and mincore."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssdlab.storage_stack import cache

MIB = 1 << 20
PAGE = mmap.PAGESIZE


@pytest.fixture
def file(make_filesystem: Callable[..., Path]) -> Iterator[int]:
    """4 MiB on ext4, written back and dropped from the page cache; without readahead."""
    fd = os.open(make_filesystem("ext4", 64) / "file", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, os.urandom(4 * MIB), 0)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    yield fd
    os.close(fd)


def _by_mincore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "resident_pages_cachestat", lambda *_: None)


@pytest.mark.parametrize("source", ["cachestat", "mincore"])
def test_only_the_pages_that_were_read_are_resident(
    file: int, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "mincore":
        _by_mincore(monkeypatch)
    elif cache.resident_pages_cachestat(file, 0, 1) is None:
        pytest.skip("this kernel has no cachestat")
    assert cache.resident_bytes(file) == 0
    os.pread(file, 3 * PAGE, MIB)
    assert cache.resident_bytes(file) == 3 * PAGE
    assert cache.resident_bytes(file, MIB, PAGE) == PAGE
    assert cache.resident_bytes(file, MIB + 10, PAGE) == PAGE
    assert cache.resident_bytes(file, 0, MIB) == 0
    assert cache.resident_bytes(file, 4 * MIB, MIB) == 0


@pytest.mark.parametrize("chunk", [PAGE, 3 * PAGE, MIB])
def test_mapping_in_chunks_counts_each_page_once(
    file: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for page in (0, 2, 3, 100, 1023):
        os.pread(file, PAGE, page * PAGE)
    monkeypatch.setattr(cache, "_CHUNK", chunk)
    assert cache.resident_pages_mincore(file, 0, 4 * MIB) == 5
    assert cache.resident_pages_mincore(file, PAGE + 1, 4 * MIB - PAGE - 1) == 4


def test_direct_io_leaves_nothing_in_the_page_cache(file: int) -> None:
    direct = os.open(f"/proc/self/fd/{file}", os.O_RDWR | os.O_DIRECT)
    try:
        with mmap.mmap(-1, MIB) as block:
            assert os.preadv(direct, [block], 0) == MIB
            os.pwrite(direct, block, MIB)
    finally:
        os.close(direct)
    assert cache.resident_bytes(file) == 0


def test_a_short_file_counts_its_bytes_and_not_a_whole_page(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x" * 100)
    fd = os.open(tmp_path / "short", os.O_RDWR)
    assert cache.resident_bytes(fd) == 100
    os.close(fd)


@pytest.mark.parametrize("source", ["cachestat", "mincore"])
def test_residency_of_a_block_device(
    loop_device: Callable[..., Path], source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == "mincore":
        _by_mincore(monkeypatch)
    fd = os.open(loop_device(16), os.O_RDWR)
    os.pwrite(fd, bytes(2 * MIB), 4 * MIB)
    assert cache.resident_bytes(fd, 4 * MIB, 2 * MIB) == 2 * MIB
    assert cache.resident_bytes(fd, 8 * MIB, 2 * MIB) == 0
    os.close(fd)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_residency_is_none_for_a_user_without_ownership_or_write_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "root's"
    path.write_bytes(bytes(MIB))
    path.chmod(0o444)
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    _by_mincore(monkeypatch)
    os.seteuid(65_534)
    try:
        by_mincore = cache.resident_pages_mincore(fd, 0, MIB)
        resident = cache.resident_bytes(fd)
    finally:
        os.seteuid(0)
        os.close(fd)
    assert by_mincore == MIB // PAGE, "this kernel's mincore is accurate for all users"
    assert resident is None

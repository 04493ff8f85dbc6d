"""Is what is read on the drive? Files of every kind that would be read at fairy-tale speed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssdlab.errors import TargetError
from ssdlab.runner.written import check_uncached, check_written

MIB = 1 << 20
SIZE = 4 * MIB


class Doubts(list[str]):
    """Collects the codes of doubts."""

    def __call__(self, code: str, sentence: str) -> None:
        """One more."""
        assert sentence.endswith(".")
        self.append(code)


@pytest.fixture
def doubts() -> Doubts:
    """No doubts yet."""
    return Doubts()


@pytest.fixture
def opened() -> Iterator[Callable[[Path], int]]:
    """`opened(path)` -> a descriptor that is closed with the test."""
    descriptors: list[int] = []

    def open_file(path: Path) -> int:
        descriptors.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        return descriptors[-1]

    yield open_file
    for descriptor in descriptors:
        os.close(descriptor)


def _write(fd: int, offset: int, length: int) -> None:
    assert os.pwrite(fd, os.urandom(length), offset) == length


def test_a_file_that_was_written_whole_has_no_doubt_and_at_least_one_fragment(
    drive_directory: Path, doubts: Doubts, opened: Callable[[Path], int]
) -> None:
    fd = opened(drive_directory / "file")
    _write(fd, 0, SIZE)
    fragments = check_written(fd, doubts)
    assert fragments is not None
    assert fragments >= 1
    assert doubts == []


@pytest.mark.parametrize("fault", ["hole", "sparse", "preallocated", "punched", "one block"])
def test_a_file_that_is_not_all_on_the_drive_cannot_be_measured(
    drive_directory: Path, doubts: Doubts, opened: Callable[[Path], int], fault: str
) -> None:
    fd = opened(drive_directory / "file")
    if fault == "preallocated":
        os.posix_fallocate(fd, 0, SIZE)
        missing = "4 MiB"
    elif fault == "sparse":
        os.ftruncate(fd, SIZE)
        missing = "4 MiB"
    elif fault == "one block":
        os.posix_fallocate(fd, 0, SIZE)
        _write(fd, 4096, SIZE - 4096)
        missing = "4 KiB"
    else:
        _write(fd, 0, MIB)
        _write(fd, 3 * MIB, MIB)
        missing = "2 MiB"
    with pytest.raises(TargetError, match=f"{missing} of the 4 MiB test file are not on the drive"):
        check_written(fd, doubts)


def test_a_file_system_that_cannot_tell_is_a_doubt(
    make_filesystem: Callable[..., Path], doubts: Doubts, opened: Callable[[Path], int]
) -> None:
    fd = opened(make_filesystem("tmpfs", 16) / "file")
    _write(fd, 0, SIZE)
    assert check_written(fd, doubts) is None
    assert doubts == ["extents-unknown"]


def test_a_compressed_file_is_a_doubt(
    make_filesystem: Callable[..., Path], doubts: Doubts, opened: Callable[[Path], int]
) -> None:
    fd = opened(make_filesystem("btrfs", 128, "", "compress-force=zstd") / "file")
    os.pwrite(fd, bytes(SIZE), 0)
    os.fsync(fd)
    assert check_written(fd, doubts) is not None
    assert doubts == ["encoded"]


@pytest.mark.parametrize(("cached", "codes"), [(0, []), (4096, []), (SIZE // 20, ["page-cache"])])
def test_some_of_the_file_in_the_page_cache_is_a_doubt_and_next_to_none_is_not(
    drive_directory: Path,
    doubts: Doubts,
    opened: Callable[[Path], int],
    cached: int,
    codes: list[str],
) -> None:
    fd = opened(drive_directory / "file")
    _write(fd, 0, SIZE)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # else the kernel reads ahead
    for offset in range(0, cached, 4096):
        os.pread(fd, 4096, offset)
    check_uncached(fd, doubts)
    assert doubts == codes


def test_a_file_that_is_read_from_memory_cannot_be_measured(
    drive_directory: Path, doubts: Doubts, opened: Callable[[Path], int]
) -> None:
    fd = opened(drive_directory / "file")
    _write(fd, 0, SIZE)
    with pytest.raises(TargetError, match="4 MiB of the 4 MiB test file are in the page cache"):
        check_uncached(fd, doubts)

"""Files whose reads would not reach the drive are refused or get a warning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssdlab.errors import TargetError
from ssdlab.runner.written import check_uncached, check_written

MIB = 1 << 20
SIZE = 4 * MIB


class Warnings(list[str]):
    """Collects the codes of warnings."""

    def __call__(self, code: str, sentence: str) -> None:
        """Adds one."""
        assert sentence.endswith(".")
        self.append(code)


@pytest.fixture
def warnings() -> Warnings:
    """An empty collection of warnings."""
    return Warnings()


@pytest.fixture
def descriptor() -> Iterator[Callable[[Path], int]]:
    """`descriptor(path)`: an open descriptor, closed at the end of the test."""
    descriptors: list[int] = []

    def open_file(path: Path) -> int:
        descriptors.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        return descriptors[-1]

    yield open_file
    for fd in descriptors:
        os.close(fd)


def _write(fd: int, offset: int, length: int) -> None:
    assert os.pwrite(fd, os.urandom(length), offset) == length


def test_a_fully_written_file_has_no_warning_and_at_least_one_fragment(
    drive_directory: Path, warnings: Warnings, descriptor: Callable[[Path], int]
) -> None:
    fd = descriptor(drive_directory / "file")
    _write(fd, 0, SIZE)
    fragments = check_written(fd, warnings)
    assert fragments is not None
    assert fragments >= 1
    assert warnings == []


@pytest.mark.parametrize("fault", ["hole", "sparse", "preallocated", "punched", "one block"])
def test_a_file_that_is_partly_not_on_the_drive_is_refused(
    drive_directory: Path, warnings: Warnings, descriptor: Callable[[Path], int], fault: str
) -> None:
    fd = descriptor(drive_directory / "file")
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
        check_written(fd, warnings)


def test_a_file_system_without_fiemap_gets_a_warning(
    make_filesystem: Callable[..., Path], warnings: Warnings, descriptor: Callable[[Path], int]
) -> None:
    fd = descriptor(make_filesystem("tmpfs", 16) / "file")
    _write(fd, 0, SIZE)
    assert check_written(fd, warnings) is None
    assert warnings == ["extents-unknown"]


def test_a_compressed_file_gets_a_warning(
    make_filesystem: Callable[..., Path], warnings: Warnings, descriptor: Callable[[Path], int]
) -> None:
    fd = descriptor(make_filesystem("btrfs", 128, "", "compress-force=zstd") / "file")
    os.pwrite(fd, bytes(SIZE), 0)
    os.fsync(fd)
    assert check_written(fd, warnings) is not None
    assert warnings == ["encoded"]


@pytest.mark.parametrize(("cached", "codes"), [(0, []), (4096, []), (SIZE // 20, ["page-cache"])])
def test_a_partly_cached_file_gets_a_warning_above_one_per_cent(
    drive_directory: Path,
    warnings: Warnings,
    descriptor: Callable[[Path], int],
    cached: int,
    codes: list[str],
) -> None:
    fd = descriptor(drive_directory / "file")
    _write(fd, 0, SIZE)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # else the kernel reads ahead
    for offset in range(0, cached, 4096):
        os.pread(fd, 4096, offset)
    check_uncached(fd, warnings)
    assert warnings == codes


def test_a_cached_file_is_refused(
    drive_directory: Path, warnings: Warnings, descriptor: Callable[[Path], int]
) -> None:
    fd = descriptor(drive_directory / "file")
    _write(fd, 0, SIZE)
    with pytest.raises(TargetError, match="4 MiB of the 4 MiB test file are in the page cache"):
        check_uncached(fd, warnings)

"""The read-speed map: the ranges that it reads, its budget, and a real file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ssdlab.device import Drive
from ssdlab.doctor import read_map as read_map_module
from ssdlab.doctor.read_map import BLOCK, PIECE, Budget, Range, ranges, read_map, unsteady
from ssdlab.storage_stack.extents import Extent, ExtentFlag, merged, read_extents

MIB = 1 << 20
UNLIMITED_S = 3600


def _extent(logical: int, length: int, physical: int = 0) -> Extent:
    return Extent(logical * MIB, physical * MIB, length * MIB, ExtentFlag(0))


def test_ranges_cover_written_extents_and_skip_holes() -> None:
    extents = [_extent(0, 3), _extent(3, 7, 500), _extent(20, 2, 900)]
    assert ranges(extents, 22 * MIB, 1 << 40) == [
        Range(0 * MIB, 4 * MIB, 0, 2),
        Range(4 * MIB, 4 * MIB, 1, 1),
        Range(8 * MIB, 2 * MIB, 1, 1),
        Range(20 * MIB, 2 * MIB, 2, 1),
    ]


def test_ranges_end_at_the_last_whole_block_of_the_file() -> None:
    parts = ranges([_extent(0, 8)], 5 * MIB + 100, 1 << 40)
    assert [(part.offset, part.length) for part in parts] == [(0, PIECE), (PIECE, BLOCK)]


def test_a_smaller_budget_gives_fewer_evenly_spread_ranges() -> None:
    parts = ranges([_extent(0, 400)], 400 * MIB, 40 * MIB)
    assert sum(part.length for part in parts) <= 40 * MIB
    assert [part.offset // MIB for part in parts] == list(range(0, 400, 40))


def test_a_budget_ends_by_bytes_or_by_time_and_is_shared_evenly() -> None:
    now = [0.0]
    budget = Budget(10.0, 100, lambda: now[0])
    share = budget.share(2)
    assert (share.seconds, share.bytes) == (5.0, 50)
    share.spend(50)
    assert (share.is_spent, share.spent, budget.is_spent) == (True, 50, False)
    now[0] = 10.0
    assert budget.is_spent


def _file(directory: Path, size_mib: int) -> tuple[Path, tuple[Extent, ...]]:
    path = directory / "file"
    with path.open("wb") as file:
        for _ in range(size_mib):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
        listed = read_extents(file.fileno())
    if listed is None:
        pytest.skip("this file system does not support FIEMAP")
    return path, tuple(extent for extent in merged(listed) if extent.is_written)


def test_the_map_of_a_real_file_is_in_file_order_and_does_not_modify_it(
    drive_directory: Path,
) -> None:
    path, extents = _file(drive_directory, 16)
    before = path.stat()
    speeds = read_map(path, extents, Budget(UNLIMITED_S, 1 << 40))
    assert [piece.offset for piece in speeds.pieces] == [0, PIECE, 2 * PIECE, 3 * PIECE]
    assert all(piece.seconds > 0 for piece in speeds.pieces)
    assert not speeds.through_cache
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)


def test_a_piece_that_only_one_reading_found_slow_is_shown_fast(
    drive_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, extents = _file(drive_directory, 16)
    readings: Counter[int] = Counter()

    def seconds(_drive: Drive, part: Range, _path: Path) -> float:
        readings[part.offset] += 1
        return 1.0 if (part.offset, readings[part.offset]) == (PIECE, 1) else 0.1

    monkeypatch.setattr(read_map_module, "_seconds", seconds)
    pieces = read_map(path, extents, Budget(UNLIMITED_S, 1 << 40)).pieces
    assert readings[PIECE] > 1, "it is read again"
    assert [piece.seconds for piece in pieces] == [0.1] * 4


@pytest.mark.parametrize(
    ("readings", "share"),
    [
        ([[4.0, 1.0, 1.4, 9.0]] * 8, 0.0),
        ([[4.0, 1.0, 1.6, 9.0]] * 8, 1.0),
        ([[1.0, 1.0]] * 6 + [[1.0]] * 2, 0.25),
        ([[1.0, 2.0]] * 3, None),
    ],
)
def test_unsteady_compares_the_two_fastest_readings(
    readings: list[list[float]], share: float | None
) -> None:
    assert unsteady(readings) == share


def test_without_time_nothing_is_read(
    drive_directory: Path,
) -> None:
    path, extents = _file(drive_directory, 8)
    speeds = read_map(path, extents, Budget(0, 1 << 40))
    assert (speeds.pieces, speeds.unsteady) == ([], None)


def test_direct_reads_served_by_the_page_cache_are_detected(
    make_filesystem: Callable[..., Path],
) -> None:
    # btrfs reads compressed extents through the page cache, also with O_DIRECT.
    point = make_filesystem("btrfs", 300, mount_options="compress-force=zstd")
    path = point / "file"
    with path.open("wb") as file:
        file.write(b"much the same, again and again. " * (32 << 15))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        listed = read_extents(file.fileno())
    assert listed is not None
    extents = tuple(extent for extent in listed if extent.is_written)
    assert read_map(path, extents, Budget(UNLIMITED_S, 1 << 40)).through_cache

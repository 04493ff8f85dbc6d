"""The read-speed map: where it looks, what it may spend, and a real file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ssdlab.doctor.read_map import BLOCK, PIECE, Budget, places, read_map, unsteady
from ssdlab.storage_stack.extents import Extent, ExtentFlag, merged, read_extents

MIB = 1 << 20
ENOUGH_S = 3600
"""It ends when all was read."""


def _extent(logical: int, length: int, physical: int = 0) -> Extent:
    return Extent(logical * MIB, physical * MIB, length * MIB, ExtentFlag(0))


def test_pieces_cover_what_is_written_go_across_extents_and_never_into_a_hole() -> None:
    extents = [_extent(0, 3), _extent(3, 7, 500), _extent(20, 2, 900)]
    found = [(o // MIB, n // MIB, e, t) for o, n, e, t in places(extents, 22 * MIB, 1 << 40)]
    assert found == [(0, 4, 0, 2), (4, 4, 1, 1), (8, 2, 1, 1), (20, 2, 2, 1)]


def test_beyond_the_end_of_the_file_nothing_is_read_and_a_last_part_is_left_out() -> None:
    found = places([_extent(0, 8)], 5 * MIB + 100, 1 << 40)
    assert [(offset, length) for offset, length, *_ in found] == [(0, PIECE), (PIECE, BLOCK)]


def test_a_smaller_budget_thins_the_pieces_evenly_and_keeps_to_it() -> None:
    found = places([_extent(0, 400)], 400 * MIB, 40 * MIB)
    offsets = [offset // MIB for offset, *_ in found]
    assert sum(length for _, length, *_ in found) <= 40 * MIB
    assert offsets == list(range(0, 400, 40))


def test_a_budget_is_spent_by_bytes_or_by_time_and_shared_evenly() -> None:
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
        pytest.skip("this file system tells no extents")
    return path, tuple(extent for extent in merged(listed) if extent.is_written)


def test_a_real_file_is_read_in_order_of_its_pieces_and_stays_as_it_was(
    drive_directory: Path,
) -> None:
    path, extents = _file(drive_directory, 16)
    before = path.stat()
    found = read_map(path, extents, Budget(ENOUGH_S, 1 << 40))
    assert [piece.offset for piece in found.pieces] == [0, PIECE, 2 * PIECE, 3 * PIECE]
    assert all(piece.seconds > 0 for piece in found.pieces)
    assert not found.through_cache
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)


@pytest.mark.parametrize(
    ("readings", "share"),
    [
        ([[4.0, 1.0, 1.4, 9.0]] * 8, 0.0),
        ([[4.0, 1.0, 1.6, 9.0]] * 8, 1.0),
        ([[1.0, 1.0]] * 6 + [[1.0]] * 2, 0.25),
        ([[1.0, 2.0]] * 3, None),
    ],
)
def test_what_is_slow_by_itself_is_slow_alike_in_its_two_fastest_readings(
    readings: list[list[float]], share: float | None
) -> None:
    assert unsteady(readings) == share


def test_without_time_nothing_is_read_and_of_few_slow_pieces_nothing_is_said(
    drive_directory: Path,
) -> None:
    path, extents = _file(drive_directory, 8)
    found = read_map(path, extents, Budget(0, 1 << 40))
    assert (found.pieces, found.unsteady) == ([], None)


def test_what_the_file_system_reads_through_the_page_cache_is_no_map_of_the_drive(
    make_filesystem: Callable[..., Path],
) -> None:
    # Compressed extents of btrfs cannot be read directly: the kernel reads them by its cache.
    point = make_filesystem("btrfs", 300, mount_options="compress-force=zstd")
    path = point / "file"
    with path.open("wb") as file:
        file.write(b"much the same, again and again. " * (32 << 15))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        listed = read_extents(file.fileno())
    assert listed is not None
    extents = tuple(extent for extent in listed if extent.is_written)
    assert read_map(path, extents, Budget(ENOUGH_S, 1 << 40)).through_cache

"""Free space of ordinary users, minus the space that must stay free."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ssdlab.errors import TargetError
from ssdlab.storage_stack.space import Space, room_for, space_on

GIB = 1 << 30


@pytest.mark.parametrize(
    ("total_gib", "free_gib", "usable_gib"),
    [(10, 5, 4), (100, 50, 45), (10, 1, 0), (100, 4, 0), (0.5, 0.5, 0), (252, 12, 4), (4000, 7, 0)],
)
def test_five_percent_stay_free_at_least_1_and_at_most_8_gib(
    total_gib: float, free_gib: float, usable_gib: float
) -> None:
    free = int(free_gib * GIB)
    assert Space(int(total_gib * GIB), free, free).usable_bytes == usable_gib * GIB


def test_room_is_at_most_the_usable_bytes(
    make_filesystem: Callable[..., Path],
) -> None:
    top = make_filesystem("ext4", 3 << 10)
    usable = space_on(top).usable_bytes
    assert 1.5 * GIB < usable < 2 * GIB
    assert room_for(top, 4096) == 4096
    assert room_for(top, 3 * GIB) == usable


def test_blocks_reserved_for_root_are_not_usable(make_filesystem: Callable[..., Path]) -> None:
    plain = space_on(make_filesystem("ext4", 64, mkfs_options="-m 0"))
    space = space_on(make_filesystem("ext4", 64, mkfs_options="-m 20"))
    assert space.free_bytes_root == plain.free_bytes_root
    reserved = plain.free_bytes - space.free_bytes
    assert reserved == pytest.approx(0.2 * 64 * 2**20, rel=0.01)


def test_a_missing_path_is_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="nowhere"):
        space_on(tmp_path / "nowhere")

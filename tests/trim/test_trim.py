"""Trims of real file systems: what reached the device below, and what ext4 leaves out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab.errors import TargetError
from ssdlab.trim.trim import Trimmed, trim

MIB = 1 << 20


def _filled_and_freed(point: Path, size_mib: int) -> None:
    path = point / "file"
    with path.open("wb") as file:
        for _ in range(size_mib):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    path.unlink()


def _loop(done: Trimmed) -> tuple[int, int, int]:
    """Of the loop device: bytes it was sent, and what its file took before and after."""
    (row,) = [row for row in done.layers if row.layer == "loop"]
    assert row.used_before is not None
    assert row.used_after is not None
    if row.passes == "no":
        pytest.skip(f"this loop device takes no discards here: {row.why}")
    return row.sent or 0, row.used_before, row.used_after


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_what_was_freed_leaves_the_image_below(
    make_filesystem: Callable[..., Path], kind: str
) -> None:
    point = make_filesystem(kind, 300, mount_options="nodiscard")
    _filled_and_freed(point, 40)
    done = trim(point)
    sent, before, after = _loop(done)
    assert before - after >= 36 * MIB
    assert sent >= 36 * MIB
    assert done.reached == sent
    assert (done.stops, done.refused) == (None, "")


def test_ext4_is_made_to_forget_where_it_left_out_most_and_only_then(
    make_filesystem: Callable[..., Path],
) -> None:
    point = make_filesystem("ext4", 300, mount_options="nodiscard")
    first = trim(point)
    if not first.passes:
        pytest.skip(first.refused)
    assert (len(first.passes), first.forced) == (1, False)
    again = trim(point)
    assert again.forced
    assert again.passes[0] < again.free / 2
    assert again.passes[1] > again.free / 2
    once = trim(point, force=False)
    assert (len(once.passes), once.forced) == (1, False)
    assert once.passes[0] < once.free / 2


def test_files_keep_their_content(make_filesystem: Callable[..., Path]) -> None:
    point = make_filesystem("ext4", 128)
    content = os.urandom(8 * MIB)
    (point / "kept").write_bytes(content)
    trim(point)
    trim(point)
    assert (point / "kept").read_bytes() == content


def test_a_file_system_in_memory_is_refused(make_filesystem: Callable[..., Path]) -> None:
    with pytest.raises(TargetError, match="stands on no drive"):
        trim(make_filesystem("tmpfs", 16))


def test_drives_that_do_not_count_make_the_sum_unknown(
    make_filesystem: Callable[..., Path],
) -> None:
    done = trim(make_filesystem("ext4", 64))
    rows = tuple(replace(row, sent=None) for row in done.layers)
    assert replace(done, layers=rows).reached is None

"""Trims real file systems: what reached the device below, and the second pass on ext4."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab.errors import TargetError
from ssdlab.trim import TrimResult, trim

MIB = 1 << 20


def _fill_and_free(point: Path, size_mib: int) -> None:
    path = point / "file"
    with path.open("wb") as file:
        for _ in range(size_mib):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    path.unlink()


def _loop(result: TrimResult) -> tuple[int, int, int]:
    """Bytes discarded on the loop device, and bytes of its image before and after."""
    (loop,) = [layer for layer in result.layers if layer.layer == "loop"]
    assert loop.used_before is not None
    assert loop.used_after is not None
    if loop.passes == "no":
        pytest.skip(f"this loop device does not support discards: {loop.why}")
    return loop.sent or 0, loop.used_before, loop.used_after


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_freed_space_is_freed_in_the_image_below(
    make_filesystem: Callable[..., Path], kind: str
) -> None:
    point = make_filesystem(kind, 300, mount_options="nodiscard")
    _fill_and_free(point, 40)
    result = trim(point)
    sent, before, after = _loop(result)
    assert before - after >= 36 * MIB
    assert sent >= 36 * MIB
    assert result.reached == sent
    assert (result.stops, result.refused) == (None, "")


def test_ext4_gets_a_second_pass_only_if_the_first_skipped_most_free_space(
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
    with pytest.raises(TargetError, match="is not on a drive"):
        trim(make_filesystem("tmpfs", 16))


def test_the_total_is_unknown_if_a_drive_does_not_count(
    make_filesystem: Callable[..., Path],
) -> None:
    result = trim(make_filesystem("ext4", 64))
    layers = tuple(replace(layer, sent=None) for layer in result.layers)
    assert replace(result, layers=layers).reached is None

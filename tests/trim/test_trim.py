"""Trims real file systems: what reached the device below, and the second pass on ext4."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ssdlab.cli.trim import reaches_drive as judge
from ssdlab.cli.trim import verdict
from ssdlab.errors import TargetError
from ssdlab.trim import LayerResult, TrimResult, trim

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
    assert result.expected == max(0, before - after)
    drives = [layer.sent for layer in result.layers if layer.layer in {"drive", "USB"}]
    counts = [count for count in drives if count is not None]
    assert result.reached == (sum(counts) if counts and len(counts) == len(drives) else None)
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


def _received(
    drive: int | None, *, freed: int, keeps: str | None, later: bool = False
) -> TrimResult:
    """A trim of 1 GiB on a loop device that freed some of its file; the drive received `drive`."""
    rows = (
        LayerResult("file system", "/mnt", "yes", "", below_file=False, sent=None),
        LayerResult("loop", "loop0", "yes", "", False, 1024 * MIB, 500 * MIB, 500 * MIB - freed),
        LayerResult("file system", "/", "yes", "", below_file=True, sent=None),
        LayerResult("drive", "sda", "yes", "", below_file=True, sent=drive),
    )
    return TrimResult(
        "/mnt", "ext4", 1024 * MIB, (1024 * MIB,), False, rows, None, "", (), keeps, later
    )


@pytest.mark.parametrize(
    ("result", "reaches", "sentence"),
    [
        (_received(200 * MIB, freed=200 * MIB, keeps=None), True, "sda received 200 MiB."),
        (
            _received(0, freed=200 * MIB, keeps="/"),
            False,
            "loop0 freed 200 MiB of its backing file; the drive sda received 0 B. / does not send",
        ),
        (_received(0, freed=200 * MIB, keeps="/", later=True), None, "/ sends discards later"),
        (_received(0, freed=0, keeps=None), None, "does not show whether discards reach"),
        (_received(None, freed=MIB, keeps=None), None, "sda does not count discards"),
    ],
)
def test_on_a_loop_device_the_sentence_says_what_the_drive_below_received(
    result: TrimResult, reaches: bool | None, sentence: str
) -> None:
    assert judge(result) is reaches
    assert sentence in verdict(result, reaches=reaches)
    assert "1 GiB reached" not in verdict(result, reaches=reaches)


@pytest.mark.parametrize("option", ["nodiscard", "discard"])
def test_a_file_system_below_is_synced_and_named_if_it_does_not_discard(
    make_filesystem: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
) -> None:
    below = make_filesystem("ext4", 300, mount_options=option)
    synced = []

    def sync(point: Path) -> None:
        synced.append(point)
        os.sync()

    monkeypatch.setattr("ssdlab.trim.sync_file_system", sync)
    with (below / "image").open("wb") as file:
        file.truncate(128 * MIB)
    point = tmp_path / "upper"
    point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", below / "image"], check=True)
    subprocess.run(["mount", "-o", "loop,nodiscard", below / "image", point], check=True)
    try:
        _fill_and_free(point, 40)
        result = trim(point)
    finally:
        subprocess.run(["umount", point], check=True)
    _loop(replace(result, layers=result.layers[:2]))
    assert result.keeps == (str(below) if option == "nodiscard" else None)
    assert synced[:2] == [point, below]
    assert result.expected is not None
    assert result.expected >= 36 * MIB
    if option == "nodiscard" and result.reached is not None:
        assert result.reached < 36 * MIB

"""Files on ext4, XFS and btrfs get new blocks with the same content; nothing else changes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_file import MakeFileSystem, MakeSample, RandomWriter, SampleFile

from ssdlab.heal.file import CompletedRanges, heal_file
from ssdlab.heal.methods.move_extents import MoveExtents
from ssdlab.heal.options import HealOptions
from ssdlab.heal.outcome import FileOutcome

KINDS = ("ext4", "xfs", "btrfs")
M = 1 << 20
SIZE = 12 * M + 12_345


def silent(_label: str, _done: int, _total: int) -> None:
    pass


def heal(sample: SampleFile, **options: object) -> FileOutcome:
    return heal_file(sample.path, HealOptions(**options), silent)  # type: ignore[arg-type]


def places(sample: SampleFile) -> dict[int, int]:
    """The physical address of each 4 KiB block."""
    return {
        extent.logical + at: extent.physical + at
        for extent in sample.extents
        for at in range(0, extent.length, 4096)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gets_new_blocks_and_keeps_its_content(
    kind: str, make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem(kind, 400, direct_io=True), SIZE)
    before, status = places(sample), sample.path.stat()
    outcome = heal(sample, everything=True)
    assert (outcome.refused, outcome.left, outcome.interrupted) == (None, [], False)
    after = places(sample)
    assert outcome.moved_bytes >= SIZE
    assert all(after[at] != before[at] for at in range(0, SIZE, 4096))
    sample.check()
    now = sample.path.stat()
    assert (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
    assert (now.st_blocks, now.st_size) == (status.st_blocks, status.st_size)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_chosen_ranges_get_new_blocks(
    kind: str, make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem(kind, 400, direct_io=True), SIZE)
    before = places(sample)
    outcome = heal(sample, ranges=((3 * M + 5, M - 5), (12 * M, 5 * M)))
    block = os.statvfs(sample.path).f_bsize
    rest = -(-12_345 // block) * block
    assert outcome.plan == [(3 * M, M), (12 * M, rest)]
    assert outcome.written_bytes <= M + rest
    after = places(sample)
    moved = {at for at in range(0, SIZE, 4096) if after[at] != before[at]}
    assert moved == set(range(3 * M, 4 * M, 4096)) | set(range(12 * M, SIZE, 4096))
    sample.check()


@pytest.mark.parametrize("kind", KINDS)
def test_holes_and_unwritten_space_are_kept(
    kind: str, make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem(kind, 400, direct_io=True), 4 * M)
    with sample.path.open("r+b") as file:
        file.truncate(9 * M)
        os.posix_fallocate(file.fileno(), 6 * M, M)
        os.pwrite(file.fileno(), sample.content[:M], 8 * M)
        os.fsync(file.fileno())
    blocks = sample.path.stat().st_blocks
    outcome = heal(sample, everything=True)
    assert outcome.moved_bytes == 5 * M
    sample.check(sample.content + bytes(4 * M) + sample.content[:M])
    assert sample.path.stat().st_blocks == blocks


@pytest.mark.parametrize("kind", KINDS)
def test_a_dry_run_reports_the_plan_and_writes_nothing(
    kind: str, make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem(kind, 400, direct_io=True), SIZE)
    before = places(sample)
    outcome = heal(sample, everything=True, dry_run=True)
    assert outcome.planned_bytes >= SIZE
    assert (outcome.moved_bytes, outcome.written_bytes) == (0, 0)
    assert len(outcome.map) == 12
    assert all(row.before_mib_per_s for row in outcome.map)
    assert places(sample) == before


@pytest.mark.parametrize("mode", ["buffered", "direct", "mapped"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_write_during_a_heal_is_lost(
    kind: str,
    mode: str,
    make_filesystem: MakeFileSystem,
    make_sample: MakeSample,
    writing: Callable[[SampleFile, str], RandomWriter],
) -> None:
    sample = make_sample(make_filesystem(kind, 400, direct_io=True), SIZE)
    writer = writing(sample, mode)
    outcomes: list[FileOutcome] = []
    while len(outcomes) < 2 or writer.writes() <= 20:  # until it has written during a heal
        outcomes.append(heal(sample, everything=True, shared=True))
    _, expected = writer.end()
    assert all(outcome.refused is None for outcome in outcomes)
    assert sum(outcome.moved_bytes for outcome in outcomes) > 0
    sample.check(expected)


@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_after_a_heal_no_block_is_shared_so_the_next_heal_is_not_refused(
    kind: str, make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    sample = make_sample(make_filesystem(kind, 400, direct_io=True), SIZE)
    assert heal(sample, everything=True).refused is None
    assert heal(sample, everything=True).refused is None
    sample.check()


def test_the_next_run_continues_an_interrupted_one(
    make_filesystem: MakeFileSystem,
    make_sample: MakeSample,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = make_sample(make_filesystem("ext4", 400), 70 * M)
    real_rewrite, calls = MoveExtents.rewrite, []

    def interrupt_the_second(self: MoveExtents, chunk: object) -> object:
        calls.append(chunk)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real_rewrite(self, chunk)  # type: ignore[arg-type]

    monkeypatch.setattr(MoveExtents, "rewrite", interrupt_the_second)
    first = heal(sample, everything=True, state_folder=tmp_path / "state")
    assert (first.interrupted, first.moved_bytes) == (True, 32 * M)
    second = heal(sample, everything=True, state_folder=tmp_path / "state")
    assert (second.interrupted, second.moved_bytes) == (False, 38 * M)
    third = heal(sample, everything=True, state_folder=tmp_path / "state")
    assert third.moved_bytes == 70 * M, "a finished run is not resumed"
    sample.check()


def test_an_incomplete_line_of_the_completed_ranges_is_ignored(tmp_path: Path) -> None:
    completed = CompletedRanges(tmp_path, 1, 2)
    (tmp_path / "1-2").write_text("0 4096\n8192 4096\nrubbish\n4096 40")
    assert [(each.offset, each.length) for each in completed.ranges()] == [(0, 4096), (8192, 4096)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_system_is_clean_after_a_heal(
    kind: str, make_filesystem: MakeFileSystem, make_sample: MakeSample
) -> None:
    point = make_filesystem(kind, 400, direct_io=True)
    sample = make_sample(point, SIZE)
    assert heal(sample, everything=True).moved_bytes
    sample.check()
    device = subprocess.run(
        ["findmnt", "-no", "SOURCE", str(point)], capture_output=True, text=True, check=True
    ).stdout.strip()
    subprocess.run(["umount", str(point)], check=True)
    command = {
        "ext4": ["e2fsck", "-f", "-n", device],
        "xfs": ["xfs_repair", "-n", device],
        "btrfs": ["btrfs", "check", "--readonly", device],
    }[kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    subprocess.run(["mount", "-t", kind, device, str(point)], check=True)
    assert done.returncode == 0, done.stdout + done.stderr

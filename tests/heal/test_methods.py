"""Files on ext4, XFS, btrfs and others get a new place: same content, nothing else touched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from patients import Healing, Make, Patient, Writer

from ssdlab.heal.file import heal_file
from ssdlab.heal.methods.move_extents import MoveExtents
from ssdlab.heal.options import Wish
from ssdlab.heal.outcome import FileOutcome
from ssdlab.heal.progress import Remembered

KINDS = ("ext4", "xfs", "btrfs")
M = 1 << 20
SIZE = 12 * M + 12_345


def silent(_label: str, _done: int, _total: int) -> None:
    pass


def heal(healing: Healing, **wish: object) -> FileOutcome:
    return heal_file(healing.path, Wish(**wish), silent)  # type: ignore[arg-type]


def places(healing: Healing) -> dict[int, int]:
    """Where each block of 4 KiB lies."""
    return {
        extent.logical + at: extent.physical + at
        for extent in healing.extents
        for at in range(0, extent.length, 4096)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gets_another_place_and_keeps_its_content(
    kind: str, make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem(kind, 400), SIZE)
    before, status = places(healing), healing.path.stat()
    outcome = heal(healing, everything=True)
    assert (outcome.refused, outcome.left, outcome.interrupted) == (None, [], False)
    after = places(healing)
    assert outcome.moved_bytes >= SIZE
    assert all(after[at] != before[at] for at in range(0, SIZE, 4096))
    healing.check()
    now = healing.path.stat()
    assert (now.st_ino, now.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)
    assert (now.st_blocks, now.st_size) == (status.st_blocks, status.st_size)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_chosen_ranges_get_another_place(
    kind: str, make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem(kind, 400), SIZE)
    before = places(healing)
    outcome = heal(healing, chosen=((3 * M + 5, M - 5), (12 * M, 5 * M)))
    block = os.statvfs(healing.path).f_bsize
    rest = -(-12_345 // block) * block
    assert outcome.plan == [(3 * M, M), (12 * M, rest)]
    assert outcome.written_bytes <= M + rest
    after = places(healing)
    moved = {at for at in range(0, SIZE, 4096) if after[at] != before[at]}
    assert moved == set(range(3 * M, 4 * M, 4096)) | set(range(12 * M, SIZE, 4096))
    healing.check()


@pytest.mark.parametrize("kind", KINDS)
def test_holes_and_reserved_space_stay_as_they_are(
    kind: str, make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem(kind, 400), 4 * M)
    with healing.path.open("r+b") as file:
        file.truncate(9 * M)
        os.posix_fallocate(file.fileno(), 6 * M, M)
        os.pwrite(file.fileno(), healing.content[:M], 8 * M)
        os.fsync(file.fileno())
    blocks = healing.path.stat().st_blocks
    outcome = heal(healing, everything=True)
    assert outcome.moved_bytes == 5 * M
    healing.check(healing.content + bytes(4 * M) + healing.content[:M])
    assert healing.path.stat().st_blocks == blocks


@pytest.mark.parametrize("kind", KINDS)
def test_a_dry_run_says_what_it_would_write_and_writes_nothing(
    kind: str, make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem(kind, 400), SIZE)
    before = places(healing)
    outcome = heal(healing, everything=True, dry_run=True)
    assert outcome.planned_bytes >= SIZE
    assert (outcome.moved_bytes, outcome.written_bytes) == (0, 0)
    assert len(outcome.map) == 12
    assert all(row.before_mib_per_s for row in outcome.map)
    assert places(healing) == before


@pytest.mark.parametrize("mode", ["buffered", "direct", "mapped"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_write_is_lost_that_is_done_during_a_heal(
    kind: str,
    mode: str,
    make_filesystem: Make,
    patient: Patient,
    writing: Callable[[Healing, str], Writer],
) -> None:
    healing = patient(make_filesystem(kind, 400), SIZE)
    writer = writing(healing, mode)
    outcomes: list[FileOutcome] = []
    while len(outcomes) < 2 or writer.writes() <= 20:  # until it wrote meanwhile
        outcomes.append(heal(healing, everything=True, shared=True))
    _, wanted = writer.end()
    assert all(outcome.refused is None for outcome in outcomes)
    assert sum(outcome.moved_bytes for outcome in outcomes) > 0
    healing.check(wanted)


@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_after_a_heal_no_block_is_shared_and_the_next_one_is_not_refused(
    kind: str, make_filesystem: Make, patient: Patient
) -> None:
    healing = patient(make_filesystem(kind, 400), SIZE)
    assert heal(healing, everything=True).refused is None
    assert heal(healing, everything=True).refused is None
    healing.check()


def test_an_interrupted_run_goes_on_with_what_is_left(
    make_filesystem: Make, patient: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    healing = patient(make_filesystem("ext4", 400), 70 * M)
    whole, calls = MoveExtents.rewrite, []

    def until_the_second(self: MoveExtents, chunk: object) -> object:
        calls.append(chunk)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(self, chunk)  # type: ignore[arg-type]

    monkeypatch.setattr(MoveExtents, "rewrite", until_the_second)
    first = heal(healing, everything=True, state=tmp_path / "state")
    assert (first.interrupted, first.moved_bytes) == (True, 32 * M)
    second = heal(healing, everything=True, state=tmp_path / "state")
    assert (second.interrupted, second.moved_bytes) == (False, 38 * M)
    third = heal(healing, everything=True, state=tmp_path / "state")
    assert third.moved_bytes == 70 * M, "what was finished is forgotten"
    healing.check()


def test_a_torn_line_of_what_is_remembered_counts_for_nothing(tmp_path: Path) -> None:
    remembered = Remembered(tmp_path, 1, 2)
    (tmp_path / "1-2").write_text("0 4096\n8192 4096\nrubbish\n4096 40")
    assert [(each.offset, each.length) for each in remembered.ranges()] == [(0, 4096), (8192, 4096)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_system_is_whole_after_a_heal(
    kind: str, make_filesystem: Make, patient: Patient
) -> None:
    point = make_filesystem(kind, 400)
    healing = patient(point, SIZE)
    assert heal(healing, everything=True).moved_bytes
    healing.check()
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

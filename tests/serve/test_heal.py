"""Healing aged files on a served twin restores the fresh read speed with few writes.

Tests that measure wall-clock time, for minutes, run only if SSDLAB_TIMED is set.
"""

from __future__ import annotations

import mmap
import os
import random
from pathlib import Path

import pytest
from rig import Attach, Mounted, Serve, make_file_system, need, unmount, wait_for
from sample_file import RandomWriter, SampleFile

from ssdlab.heal.device.whole import heal_device
from ssdlab.heal.file import heal_file
from ssdlab.heal.options import DeviceOptions, HealOptions
from ssdlab.heal.pieces import Piece, Range, average_speed, split_into_pieces
from ssdlab.heal.speed import ReadSpeedMeter

M = 1 << 20
SIZE = 20 * M
AGED = Range(7 * M, 2 * M)
BLOCK = 4096
READS = 6
# Aged pieces read at half the fresh speed or less; a busy host slows reads by less than this.
SLOWER_THAN = 0.65
# At this pace the host's overhead per request is small compared to the drive's latency.
PACE = "0.01x"
MKFS = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-b", "4096"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}


def silent(_label: str, _done: int, _total: int) -> None:
    pass


def write_blocks(path: Path, content: bytes, blocks: list[int]) -> None:
    """Writes blocks of a file by direct I/O, one at a time in this order."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    length = M if not blocks else BLOCK
    buffer = mmap.mmap(-1, length)
    try:
        for block in blocks or range(len(content) // length):
            buffer[:] = content[block * length :][:length]
            os.pwrite(fd, buffer, block * length)
        os.fsync(fd)
    finally:
        os.close(fd)


def speeds(path: Path) -> list[Piece]:
    """The best of several reads of each MiB."""
    meter = ReadSpeedMeter(path, silent)
    try:
        reads = [meter.measure(split_into_pieces([Range(0, SIZE)], M), "") for _ in range(READS)]
    finally:
        meter.close()
    return [
        max(each, key=lambda piece: piece.bytes_per_s or 0) for each in zip(*reads, strict=True)
    ]


def age(path: Path) -> tuple[bytes, float]:
    """Creates a file and rewrites a tenth at random; returns its content and fresh speed."""
    rng = random.Random(5)
    content = bytearray(rng.randbytes(SIZE))
    write_blocks(path, bytes(content), [])
    fresh = average_speed(speeds(path)) or 0
    blocks = list(range(AGED.offset // BLOCK, AGED.end // BLOCK))
    some = rng.sample(blocks, len(blocks) // 2)
    for block in some:
        content[block * BLOCK : (block + 1) * BLOCK] = rng.randbytes(BLOCK)
    write_blocks(path, bytes(content), some)
    aged = average_speed(speeds(path)) or 0
    assert aged < 0.95 * fresh, "it aged"
    return bytes(content), fresh


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_program_that_writes_during_a_heal_loses_nothing(
    kind: str, serve: Serve, attach: Attach, mounted: Mounted
) -> None:
    need(MKFS[kind][0])
    device = attach(serve(capacity="384 MiB")).device
    make_file_system(*MKFS[kind], device)
    point = mounted(device, kind)
    chance = random.Random(6)
    path, content = point / "file", chance.randbytes(SIZE)
    other = chance.randbytes(100_000)
    path.write_bytes(content)
    (point / "other").write_bytes(other)
    os.sync()
    patient = SampleFile(path, content, point / "other", other)
    writer = RandomWriter(patient, "buffered", 1000)
    wait_for(lambda: path.read_bytes() != content, "the writer")
    outcome = heal_file(path, HealOptions(everything=True), silent)
    writes, expected = writer.end()
    assert writes > 0
    assert outcome.refused is None
    assert outcome.moved_bytes > 0
    patient.check(expected)


timed = pytest.mark.skipif(
    "SSDLAB_TIMED" not in os.environ, reason="takes SSDLAB_TIMED=1: it is timed"
)


@timed
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_an_aged_tenth_of_a_file_is_found_and_rewritten_to_fresh_speed(
    kind: str, serve: Serve, attach: Attach, mounted: Mounted
) -> None:
    need(MKFS[kind][0])
    served = serve("--pace", PACE, capacity="384 MiB")
    device = attach(served).device
    make_file_system(*MKFS[kind], device)
    path = mounted(device, kind) / "file"
    content, fresh = age(path)
    outcome = heal_file(path, HealOptions(slower_than=SLOWER_THAN), silent)
    assert outcome.refused is None
    slow = {row.offset_bytes for row in outcome.map if row.is_rewritten}
    assert slow >= {AGED.offset, AGED.offset + M}, "the map shows the aged pieces"
    assert outcome.written_bytes <= 0.15 * SIZE, sorted(slow)
    assert (average_speed(speeds(path)) or 0) >= 0.95 * fresh
    assert path.read_bytes() == content


@timed
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_an_aged_unmounted_device_is_healed_to_fresh_speed(
    kind: str, serve: Serve, attach: Attach, mounted: Mounted, tmp_path: Path
) -> None:
    need(MKFS[kind][0])
    served = serve("--pace", PACE, capacity="384 MiB")
    device = attach(served).device
    make_file_system(*MKFS[kind], device)
    point = mounted(device, kind)
    content, fresh = age(point / "file")
    unmount(point)
    wish = HealOptions(slower_than=SLOWER_THAN, piece_bytes=M)
    outcome = heal_device(Path(device), DeviceOptions(wish, tmp_path / "journal"), silent)
    assert outcome.way == "in place"
    slow = [row for row in outcome.map if row.is_rewritten]
    assert AGED.length <= sum(row.length_bytes for row in slow) <= 2 * AGED.length
    assert all((row.after_mib_per_s or 0) > (row.before_mib_per_s or 0) for row in slow)
    path = mounted(device, kind) / "file"
    after = average_speed(speeds(path)) or 0
    assert after >= 0.95 * fresh, f"{after / fresh:.1%}"
    assert path.read_bytes() == content

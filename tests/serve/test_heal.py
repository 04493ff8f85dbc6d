"""What aged on a served twin reads at the fresh speed again, and little of it is written.

Where the clock on the wall decides, for minutes, a test runs only if SSDLAB_TIMED is set.
"""

from __future__ import annotations

import mmap
import os
import random
from pathlib import Path

import pytest
from rig import Attach, Mounted, Serve, need, run, unmount, wait_for
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
LOOKS = 6
# What aged reads at a half of the fresh speed or less; a busy host must not pass for that.
SLOWER_THAN = 0.65
# The drive's time runs so slowly that what the host adds to a request is little beside it.
PACE = "0.01x"
MKFS = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-b", "4096"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}


def silent(_label: str, _done: int, _total: int) -> None:
    pass


def written(path: Path, content: bytes, blocks: list[int]) -> None:
    """Writes blocks of a file past the page cache, one at a time in this order."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    length = M if not blocks else BLOCK
    room = mmap.mmap(-1, length)
    try:
        for block in blocks or range(len(content) // length):
            room[:] = content[block * length :][:length]
            os.pwrite(fd, room, block * length)
        os.fsync(fd)
    finally:
        os.close(fd)


def speeds(path: Path) -> list[Piece]:
    """The best of several readings of each MiB."""
    meter = ReadSpeedMeter(path, silent)
    try:
        looks = [meter.measure(split_into_pieces([Range(0, SIZE)], M), "") for _ in range(LOOKS)]
    finally:
        meter.close()
    return [
        max(each, key=lambda piece: piece.bytes_per_s or 0) for each in zip(*looks, strict=True)
    ]


def age(path: Path) -> tuple[bytes, float]:
    """Makes a file of which a tenth is then written at random; what it holds, its fresh speed."""
    chance = random.Random(5)
    content = bytearray(chance.randbytes(SIZE))
    written(path, bytes(content), [])
    fresh = average_speed(speeds(path)) or 0
    blocks = list(range(AGED.offset // BLOCK, AGED.end // BLOCK))
    some = chance.sample(blocks, len(blocks) // 2)
    for block in some:
        content[block * BLOCK : (block + 1) * BLOCK] = chance.randbytes(BLOCK)
    written(path, bytes(content), some)
    aged = average_speed(speeds(path)) or 0
    assert aged < 0.95 * fresh, "it aged"
    return bytes(content), fresh


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_who_writes_throughout_loses_nothing_while_the_file_is_healed(
    kind: str, serve: Serve, attach: Attach, mounted: Mounted
) -> None:
    need(MKFS[kind][0])
    device = attach(serve(capacity="384 MiB")).device
    run(*MKFS[kind], device)
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
    writes, wanted = writer.end()
    assert writes > 0
    assert outcome.refused is None
    assert outcome.moved_bytes > 0
    patient.check(wanted)


timed = pytest.mark.skipif(
    "SSDLAB_TIMED" not in os.environ, reason="takes SSDLAB_TIMED=1: it is timed"
)


@timed
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_tenth_that_aged_is_found_rewritten_and_as_fast_as_when_it_was_new(
    kind: str, serve: Serve, attach: Attach, mounted: Mounted
) -> None:
    need(MKFS[kind][0])
    served = serve("--pace", PACE, capacity="384 MiB")
    device = attach(served).device
    run(*MKFS[kind], device)
    path = mounted(device, kind) / "file"
    content, fresh = age(path)
    outcome = heal_file(path, HealOptions(slower_than=SLOWER_THAN), silent)
    assert outcome.refused is None
    slow = {row.offset_bytes for row in outcome.map if row.is_rewritten}
    assert slow >= {AGED.offset, AGED.offset + M}, "the map shows what aged"
    assert outcome.written_bytes <= 0.15 * SIZE, sorted(slow)
    assert (average_speed(speeds(path)) or 0) >= 0.95 * fresh
    assert path.read_bytes() == content


@timed
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_an_unmounted_device_that_aged_is_healed_as_a_whole_and_reads_as_when_it_was_new(
    kind: str, serve: Serve, attach: Attach, mounted: Mounted, tmp_path: Path
) -> None:
    need(MKFS[kind][0])
    served = serve("--pace", PACE, capacity="384 MiB")
    device = attach(served).device
    run(*MKFS[kind], device)
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

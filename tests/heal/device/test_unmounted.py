"""An unmounted device: it is rewritten, trimmed space stays trimmed, torn data is restored."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import two_windows
from power_loss import PowerLoss, crash
from sample_device import PIECE, Device, silent

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.run import DeviceSpeedMeter
from ssdlab.heal.device.whole import heal_device, recover_device
from ssdlab.heal.device.windows import Window
from ssdlab.heal.options import DeviceOptions, HealOptions
from ssdlab.heal.pieces import Range

Make = Callable[..., Device]
KINDS = pytest.mark.parametrize("kind", ["ext4", "ext2", "xfs"])
ALL = HealOptions(everything=True, piece_bytes=PIECE)


@KINDS
def test_all_used_space_is_rewritten_and_trimmed_space_stays_trimmed(
    kind: str, make_device: Make
) -> None:
    device = make_device(kind)
    before = device.image_bytes()
    outcome = device.heal()
    assert outcome.written_bytes > sum(map(len, device.content.values()))
    assert outcome.moved_bytes == outcome.planned_bytes
    assert device.image_bytes() == before
    assert not device.journal.exists()
    device.check()


@KINDS
@pytest.mark.parametrize("at", [1, 2, 4])
def test_data_torn_by_a_power_cut_is_restored_by_the_next_run(
    kind: str, at: int, make_device: Make
) -> None:
    device = make_device(kind)
    crash(device, at)
    outcome = device.heal()
    assert outcome.restored_bytes > 0
    device.check()


def test_used_space_with_zeros_has_no_speed(make_device: Make) -> None:
    """A drive can return zeros from its map, without reading flash."""
    device = make_device("ext4")
    content = device.image.read_bytes()
    contents = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]
    zeros = next(at for at, piece in enumerate(contents) if not any(piece))
    data = next(at for at, piece in enumerate(contents) if piece.count(0) < PIECE // 10)
    direct = DirectDevice(device.node, exclusive=True)
    try:
        ranges = [Range(at * PIECE, PIECE) for at in (zeros, data)]
        pieces = DeviceSpeedMeter(direct, silent).measure(ranges, "")
    finally:
        direct.close()
    assert pieces[0].bytes_per_s is None
    assert pieces[1].bytes_per_s


def test_a_recovery_alone_restores_data_and_rewrites_nothing_else(make_device: Make) -> None:
    device = make_device("ext4")
    crash(device, 2)
    assert recover_device(device.node, device.journal).restored_bytes > 0
    assert not device.journal.exists()
    device.check()
    with pytest.raises(TargetError, match="does not exist"):
        recover_device(device.node, device.journal)


def test_the_next_run_continues_where_a_power_cut_ended_one(make_device: Make) -> None:
    device = make_device("ext4")
    planned = device.heal().planned_bytes
    crash(device, 3)
    assert 0 < device.heal().planned_bytes < planned
    device.check()


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_data_written_after_the_crash_is_never_overwritten(kind: str, make_device: Make) -> None:
    device = make_device(kind)
    crash(device, 1, device.content["file-0"])  # torn metadata could prevent the mount
    device.overwrite()
    before = device.image.read_bytes()
    with pytest.raises(TargetError, match="may be newer"):
        device.heal()
    assert device.image.read_bytes() == before
    device.journal.unlink()
    device.heal()
    device.check()


def test_after_a_kill_without_power_loss_newer_data_stays_and_the_heal_continues(
    make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device("ext4")

    def kill(_device: DirectDevice, _window: Window, _content: bytes) -> None:
        raise PowerLoss

    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", kill)
        with pytest.raises(PowerLoss):
            device.heal(HealOptions(ranges=((4 << 20, 32 << 20),), piece_bytes=PIECE))
    assert device.journal.exists()
    device.overwrite()
    assert device.heal().restored_bytes == 0
    device.check()


def test_the_journal_is_not_applied_after_a_mount(make_device: Make) -> None:
    device = make_device("ext4")
    crash(device, 0, options=two_windows(device))  # in a file: a torn superblock cannot be mounted
    device.mount()
    device.unmount()
    with pytest.raises(TargetError, match="was mounted or changed"):
        recover_device(device.node, device.journal)


def test_a_journal_is_never_applied_to_another_device(make_device: Make) -> None:
    device, other = make_device("ext4"), make_device("ext4")
    crash(device, 2)
    before = other.image.read_bytes()
    with pytest.raises(TargetError, match="the journal of another device"):
        heal_device(other.node, DeviceOptions(ALL, device.journal), silent)
    assert other.image.read_bytes() == before


def test_a_torn_journal_slot_is_ignored(make_device: Make) -> None:
    device = make_device("ext4")
    crash(device, 2)
    device.heal(HealOptions(ranges=((0, 1),), piece_bytes=PIECE))
    crash(device, 1)
    assert recover_device(device.node, device.journal).restored_bytes > 0
    device.check()


def test_a_file_that_is_not_a_journal_is_kept(make_device: Make) -> None:
    device = make_device("ext4")
    device.journal.write_bytes(b"my thesis")
    with pytest.raises(TargetError, match="is not a journal"):
        device.heal()
    assert device.journal.read_bytes() == b"my thesis"


def test_a_drive_that_stores_other_bytes_ends_the_run_and_the_journal_stays(
    make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device("ext4")
    real_write = DirectDevice.write

    def write(direct: DirectDevice, window: Window, content: bytes) -> None:
        real_write(direct, window, content[:-1] + b"?")

    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", write)
        with pytest.raises(DeviceFailure, match="differs when read back"):
            device.heal()
    device.heal()
    device.check()


def test_an_interrupted_run_leaves_a_journal_that_restores_nothing(
    make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device("ext4")
    calls = 0

    def interrupt(label: str, _done: int, _total: int) -> None:
        nonlocal calls
        calls += label == "rewriting"
        if calls == 3:
            raise KeyboardInterrupt

    outcome = heal_device(device.node, DeviceOptions(ALL, device.journal), interrupt)
    assert outcome.interrupted
    device.mount()
    (device.point / "newer").write_bytes(os.urandom(8 << 20))
    device.unmount()
    assert device.heal().restored_bytes == 0
    device.check()


def test_a_dry_run_writes_nothing(make_device: Make) -> None:
    device = make_device("ext4")
    before = device.image.read_bytes()
    options = HealOptions(everything=True, dry_run=True, piece_bytes=PIECE)
    outcome = heal_device(device.node, DeviceOptions(options, None), silent)
    assert outcome.planned_bytes > 9 << 20
    assert outcome.written_bytes == 0
    assert device.image.read_bytes() == before


def test_nothing_is_chosen_by_the_speed_of_a_page_cache_below(make_device: Make) -> None:
    device = make_device("ext4")
    if not (Path("/sys/block") / device.node.name / "loop/dio").read_text().startswith("0"):
        pytest.skip("this loop device uses direct I/O")
    with pytest.raises(TargetError, match="losetup --direct-io=on"):
        heal_device(device.node, DeviceOptions(HealOptions(dry_run=True), None), silent)
    chosen = HealOptions(everything=True, dry_run=True, piece_bytes=PIECE)
    outcome = heal_device(device.node, DeviceOptions(chosen, None), silent)
    assert outcome.not_timed is not None
    assert (outcome.fresh_mib_per_s, outcome.before_mib_per_s, outcome.map) == (None, None, [])


def refusal_of(node: Path, journal: Path | None) -> str:
    with pytest.raises(TargetError) as refused:
        heal_device(node, DeviceOptions(ALL, journal), silent)
    return str(refused.value)


def test_devices_that_must_not_be_rewritten_are_refused_with_the_reason(
    make_device: Make, tmp_path: Path
) -> None:
    device = make_device("ext4")
    in_memory = device.image.parent / "journal"
    assert "a path on another drive" in refusal_of(device.node, None)
    assert "is not on a drive" in refusal_of(device.node, in_memory)
    assert "is not a directory" in refusal_of(device.node, tmp_path / "absent" / "journal")
    unclean = ["debugfs", "-w", "-R", "ssv state 2", str(device.node)]
    subprocess.run(unclean, check=True, capture_output=True)
    assert "run e2fsck on it" in refusal_of(device.node, device.journal)
    subprocess.run(["mkswap", "-f", str(device.node)], check=True, capture_output=True)
    assert "swap space" in refusal_of(device.node, device.journal)
    subprocess.run(["wipefs", "-a", str(device.node)], check=True, capture_output=True)
    assert "no known file system" in refusal_of(device.node, device.journal)
    assert not device.journal.exists()


def test_a_journal_on_the_devices_own_drive_is_refused(
    loop_device: Callable[..., Path], tmp_path: Path
) -> None:
    node = loop_device(64)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(node)], check=True)
    message = refusal_of(node, tmp_path / "journal")
    assert "on the same drive" in message or "is not on a drive" in message


def test_btrfs_is_refused_with_the_advice_to_heal_its_files(make_device: Make) -> None:
    device = make_device("btrfs", 128)
    options = HealOptions(everything=True, dry_run=True)
    with pytest.raises(TargetError, match="heal its files"):
        heal_device(device.node, DeviceOptions(options, None), silent)

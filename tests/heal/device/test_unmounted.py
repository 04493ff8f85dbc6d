"""A device that nobody uses: rewritten, what is trimmed stays so, what a crash tore is mended."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from devices import PIECE, Device, silent
from torn import PowerLoss, crashed

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.speed import DeviceSpeedometer
from ssdlab.heal.device.whole import DeviceWish, heal_device, recover_device
from ssdlab.heal.device.windows import Window
from ssdlab.heal.options import Wish
from ssdlab.heal.pieces import Range

Make = Callable[..., Device]
KINDS = pytest.mark.parametrize("kind", ["ext4", "ext2", "xfs"])
ALL = Wish(everything=True, piece_bytes=PIECE)


@KINDS
def test_all_that_is_in_use_is_rewritten_and_what_is_trimmed_stays_trimmed(
    kind: str, make_device: Make
) -> None:
    device = make_device(kind)
    before = device.bytes_on_flash()
    outcome = device.heal()
    assert outcome.written_bytes > sum(map(len, device.content.values()))
    assert outcome.moved_bytes == outcome.planned_bytes
    assert device.bytes_on_flash() == before
    assert not device.journal.exists()
    device.check()


@KINDS
@pytest.mark.parametrize("at", [1, 2, 4])
def test_what_a_power_cut_tore_is_put_back_at_the_next_start(
    kind: str, at: int, make_device: Make
) -> None:
    device = make_device(kind)
    crashed(device, at)
    outcome = device.heal()
    assert outcome.restored_bytes > 0
    device.check()


def test_what_is_in_use_and_holds_zeros_has_no_speed(make_device: Make) -> None:
    """A drive may have them in its map alone: their speed is not that of its flash."""
    device = make_device("ext4")
    content = device.image.read_bytes()
    pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]
    zeros = next(at for at, piece in enumerate(pieces) if not any(piece))
    data = next(at for at, piece in enumerate(pieces) if piece.count(0) < PIECE // 10)
    held = DirectDevice(device.node, exclusive=True)
    try:
        ranges = [Range(at * PIECE, PIECE) for at in (zeros, data)]
        found = DeviceSpeedometer(held, silent).measure(ranges, "")
    finally:
        held.close()
    assert found[0].bytes_per_s is None
    assert found[1].bytes_per_s


def test_recover_alone_mends_and_rewrites_nothing(make_device: Make) -> None:
    device = make_device("ext4")
    crashed(device, 2)
    assert recover_device(device.node, device.journal).restored_bytes > 0
    assert not device.journal.exists()
    device.check()
    with pytest.raises(TargetError, match="is not there"):
        recover_device(device.node, device.journal)


def test_a_run_that_was_cut_goes_on_where_it_ended(make_device: Make) -> None:
    device = make_device("ext4")
    planned = device.heal().planned_bytes
    crashed(device, 3)
    assert 0 < device.heal().planned_bytes < planned
    device.check()


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_what_was_written_after_the_crash_is_never_overwritten(
    kind: str, make_device: Make
) -> None:
    device = make_device(kind)
    crashed(device, 1, 3 << 20)  # of a large file's data
    device.overwrite()
    before = device.image.read_bytes()
    with pytest.raises(TargetError, match="may be newer"):
        device.heal()
    assert device.image.read_bytes() == before
    device.journal.unlink()
    device.heal()
    device.check()


def test_after_a_kill_alone_what_is_newer_stays_and_nothing_is_refused(
    make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device("ext4")

    def killed(_held: DirectDevice, _window: Window, _content: bytes) -> None:
        raise PowerLoss

    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", killed)
        with pytest.raises(PowerLoss):
            device.heal(Wish(chosen=((4 << 20, 32 << 20),), piece_bytes=PIECE))
    assert device.journal.exists()
    device.overwrite()
    assert device.heal().restored_bytes == 0
    device.check()


def test_a_mount_alone_keeps_the_journal_from_being_applied(make_device: Make) -> None:
    device = make_device("ext4")
    crashed(device, 2)
    device.mount()
    device.unmount()
    with pytest.raises(TargetError, match="was mounted or changed"):
        recover_device(device.node, device.journal)


def test_a_journal_is_never_applied_to_another_device(make_device: Make) -> None:
    device, other = make_device("ext4"), make_device("ext4")
    crashed(device, 2)
    before = other.image.read_bytes()
    with pytest.raises(TargetError, match="the journal of another device"):
        heal_device(other.node, DeviceWish(ALL, device.journal), silent)
    assert other.image.read_bytes() == before


def test_a_torn_slot_of_the_journal_was_not_begun(make_device: Make) -> None:
    device = make_device("ext4")
    crashed(device, 2)
    device.heal(Wish(chosen=((0, 1),), piece_bytes=PIECE))
    crashed(device, 1)
    assert recover_device(device.node, device.journal).restored_bytes > 0
    device.check()


def test_a_file_that_is_no_journal_is_kept(make_device: Make) -> None:
    device = make_device("ext4")
    device.journal.write_bytes(b"my thesis")
    with pytest.raises(TargetError, match="is no journal"):
        device.heal()
    assert device.journal.read_bytes() == b"my thesis"


def test_a_drive_that_keeps_other_bytes_ends_the_run_and_the_journal_stays(
    make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device("ext4")
    true = DirectDevice.write

    def write(held: DirectDevice, window: Window, content: bytes) -> None:
        true(held, window, content[:-1] + b"?")

    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", write)
        with pytest.raises(DeviceFailure, match="reads otherwise"):
            device.heal()
    device.heal()
    device.check()


def test_an_interrupted_run_leaves_a_journal_that_claims_nothing(
    make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = make_device("ext4")
    told = 0

    def impatient(label: str, _done: int, _total: int) -> None:
        nonlocal told
        told += label == "rewriting"
        if told == 3:
            raise KeyboardInterrupt

    outcome = heal_device(device.node, DeviceWish(ALL, device.journal), impatient)
    assert outcome.interrupted
    device.mount()
    (device.point / "newer").write_bytes(os.urandom(8 << 20))
    device.unmount()
    assert device.heal().restored_bytes == 0
    device.check()


def test_a_dry_run_writes_nothing(make_device: Make) -> None:
    device = make_device("ext4")
    before = device.image.read_bytes()
    wish = Wish(everything=True, dry_run=True, piece_bytes=PIECE)
    outcome = heal_device(device.node, DeviceWish(wish, None), silent)
    assert outcome.planned_bytes > 9 << 20
    assert (outcome.written_bytes, outcome.before_mib_per_s is None) == (0, False)
    assert device.image.read_bytes() == before


def refusal_of(node: Path, journal: Path | None) -> str:
    with pytest.raises(TargetError) as refused:
        heal_device(node, DeviceWish(ALL, journal), silent)
    return str(refused.value)


def test_what_must_not_be_rewritten_is_refused_with_the_reason(
    make_device: Make, tmp_path: Path
) -> None:
    device = make_device("ext4")
    beside = device.image.parent / "journal"
    assert "a path on another drive" in refusal_of(device.node, None)
    assert "is no drive here" in refusal_of(device.node, beside)
    assert "is no folder" in refusal_of(device.node, tmp_path / "absent" / "journal")
    unclean = ["debugfs", "-w", "-R", "ssv state 2", str(device.node)]
    subprocess.run(unclean, check=True, capture_output=True)
    assert "run e2fsck on it" in refusal_of(device.node, device.journal)
    subprocess.run(["mkswap", "-f", str(device.node)], check=True, capture_output=True)
    assert "swap space" in refusal_of(device.node, device.journal)
    subprocess.run(["wipefs", "-a", str(device.node)], check=True, capture_output=True)
    assert "no file system that is known" in refusal_of(device.node, device.journal)
    assert not device.journal.exists()


def test_a_journal_on_the_devices_own_drive_is_refused(
    loop_device: Callable[..., Path], tmp_path: Path
) -> None:
    node = loop_device(64)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(node)], check=True)
    words = refusal_of(node, tmp_path / "journal")
    assert "on the same drive" in words or "is no drive here" in words


def test_a_btrfs_is_sent_to_the_heal_of_files(make_device: Make) -> None:
    device = make_device("btrfs", 128)
    wish = Wish(everything=True, dry_run=True)
    with pytest.raises(TargetError, match="heal its files"):
        heal_device(device.node, DeviceWish(wish, None), silent)

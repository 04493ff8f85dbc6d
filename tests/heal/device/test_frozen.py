"""A mounted device, frozen by turns: who writes goes on, and nothing stays frozen, whoever dies."""

from __future__ import annotations

import mmap
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from cases import Case
from devices import PATIENT_MS, PIECE, Device, silent
from patients import Healing, Writer

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.device import frozen, kernel, watchdog
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.journal import Record
from ssdlab.heal.device.whole import DeviceWish, heal_device, recover_device
from ssdlab.heal.device.windows import Window
from ssdlab.heal.options import Wish
from ssdlab.heal.pieces import Range

Make = Callable[..., Device]
ALL = Wish(everything=True, piece_bytes=PIECE)


def test_who_writes_goes_on_and_every_block_holds_what_was_written_last(mounted: Device) -> None:
    mounted.unmount()
    before = mounted.free_on_flash()
    mounted.mount()
    name = "file-0"
    patient = Healing(
        mounted.point / name,
        mounted.content[name],
        mounted.point / "file-1",
        mounted.content["file-1"],
    )
    writer = Writer(patient, "buffered", 2000)
    before_it = writer.writes()
    outcome = mounted.heal(ALL)
    while writer.writes() == before_it:  # nobody let it run meanwhile
        outcome = mounted.heal(ALL)
    _, mounted.content[name] = writer.end()
    assert outcome.way == "in place, frozen by turns"
    assert outcome.written_bytes > 4 << 20
    assert outcome.longest_freeze_ms is not None
    mounted.unmount()
    assert mounted.free_on_flash() == before, "what is trimmed stays trimmed"
    mounted.check()


def test_a_window_is_done_when_it_is_told_and_the_thaw_makes_its_copy_old(case: Case) -> None:
    assert case.keeper.rewrite(case.record).end == "done"
    armed = case.state()
    assert armed.state == "done"
    assert armed.generation != case.held.generation("ext")
    kernel.freeze(case.keeper.fd)
    frozen_again = case.held.generation("ext")
    kernel.thaw(case.keeper.fd)
    assert frozen_again != case.held.generation("ext")


def test_what_was_written_since_it_was_recorded_stays_and_is_journaled_anew(case: Case) -> None:
    newer = os.urandom(4096)
    with (case.device.point / "file-0").open("r+b") as file:
        file.seek(case.extent.logical + (300 << 10))
        file.write(newer)
    assert case.keeper.rewrite(case.record).end == "done"
    [(record, content)] = case.journal.records()
    assert record.state == "done"
    assert newer in content
    with (case.device.point / "file-0").open("rb") as file:
        file.seek(case.extent.logical + (300 << 10))
        assert file.read(4096) == newer


def test_what_was_freed_since_it_was_recorded_is_not_touched(case: Case) -> None:
    (case.device.point / "file-0").unlink()
    subprocess.run(["sync", "-f", str(case.device.point)], check=True)
    assert case.keeper.rewrite(case.record).end == "changed"


def test_what_the_devices_page_cache_keeps_is_left_alone(case: Case) -> None:
    """A direct write there would go through the cache; here a mapping holds a page in it."""
    at = case.record.ranges[0][0] // 4096 * 4096 + 8192
    with case.device.node.open("rb") as node:
        room = mmap.mmap(node.fileno(), 4096, mmap.MAP_SHARED, mmap.PROT_READ, offset=at)
        room.madvise(mmap.MADV_RANDOM)  # nothing is read ahead, that might be on its way still
        assert room[0] is not None
        found = kernel.in_cache(case.held.fd, case.record.window.ranges)
        assert found == [Range(at, 4096)]
        assert case.keeper.rewrite(case.record).end == "changed"
        room.close()
    assert case.keeper.rewrite(case.record).end == "done"


@pytest.mark.parametrize("number", [0, signal.SIGSTOP, signal.SIGKILL])
def test_a_hand_that_hangs_stops_or_dies_leaves_nothing_frozen(
    number: int, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, tell = os.pipe()

    def hangs(_keeper: watchdog.Keeper, _record: Record) -> watchdog.End:
        os.write(tell, b"frozen")
        os.kill(os.getpid(), number)
        time.sleep(3600)
        raise AssertionError

    def since_it_is_frozen(
        hand: list[int], _writable: list[int], _odd: list[int], bound_s: float
    ) -> tuple[list[int], list[int], list[int]]:
        """The bound runs from then on: however long a busy machine takes to get there."""
        select.select([told, *hand], [], [])
        return select.select(hand, [], [], bound_s)

    was_frozen = []

    def flushed(_device: DirectDevice) -> None:
        was_frozen.append(not kernel.freeze(case.keeper.fd))
        if not was_frozen[-1]:
            kernel.thaw(case.keeper.fd)

    monkeypatch.setattr(watchdog.Keeper, "_frozen", hangs)
    monkeypatch.setattr(watchdog, "select", SimpleNamespace(select=since_it_is_frozen))
    monkeypatch.setattr(DirectDevice, "flush", flushed)
    if number != signal.SIGKILL:  # one that dies is not waited for
        case.keeper.bound_s = 0.5
    end = case.keeper.rewrite(case.record).end
    for end_of_pipe in (told, tell):
        os.close(end_of_pipe)
    assert end == ("failed" if number == signal.SIGKILL else "late")
    assert was_frozen[0], "what it wrote is on the drive before others write"
    assert not kernel.thaw(case.keeper.fd), "it is thawed already"


def test_a_file_system_that_another_froze_is_left_to_it(case: Case) -> None:
    kernel.freeze(case.keeper.fd)
    assert case.keeper.rewrite(case.record).end == "busy"
    assert kernel.thaw(case.keeper.fd), "it is still the other's"


def test_a_thaw_by_another_is_told(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def thawed(keeper: watchdog.Keeper, _record: Record) -> watchdog.End:
        kernel.thaw(keeper.fd)
        return "done"

    monkeypatch.setattr(watchdog.Keeper, "_frozen", thawed)
    assert case.keeper.rewrite(case.record).end == "thawed by others"


def test_what_a_power_cut_tore_in_a_freeze_is_put_back(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image as it is in the freeze, with garbage in what is written, is what is left."""
    image, left = case.device.image, case.device.image.with_name("left")
    whole = DirectDevice.write

    def torn(device: DirectDevice, window: Window, content: bytes) -> None:
        half = len(content) // 8192 * 4096
        whole(device, window, b"\xaa" * half + content[half:])
        left.write_bytes(image.read_bytes())
        whole(device, window, content)

    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", torn)
        assert case.keeper.rewrite(case.record).end == "done"
    case.journal.turn(msgspec.structs.replace(case.state(), session="before", state="armed"))
    case.go_out()
    case.device.put(left)
    assert case.device.heal(ALL).restored_bytes == 128 << 10
    case.device.check()
    case.device.mount()


def test_what_was_written_after_the_thaw_is_newer_also_after_a_power_cut(case: Case) -> None:
    left = case.device.image.with_name("left")
    assert case.keeper.rewrite(case.record).end == "done"
    newer = os.urandom(4096)
    at = case.extent.logical + (300 << 10)
    with (case.device.point / "file-0").open("r+b") as file:
        file.seek(at)
        file.write(newer)
        file.flush()
        os.fsync(file.fileno())
    left.write_bytes(case.device.image.read_bytes())
    case.journal.turn(msgspec.structs.replace(case.state(), session="before", state="armed"))
    case.go_out()
    case.device.put(left)
    assert recover_device(case.device.node, case.device.journal).restored_bytes == 0
    old = case.device.content["file-0"]
    case.device.content["file-0"] = old[:at] + newer + old[at + 4096 :]
    case.device.mount()
    case.device.unmount()
    case.device.check()
    case.device.mount()


def test_a_watchdog_that_is_killed_is_told_and_nothing_is_lost(mounted: Device) -> None:
    def assassin(label: str, done: int, _total: int) -> None:
        if label == "rewriting" and done:
            found = subprocess.run(
                ["pgrep", "--oldest", "-f", f"device.watchdog {mounted.point} "],
                capture_output=True,
                text=True,
                check=True,
            )
            os.kill(int(found.stdout), signal.SIGKILL)

    with pytest.raises(DeviceFailure, match="the watchdog was killed"):
        heal_device(mounted.node, DeviceWish(ALL, mounted.journal, PATIENT_MS), assassin)
    (mounted.point / "file-1").write_bytes(mounted.content["file-1"])
    assert mounted.heal(ALL).restored_bytes == 0
    mounted.unmount()
    mounted.check()


def test_a_mounted_one_that_must_not_be_frozen_is_refused(
    mounted: Device, make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = Wish(everything=True, dry_run=True)

    def refusal(node: Path) -> str:
        with pytest.raises(TargetError) as refused:
            heal_device(node, DeviceWish(dry, None), silent)
        return str(refused.value)

    monkeypatch.setattr(frozen, "_NEEDED", (str(mounted.point / "file-0"),))
    assert "which is needed while it is frozen" in refusal(mounted.node)
    monkeypatch.undo()
    other = make_device("xfs")
    other.mount()
    assert "umount it first, or heal its files" in refusal(other.node)
    bare = make_device("ext2")
    bare.mount()
    assert "umount it first" in refusal(bare.node)

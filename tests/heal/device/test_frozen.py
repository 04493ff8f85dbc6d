"""A mounted device: writers continue, and it never stays frozen, whichever process dies."""

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
from sample_device import FREEZE_MS, PIECE, Device, silent
from sample_file import RandomWriter, SampleFile
from watchdog_case import WatchdogCase
from watchdogs import watchdog_of

from ssdlab.errors import DeviceFailure, TargetError
from ssdlab.heal.device import frozen, kernel, watchdog
from ssdlab.heal.device.drive import DirectDevice
from ssdlab.heal.device.journal import Record
from ssdlab.heal.device.whole import heal_device, recover_device
from ssdlab.heal.device.windows import Window
from ssdlab.heal.options import DeviceOptions, HealOptions
from ssdlab.heal.pieces import Range

Make = Callable[..., Device]
ALL = HealOptions(everything=True, piece_bytes=PIECE)


def test_a_writer_continues_and_every_block_has_its_last_write(mounted: Device) -> None:
    mounted.unmount()
    before = mounted.untrimmed_free_bytes()
    mounted.mount()
    name = "file-0"
    sample = SampleFile(
        mounted.point / name,
        mounted.content[name],
        mounted.point / "file-1",
        mounted.content["file-1"],
    )
    writer = RandomWriter(sample, "buffered", 2000)
    writes_before = writer.writes()
    outcome = mounted.heal(ALL)
    while writer.writes() == writes_before:  # it was not scheduled
        outcome = mounted.heal(ALL)
    _, mounted.content[name] = writer.end()
    assert outcome.way == "in place, in short freezes"
    assert outcome.written_bytes > 4 << 20
    assert outcome.longest_freeze_ms is not None
    mounted.unmount()
    assert mounted.untrimmed_free_bytes() == before, "trimmed space stays trimmed"
    mounted.check()


def test_a_rewritten_window_is_marked_done_and_each_freeze_changes_the_generation(
    case: WatchdogCase,
) -> None:
    assert case.watchdog.rewrite(case.record).end == "done"
    record = case.state()
    assert record.state == "done"
    assert record.generation != case.direct.generation("ext")
    kernel.freeze(case.watchdog.fd)
    second_freeze = case.direct.generation("ext")
    kernel.thaw(case.watchdog.fd)
    assert second_freeze != case.direct.generation("ext")


def test_data_written_after_the_record_was_prepared_is_kept_and_journaled(
    case: WatchdogCase,
) -> None:
    newer = os.urandom(4096)
    with (case.device.point / "file-0").open("r+b") as file:
        file.seek(case.extent.logical + (300 << 10))
        file.write(newer)
    assert case.watchdog.rewrite(case.record).end == "done"
    [(record, content)] = case.journal.records()
    assert record.state == "done"
    assert newer in content
    with (case.device.point / "file-0").open("rb") as file:
        file.seek(case.extent.logical + (300 << 10))
        assert file.read(4096) == newer


def test_space_freed_after_the_record_was_prepared_is_not_written(case: WatchdogCase) -> None:
    (case.device.point / "file-0").unlink()
    subprocess.run(["sync", "-f", str(case.device.point)], check=True)
    assert case.watchdog.rewrite(case.record).end == "changed"


def test_pages_in_the_devices_page_cache_are_not_written(case: WatchdogCase) -> None:
    """A direct write there would become a buffered one. Here a mapping keeps a page cached."""
    at = case.record.ranges[0][0] // 4096 * 4096 + 8192
    with case.device.node.open("rb") as node:
        mapping = mmap.mmap(node.fileno(), 4096, mmap.MAP_SHARED, mmap.PROT_READ, offset=at)
        mapping.madvise(mmap.MADV_RANDOM)  # no read-ahead, which could still be in progress
        assert mapping[0] is not None
        cached = kernel.cached_pages(case.direct.fd, case.record.window.ranges)
        assert cached == [Range(at, 4096)]
        assert case.watchdog.rewrite(case.record).end == "changed"
        mapping.close()
    assert case.watchdog.rewrite(case.record).end == "done"


@pytest.mark.parametrize("number", [0, signal.SIGSTOP, signal.SIGKILL])
def test_a_worker_that_hangs_stops_or_dies_leaves_nothing_frozen(
    number: int, case: WatchdogCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_end, write_end = os.pipe()

    def hang(_watchdog: watchdog.Watchdog, _record: Record) -> watchdog.End:
        os.write(write_end, b"frozen")
        os.kill(os.getpid(), number)
        time.sleep(3600)
        raise AssertionError

    def select_once_frozen(
        worker: list[int], _writable: list[int], _exceptional: list[int], limit_s: float
    ) -> tuple[list[int], list[int], list[int]]:
        """Starts the time limit at the freeze, so that a busy machine does not matter."""
        select.select([read_end, *worker], [], [])
        return select.select(worker, [], [], limit_s)

    was_frozen = []

    def flush(_device: DirectDevice) -> None:
        was_frozen.append(not kernel.freeze(case.watchdog.fd))
        if not was_frozen[-1]:
            kernel.thaw(case.watchdog.fd)

    monkeypatch.setattr(watchdog.Watchdog, "_write_window", hang)
    monkeypatch.setattr(watchdog, "select", SimpleNamespace(select=select_once_frozen))
    monkeypatch.setattr(DirectDevice, "flush", flush)
    if number != signal.SIGKILL:  # a dead worker needs no limit
        case.watchdog.limit_s = 0.5
    end = case.watchdog.rewrite(case.record).end
    for fd in (read_end, write_end):
        os.close(fd)
    assert end == ("failed" if number == signal.SIGKILL else "late")
    assert was_frozen[0], "the device is flushed before the thaw"
    assert not kernel.thaw(case.watchdog.fd), "it is thawed already"


def test_a_file_system_frozen_by_another_program_stays_frozen(case: WatchdogCase) -> None:
    kernel.freeze(case.watchdog.fd)
    assert case.watchdog.rewrite(case.record).end == "busy"
    assert kernel.thaw(case.watchdog.fd), "the other program's freeze remains"


def test_a_thaw_by_another_program_is_reported(
    case: WatchdogCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def thaw(dog: watchdog.Watchdog, _record: Record) -> watchdog.End:
        kernel.thaw(dog.fd)
        return "done"

    monkeypatch.setattr(watchdog.Watchdog, "_write_window", thaw)
    assert case.watchdog.rewrite(case.record).end == "thawed by others"


def test_data_torn_by_a_power_cut_during_a_freeze_is_restored(
    case: WatchdogCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state after the cut is the image during the freeze, with garbage in the write."""
    image, after_cut = case.device.image, case.device.image.with_name("after-cut")
    complete_write = DirectDevice.write

    def torn_write(device: DirectDevice, window: Window, content: bytes) -> None:
        half = len(content) // 8192 * 4096
        complete_write(device, window, b"\xaa" * half + content[half:])
        after_cut.write_bytes(image.read_bytes())
        complete_write(device, window, content)

    with monkeypatch.context() as patch:
        patch.setattr(DirectDevice, "write", torn_write)
        assert case.watchdog.rewrite(case.record).end == "done"
    case.journal.update(msgspec.structs.replace(case.state(), session="before", state="armed"))
    case.lose_power()
    case.device.put(after_cut)
    assert case.device.heal(ALL).restored_bytes == 128 << 10
    case.device.check()
    case.device.mount()


def test_data_written_after_the_thaw_survives_a_power_cut_and_a_recovery(
    case: WatchdogCase,
) -> None:
    after_cut = case.device.image.with_name("after-cut")
    assert case.watchdog.rewrite(case.record).end == "done"
    newer = os.urandom(4096)
    at = case.extent.logical + (300 << 10)
    with (case.device.point / "file-0").open("r+b") as file:
        file.seek(at)
        file.write(newer)
        file.flush()
        os.fsync(file.fileno())
    after_cut.write_bytes(case.device.image.read_bytes())
    case.journal.update(msgspec.structs.replace(case.state(), session="before", state="armed"))
    case.lose_power()
    case.device.put(after_cut)
    assert recover_device(case.device.node, case.device.journal).restored_bytes == 0
    old = case.device.content["file-0"]
    case.device.content["file-0"] = old[:at] + newer + old[at + 4096 :]
    case.device.mount()
    case.device.unmount()
    case.device.check()
    case.device.mount()


def test_a_killed_watchdog_is_reported_and_no_data_is_lost(mounted: Device) -> None:
    def kill_watchdog(label: str, done: int, _total: int) -> None:
        if label == "rewriting" and done:
            watchdog = watchdog_of(mounted.point)
            assert watchdog
            watchdog.kill()

    with pytest.raises(DeviceFailure, match="the watchdog was killed"):
        heal_device(mounted.node, DeviceOptions(ALL, mounted.journal, FREEZE_MS), kill_watchdog)
    (mounted.point / "file-1").write_bytes(mounted.content["file-1"])
    assert mounted.heal(ALL).restored_bytes == 0
    mounted.unmount()
    mounted.check()


def test_a_mounted_file_system_that_must_not_be_frozen_is_refused(
    mounted: Device, make_device: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry_run = HealOptions(everything=True, dry_run=True)

    def refusal(node: Path) -> str:
        with pytest.raises(TargetError) as refused:
            heal_device(node, DeviceOptions(dry_run, None), silent)
        return str(refused.value)

    monkeypatch.setattr(frozen, "_SYSTEM_PATHS", (str(mounted.point / "file-0"),))
    assert "which is needed while it is frozen" in refusal(mounted.node)
    monkeypatch.undo()
    other = make_device("xfs")
    other.mount()
    assert "unmount it first, or heal its files" in refusal(other.node)
    bare = make_device("ext2")
    bare.mount()
    assert "unmount it first" in refusal(bare.node)

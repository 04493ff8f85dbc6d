"""Samples of a real drive: /sys/block/*/stat, block tracepoints, sensors and its counters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssdlab.errors import TargetError, UsageError
from ssdlab.stats.rates import Totals, bin_of, quantile_of_bins, rates_between
from ssdlab.storage_stack import block_trace
from ssdlab.storage_stack.activity import read_activity
from ssdlab.storage_stack.block_trace import RequestTimes, open_trace, operation_of
from ssdlab.storage_stack.blockdev import BlockDevice, device_by_name
from ssdlab.storage_stack.health.smart import WriteCounters
from ssdlab.storage_stack.live_drive import LiveDrive, drive_at

NVME = "devices/pci0000:00/0000:03:00.0/nvme/nvme0"
STAT = "100 3 800 50 200 1 1600 400 7 300 450 10 0 8000 5 20 40"
LATER = "400 3 3200 110 1200 1 17600 2400 5 800 2450 10 0 8000 5 30 90"
GIB = 1 << 30


def _drive(captured: Any, stat: str = STAT) -> BlockDevice:
    disk = captured.disk("nvme0n1", "259:0", NVME, {"stat": stat})
    sensor = disk / "device" / "hwmon0"
    sensor.mkdir(parents=True)
    (sensor / "temp1_input").write_text("41850\n")
    (sensor / "temp1_max").write_text("84850\n")
    device = device_by_name("nvme0n1", captured.sys)
    assert device is not None
    return device


def test_the_columns_of_stat_are_requests_bytes_and_times(captured: Any) -> None:
    activity = read_activity(_drive(captured), captured.sys)
    assert activity.totals["read"] == Totals(100, 800 * 512, 50_000.0)
    assert activity.totals["write"] == Totals(200, 1600 * 512, 400_000.0)
    assert activity.totals["trim"] == Totals(10, 8000 * 512, 5_000.0)
    assert activity.totals["flush"] == Totals(20, 0, 40_000.0)
    assert (activity.in_flight, activity.busy_s) == (7, 0.3)


def test_an_older_kernel_has_fewer_columns_and_a_missing_drive_is_an_error(captured: Any) -> None:
    device = _drive(captured, " ".join(STAT.split()[:11]))
    activity = read_activity(device, captured.sys)
    assert (activity.totals["trim"], activity.totals["flush"]) == (Totals(), Totals())
    (captured.sys / NVME / "nvme0n1" / "stat").unlink()
    with pytest.raises(TargetError, match="no statistics"):
        read_activity(device, captured.sys)


def _live(captured: Any, read: Callable[[BlockDevice], WriteCounters | None]) -> LiveDrive:
    return LiveDrive(_drive(captured), captured.sys, read_counters=read, smart_every_s=0.0)


def test_a_sample_has_what_happened_since_the_one_before(
    captured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [10.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    drive = _live(captured, lambda _: None)
    now[0] = 12.0
    (captured.sys / NVME / "nvme0n1" / "stat").write_text(LATER)
    sample = drive.sample(wait_for_smart=True)
    assert sample.seconds == 2.0
    assert (sample.read.rate, sample.write.rate, sample.flush.rate) == (150.0, 500.0, 5.0)
    assert sample.write.bytes_rate == 16_000 * 512 / 2
    assert (sample.read.mean_us, sample.write.mean_us) == (200.0, 2000.0)
    assert (sample.trim.rate, sample.trim.mean_us) == (0.0, None)
    assert (sample.in_flight, sample.busy) == (5, 0.25)
    assert (sample.temperature_c, sample.temperature_limit_c) == (41.85, 84.85)
    assert sample.read.p99_us is None


def test_write_amplification_needs_counters_that_advanced(captured: Any) -> None:
    readings = iter(
        (
            WriteCounters(100 * GIB, 150 * GIB, GIB, ""),
            WriteCounters(105 * GIB, 165 * GIB, GIB, ""),
            WriteCounters(120 * GIB, 210 * GIB, GIB, ""),
            WriteCounters(121 * GIB, None, GIB, ""),
        )
    )
    drive = _live(captured, lambda _: next(readings))
    samples = [drive.sample(wait_for_smart=True) for _ in range(4)]
    assert [sample.waf_ever for sample in samples] == [1.5, 165 / 105, 1.75, None]
    assert [sample.waf for sample in samples] == [None, None, 3.0, None]
    assert samples[3].host_bytes == 121 * GIB


def test_a_slow_reading_of_the_counters_delays_no_sample(captured: Any) -> None:
    answers = threading.Event()

    def slow(_: BlockDevice) -> WriteCounters:
        answers.wait(30)
        return WriteCounters(GIB, None, 512_000, "")

    drive = _live(captured, slow)
    assert drive.sample().host_bytes is None
    answers.set()
    assert drive.sample(wait_for_smart=True).host_bytes == GIB


@pytest.mark.parametrize(
    ("rwbs", "operation"),
    [
        *(("R", "read"), ("RA", "read"), ("W", "write"), ("WS", "write"), ("WFS", "write")),
        *(("FWFS", "write"), ("FF", "flush"), ("F", "flush"), ("D", "trim"), ("N", None)),
    ],
)
def test_operations_are_the_letters_of_blktrace(rwbs: str, operation: str | None) -> None:
    assert operation_of(rwbs) == operation


def _event(ms: float, event: str, rwbs: str, sector: int) -> str:
    size = " 4096" if event == "issue" else ""
    return (
        f"  fio-71  [001] d..1. {ms / 1e3:.6f}: block_rq_{event}: 259,0 {rwbs}{size} () {sector} "
        "+ 8 none,0,0 [0]"
    )


def test_issues_and_completions_are_paired_by_sector_and_operation() -> None:
    times = RequestTimes()
    lines = [
        _event(10, "issue", "R", 8),
        _event(11, "issue", "WS", 8),
        _event(12, "complete", "WS", 8),
        _event(12.5, "complete", "R", 8),
        _event(13, "complete", "R", 64),
        "  fio-71 [001] d..1. 1.0: block_rq_insert: 259,0 R 4096 () 8 + 8 none,0,0 [0]",
        _event(14, "issue", "R", 72),
    ]
    for line in lines:
        times.add(line)
    assert times.bins["write"] == {bin_of(1000.0): 1}
    assert times.bins["read"] == {bin_of(2500.0): 1}
    assert times.sums_us["read"] == pytest.approx(2500.0)
    times.forget_issued()
    times.add(_event(99, "complete", "R", 72))
    assert sum(times.bins["read"].values()) == 1


def test_bins_are_at_most_a_quarter_wide_and_give_quantiles() -> None:
    for latency in (1.0, 1.1, 2.0, 5.1, 99.0, 128.0, 100_000.0):
        assert latency <= bin_of(latency) <= 1.25 * latency
    bins = ((10.0, 50), (20.0, 49), (80.0, 1))
    assert [quantile_of_bins(bins, share) for share in (0.5, 0.99, 1.0)] == [10.0, 20.0, 80.0]
    before, now = Totals(5, 0, 0.0, 0, ((10.0, 5),)), Totals(7, 0, 0.0, 0, ((10.0, 5), (30.0, 2)))
    assert rates_between(before, now, 1.0).p50_us == 30.0


def test_a_machine_without_tracepoints_says_what_to_do(
    captured: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = _drive(captured)
    monkeypatch.setattr(block_trace, "TRACEFS", (tmp_path / "none",))
    trace, why = open_trace(device)
    assert trace is None
    assert "tracepoints cannot be read here" in why
    (tmp_path / "events" / "block" / "block_rq_issue").mkdir(parents=True)
    (tmp_path / "instances").mkdir()
    monkeypatch.setattr(block_trace, "TRACEFS", (tmp_path,))
    trace, why = open_trace(device)
    assert trace is None
    assert "cannot be used" in why


def test_paths_without_one_drive_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="does not exist"):
        drive_at(str(tmp_path / "none"))
    with pytest.raises(UsageError, match="is not on a drive of this machine"):
        drive_at("/proc")


_TRACED = """
import os, sys, time
from ssdlab.storage_stack.live_drive import LiveDrive, drive_at
with LiveDrive.open(drive_at(sys.argv[1]), 3600.0) as drive:
    assert drive.trace is not None, drive.no_trace
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
    import mmap
    block = mmap.mmap(-1, 4096)
    for at in range(200):
        os.preadv(fd, [block], at * 8192)
    for at in range(100):
        os.pwritev(fd, [block], at * 8192)
    os.fsync(fd)
    sample = drive.sample()
    counts = {op: sum(n for _, n in total.bins) for op, total in drive.totals.items()}
    print(counts["read"], counts["write"], sample.read.p50_us > 0, sample.read.mean_us > 0)
print(sorted(os.listdir("/sys/kernel/tracing/instances")))
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root, unshare")
def test_the_tracepoints_of_this_kernel_give_each_request_and_leave_no_trace(
    loop_device: Callable[..., Path],
) -> None:
    device = loop_device(16)
    mounted = "mount -t tracefs none /sys/kernel/tracing 2>/dev/null"
    present = "test -e /sys/kernel/tracing/events/block/block_rq_issue"
    shell = f'{mounted}; {present} || exit 77; exec "$@"'
    command = ["unshare", "-m", "sh", "-c", shell, "sh", sys.executable, "-c", _TRACED]
    done = subprocess.run([*command, str(device)], check=False, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no tracefs here")
    assert done.returncode == 0, done.stderr
    counted, left = done.stdout.splitlines()
    reads, writes, has_percentiles, has_mean = counted.split()
    assert int(reads) >= 200
    assert int(writes) >= 100
    assert (has_percentiles, has_mean) == ("True", "True")
    assert device.name not in left

"""`LiveDrive`: samples of a real drive: rates, latencies, temperature, flash writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from ssdlab.errors import TargetError, UsageError
from ssdlab.stats.rates import Rates, Totals, rates_between
from ssdlab.storage_stack.activity import OPERATIONS, Activity, read_activity
from ssdlab.storage_stack.block_trace import BlockTrace, open_trace
from ssdlab.storage_stack.blockdev import (
    SYS,
    BlockDevice,
    device_at,
    device_by_name,
    is_block_device,
)
from ssdlab.storage_stack.health.hardware import Temperature, temperature
from ssdlab.storage_stack.health.smart import WriteCounters, read_write_counters
from ssdlab.storage_stack.layers import drives_of_mount
from ssdlab.storage_stack.mounts import mount_of

STEPS_MIN = 10
"""The drive's write counters must have advanced this many of their steps for a ratio."""


class DriveSample(msgspec.Struct, frozen=True):
    """Activity of a drive since the previous sample, over `seconds`.

    `busy` is the share of that time with a request in flight, `in_flight` their number now. The
    mean latency is the kernel's, with the time in its queues. Percentiles are of the tracepoints,
    without it; None without them. `host_bytes` and `flash_bytes` are the drive's own counters over
    its life, `waf_ever` their ratio, `waf` that of their growth since the start; None if not known.
    """

    drive: str
    seconds: float
    in_flight: int
    busy: float
    read: Rates
    write: Rates
    trim: Rates
    flush: Rates
    temperature_c: float | None = None
    temperature_limit_c: float | None = None
    host_bytes: int | None = None
    flash_bytes: int | None = None
    waf: float | None = None
    waf_ever: float | None = None
    traced_dropped: int = 0


@dataclass
class _SmartReader:
    """Reads the drive's counters in a thread of its own, so that no sample waits for a drive."""

    read: Callable[[], WriteCounters | None]
    every_s: float
    first: WriteCounters | None = None
    latest: WriteCounters | None = None
    _due_s: float = 0.0
    _thread: threading.Thread | None = None

    def poll(self, *, wait: bool = False) -> None:
        """Starts a reading if one is due; `wait` waits for it."""
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
        if self._thread is None and time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + self.every_s
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()
        if wait and self._thread is not None:
            self._thread.join()

    def _read(self) -> None:
        counters = self.read()
        if counters is not None:
            self.first = self.first or counters
            self.latest = counters


@dataclass
class LiveDrive:
    """A drive being watched; `close` ends its trace. Without one, `no_trace` is the reason."""

    device: BlockDevice
    sys: Path = SYS
    trace: BlockTrace | None = None
    no_trace: str = ""
    smart_every_s: float = 60.0
    read_counters: Callable[[BlockDevice], WriteCounters | None] = read_write_counters
    _smart: _SmartReader = field(init=False)
    _before: tuple[float, Activity, dict[str, Totals]] = field(init=False)

    def __post_init__(self) -> None:
        """Takes the first reading."""
        self._smart = _SmartReader(lambda: self.read_counters(self.device), self.smart_every_s)
        self._before = self._read()

    @classmethod
    def open(cls, device: BlockDevice, smart_every_s: float) -> Self:
        """Watches a drive, with its tracepoints where they are permitted.

        Raises:
            TargetError: the kernel has no statistics of it.
        """
        trace, why = open_trace(device)
        return cls(device, trace=trace, no_trace=why, smart_every_s=smart_every_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the trace."""
        if self.trace is not None:
            self.trace.close()

    @property
    def totals(self) -> dict[str, Totals]:
        """The totals of the last reading: the kernel's sums, and the bins of the trace."""
        return self._before[2]

    def sample(self, *, wait_for_smart: bool = False) -> DriveSample:
        """Activity since the previous sample.

        Raises:
            TargetError: the drive is gone.
        """
        self._smart.poll(wait=wait_for_smart)
        before, now = self._before, self._read()
        self._before = now
        seconds = max(now[0] - before[0], 1e-9)
        rates = {op: rates_between(before[2][op], now[2][op], seconds) for op in OPERATIONS}
        sensor: Temperature | None = temperature(self.device, self.sys)
        counters, first = self._smart.latest, self._smart.first
        return DriveSample(
            drive=self.device.name,
            seconds=seconds,
            in_flight=now[1].in_flight,
            busy=min(1.0, (now[1].busy_s - before[1].busy_s) / seconds),
            temperature_c=None if sensor is None else sensor.celsius,
            temperature_limit_c=None if sensor is None else sensor.limit,
            host_bytes=None if counters is None else counters.host_bytes,
            flash_bytes=None if counters is None else counters.flash_bytes,
            waf=_ratio(first, counters),
            waf_ever=_ratio(None, counters),
            traced_dropped=0 if self.trace is None else self.trace.dropped,
            **rates,
        )

    def _read(self) -> tuple[float, Activity, dict[str, Totals]]:
        activity = read_activity(self.device, self.sys)
        totals = dict(activity.totals)
        if self.trace is not None:
            self.trace.read()
            for op in OPERATIONS:
                totals[op] = msgspec.structs.replace(
                    totals[op],
                    bins=tuple(sorted(self.trace.times.bins[op].items())),
                    binned_us=self.trace.times.sums_us[op],
                )
        return time.monotonic(), activity, totals


def _ratio(first: WriteCounters | None, now: WriteCounters | None) -> float | None:
    """Flash writes / host writes since `first`, or over the life; None if too few, or not known."""
    if now is None or now.flash_bytes is None:
        return None
    host, flash = now.host_bytes, now.flash_bytes
    if first is not None:
        host, flash = host - first.host_bytes, flash - (first.flash_bytes or 0)
    return flash / host if host >= STEPS_MIN * now.step_bytes else None


def drive_at(target: str) -> BlockDevice:
    """The drive to watch: a device itself, a partition's disk, or the drive under a path.

    Raises:
        TargetError: there is no such path.
        UsageError: several drives are under it, or none.
    """
    path = Path(target)
    if is_block_device(path):
        device = device_at(path)
        return device_by_name(device.whole_disk) or device
    if not path.exists():
        raise TargetError(
            f"{target} does not exist; give a block device or a directory on a drive (a served "
            "twin is shown by: ssdlab watch SOCKET.control)"
        )
    drives = drives_of_mount(mount_of(path))
    if len(drives) != 1:
        names = " and ".join(str(drive.node) for drive in drives)
        if drives:
            raise UsageError(f"{target} is on several drives; give one of {names}")
        raise UsageError(
            f"{target} is not on a drive of this machine; give a block device, or a directory on a "
            "drive"
        )
    return drives[0]

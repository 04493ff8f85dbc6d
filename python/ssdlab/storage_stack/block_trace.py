"""Latencies of single requests, from the kernel's tracepoints block_rq_issue and block_rq_complete.

A tracing instance of its own, so that other tracers are not disturbed; it is removed at the end.
Source: Documentation/trace/events.rst and ftrace.rst (instances, trace_pipe). A latency is from the
driver's start of a request to its completion: the time of the drive and its link, without the
scheduler. The buffer keeps the first events after each reading and drops the rest: of a busy drive
the latencies are a sample.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ssdlab.stats.rates import bin_of
from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.pseudofile import read_text

TRACEFS: Final = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
BUFFER_KIB: Final = 512
"""Buffer of each processor: about 4000 requests between two readings."""
_EVENTS: Final = ("block_rq_issue", "block_rq_complete")
_MINOR_BITS: Final = 20
_PREFIX: Final = "ssdlab-"
_LINE: Final = re.compile(
    r"\s(?P<s>\d+\.\d+): block_rq_(?P<event>issue|complete): \d+,\d+ (?P<rwbs>[A-Z]+) "
    r"(?:\d+ )?\(.*?\) (?P<sector>\d+) \+ "
)
_OPS: Final = {"R": "read", "W": "write", "D": "trim", "F": "flush"}


class RequestTimes:
    """Latencies by operation and bin, from the lines of trace_pipe."""

    def __init__(self) -> None:
        """No request yet."""
        self.bins: dict[str, dict[float, int]] = {op: {} for op in _OPS.values()}
        self.sums_us: dict[str, float] = dict.fromkeys(_OPS.values(), 0.0)
        self._issued: dict[tuple[str, str], float] = {}

    def add(self, line: str) -> None:
        """Adds a line; lines of other events are ignored, as are ends without a start."""
        match = _LINE.search(line)
        op = None if match is None else operation_of(match["rwbs"])
        if match is None or op is None:
            return
        key = (op, match["sector"])
        if match["event"] == "issue":
            self._issued[key] = float(match["s"])
        elif (issued := self._issued.pop(key, None)) is not None:
            latency_us = max(0.0, (float(match["s"]) - issued) * 1e6)
            upper = bin_of(latency_us)
            self.bins[op][upper] = self.bins[op].get(upper, 0) + 1
            self.sums_us[op] += latency_us

    def forget_issued(self) -> None:
        """Forgets the requests in flight: events were dropped, maybe their ends."""
        self._issued.clear()


class BlockTrace:
    """The latencies of a device's requests while it is open."""

    def __init__(self, device: BlockDevice, tracing: Path) -> None:
        """Starts tracing in an instance below `tracing`.

        Raises:
            OSError: it is not permitted, or the kernel lacks an event.
        """
        self.times = RequestTimes()
        self.dropped = 0
        self._instance = tracing / "instances" / f"{_PREFIX}{os.getpid()}-{device.name}"
        self._rest = ""
        self._pipe = -1
        _remove_abandoned(tracing / "instances")
        self._instance.mkdir()
        try:
            self._start(device)
        except OSError:
            self.close()
            raise

    def _start(self, device: BlockDevice) -> None:
        (self._instance / "buffer_size_kb").write_text(f"{BUFFER_KIB}\n")
        (self._instance / "options" / "overwrite").write_text("0\n")
        number = device.major << _MINOR_BITS | device.minor
        self._pipe = os.open(self._instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        for event in _EVENTS:
            folder = self._instance / "events" / "block" / event
            (folder / "filter").write_text(f"dev == {number}\n")
            (folder / "enable").write_text("1\n")

    def close(self) -> None:
        """Ends tracing and removes the instance."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        _remove(self._instance)

    def read(self) -> None:
        """Adds the requests that completed since the last reading."""
        for line in self._lines():
            self.times.add(line)
        dropped = self._count_dropped()
        if dropped != self.dropped:
            self.dropped = dropped
            self.times.forget_issued()

    def _lines(self) -> Iterator[str]:
        while True:
            try:
                part = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                return
            if not part:
                return
            *lines, self._rest = (self._rest + part.decode(errors="replace")).split("\n")
            yield from lines

    def _count_dropped(self) -> int:
        total = 0
        for stats in self._instance.glob("per_cpu/cpu*/stats"):
            for line in (read_text(stats) or "").splitlines():
                name, _, value = line.partition(":")
                if name in {"dropped events", "overrun"}:
                    total += int(value)
        return total


def _remove(instance: Path) -> None:
    with contextlib.suppress(OSError):
        (instance / "events" / "enable").write_text("0\n")
    with contextlib.suppress(OSError):
        instance.rmdir()


def _remove_abandoned(instances: Path) -> None:
    """Removes the instances of processes that were killed."""
    for instance in instances.glob(f"{_PREFIX}*"):
        pid = instance.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            _remove(instance)


def operation_of(rwbs: str) -> str | None:
    """The operation in the letters of blk_fill_rwbs: "WS" and "FWS" are writes, "FF" a flush."""
    letters = rwbs[1:] if rwbs.startswith("F") and len(rwbs) > 1 else rwbs
    return _OPS.get(letters[:1])


def open_trace(device: BlockDevice) -> tuple[BlockTrace | None, str]:
    """A trace of the device, or None and the reason, with what to do about it."""
    tracing = next((path for path in TRACEFS if _has_events(path)), None)
    if tracing is None:
        how = "as root" if os.geteuid() else "sudo mount -t tracefs tracefs /sys/kernel/tracing"
        return None, f"the kernel's block tracepoints cannot be read here ({how})"
    try:
        return BlockTrace(device, tracing), ""
    except OSError as error:
        return (
            None,
            f"the kernel's block tracepoints cannot be used ({error.strerror}); try as root",
        )


def _has_events(tracing: Path) -> bool:
    try:
        return (tracing / "events" / "block" / _EVENTS[0]).exists()
    except PermissionError:
        return False

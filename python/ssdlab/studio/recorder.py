"""Records what a served twin does: a row of numbers for each sample, and its inside then."""

from __future__ import annotations

import gzip
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ssdlab.device import Control, Watcher
from ssdlab.stats.rates import Rates, Totals, rates_between

MEMORY: Final = 128 << 20
"""Bytes of recorded insides; beyond that the oldest samples are forgotten."""
_FAST: Final = 1  # gzip's level


class Row(msgspec.Struct, frozen=True):
    """A sample: what has happened in the `seconds` before it, `at_s` seconds after the first.

    `host` and `flash` are bytes written by the host and to flash. Latencies are by the twin's
    clock, in ns, of commands of all kinds; None without one.
    """

    number: int
    at_s: float
    seconds: float
    requests: int
    read_per_s: float
    write_per_s: float
    read_mib_per_s: float
    write_mib_per_s: float
    bytes: float
    p50: float | None
    p99: float | None
    host: int
    flash: int
    free: int
    power: str
    cuts: int
    clients: int
    in_flight: int


class Rows(msgspec.Struct, frozen=True):
    """Rows from a number on.

    `first` is the oldest that is still known, and `ended` why no more will follow. `record` is
    another number for each recorder.
    """

    record: int
    first: int
    rows: list[Row]
    ended: str | None


class Recorder:
    """The record of a served twin. `take` and reading it may run in different threads.

    Raises:
        UsageError: the drive does not report its inside.
        TargetError: the server has ended.
    """

    def __init__(self, control: Control, memory: int = MEMORY) -> None:
        self._control = control
        self._watcher = Watcher(control)
        self._memory = memory
        self._lock = threading.Lock()
        self._rows: deque[Row] = deque()
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._number = 0
        self.record = time.time_ns() // 1000
        """A number of its own."""
        self._began_s = time.monotonic()
        self._ended: str | None = None
        self._last = control.inside()
        self.drive: dict[str, Any] = self._last["drive"]
        """The twin's model and dimensions."""
        self.counters = list(self._last["counters"])
        """The names of its counters."""
        self.take()

    def take(self) -> None:
        """Takes a sample."""
        before = _sum_of(self._watcher.totals.values())
        sample = self._watcher.sample()
        after = _sum_of(self._watcher.totals.values())
        rates = rates_between(before, after, sample.seconds)
        inside, last = self._control.inside(), self._last
        self._last = inside
        row = Row(
            number=self._number,
            at_s=time.monotonic() - self._began_s,
            seconds=sample.seconds,
            requests=after.requests - before.requests,
            read_per_s=sample.read.rate,
            write_per_s=sample.write.rate,
            read_mib_per_s=_mib(sample.read),
            write_mib_per_s=_mib(sample.write),
            bytes=(sample.read.bytes_rate + sample.write.bytes_rate) * sample.seconds,
            p50=_ns(rates.p50_us),
            p99=_ns(rates.p99_us),
            host=_since(last, inside, "host_write_bytes"),
            flash=(inside["programmed_units"] - last["programmed_units"])
            * self.drive["unit_bytes"],
            free=inside["free_superblocks"],
            power=sample.power,
            cuts=inside["power_cuts"],
            clients=sample.clients,
            in_flight=sample.in_flight,
        )
        frame = gzip.compress(msgspec.json.encode(inside), _FAST, mtime=0)
        with self._lock:
            self._rows.append(row)
            self._frames.append(frame)
            self._number += 1
            self._bytes += len(frame)
            while self._bytes > self._memory and len(self._rows) > 1:
                self._rows.popleft()
                self._bytes -= len(self._frames.popleft())

    def end(self, why: str) -> None:
        """Says that no samples will follow, and why."""
        with self._lock:
            self._ended = why

    def rows(self, start: int) -> Rows:
        """The rows from number `start` on."""
        with self._lock:
            first = self._rows[0].number
            rows = [self._rows[n] for n in range(max(0, start - first), len(self._rows))]
            return Rows(self.record, first, rows, self._ended)

    def frame(self, number: int) -> bytes | None:
        """The inside at a sample: JSON, gzipped; None if it is not known, or no longer."""
        with self._lock:
            index = number - self._rows[0].number
            return self._frames[index] if 0 <= index < len(self._frames) else None


def _sum_of(totals: Iterable[Totals]) -> Totals:
    """The totals of all kinds of requests together."""
    each = list(totals)
    bins: Counter[float] = Counter()
    for one in each:
        bins.update(dict(one.bins))
    return Totals(
        requests=sum(one.requests for one in each),
        bytes=sum(one.bytes for one in each),
        busy_us=sum(one.busy_us for one in each),
        failed=sum(one.failed for one in each),
        bins=tuple(sorted(bins.items())),
        binned_us=sum(one.binned_us for one in each),
    )


def _mib(rates: Rates) -> float:
    return rates.bytes_rate / (1 << 20)


def _ns(micros: float | None) -> float | None:
    return None if micros is None else 1e3 * micros


def _since(before: dict[str, Any], now: dict[str, Any], counter: str) -> int:
    return int(now["counters"][counter]) - int(before["counters"][counter])

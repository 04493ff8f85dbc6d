"""Samples a served twin: rates, latencies and write amplification between two samples."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from ssdlab.device.control import Control

KINDS: Final = ("read", "write", "trim", "flush")


class Rates(msgspec.Struct, frozen=True):
    """One kind of command: commands and bytes per second, latencies by the drive's clock.

    A latency is the upper end of its bin, at most a quarter too high; None without a command.
    """

    rate: float
    bytes_rate: float
    failed: int
    mean_us: float | None
    p50_us: float | None
    p99_us: float | None


class Sample(msgspec.Struct, frozen=True):
    """Activity of a drive since the previous sample, over `seconds` of wall-clock time.

    `waf` is the write amplification since the previous sample, `waf_ever` since the drive was new;
    None without host writes. `counters` has all counters.
    """

    seconds: float
    power: str
    clients: int
    in_flight: int
    virtual_s: float
    waf: float | None
    waf_ever: float | None
    read: Rates
    write: Rates
    trim: Rates
    flush: Rates
    counters: dict[str, float | None]


class Watcher:
    """Takes samples of a served twin."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._previous = _Reading(control)

    def sample(self) -> Sample:
        """Activity since the previous sample, or since the watcher was created."""
        before, now = self._previous, _Reading(self._control)
        self._previous = now
        seconds = max(now.at_s - before.at_s, 1e-9)
        rates = {kind: _rates(before.meter[kind], now.meter[kind], seconds) for kind in KINDS}
        return Sample(
            seconds=seconds,
            power=self._control.power().power,
            clients=int(now.counters["clients"] or 0),
            in_flight=now.meter["in_flight"],
            virtual_s=now.counters["virtual_s"] or 0.0,
            waf=_waf(before.counters, now.counters),
            waf_ever=now.counters["waf"],
            counters=now.counters,
            **rates,
        )


class _Reading:
    """Counters and meter of a drive at a moment of the monotonic clock."""

    def __init__(self, control: Control) -> None:
        self.at_s = time.monotonic()
        self.counters = control.counters()
        self.meter = control.request("meter")


def _rates(before: dict[str, Any], now: dict[str, Any], seconds: float) -> Rates:
    commands = now["commands"] - before["commands"]
    earlier = dict(before["histogram_us"])
    counts = [(upper, count - earlier.get(upper, 0)) for upper, count in now["histogram_us"]]
    latency_us = now["latency_us"] - before["latency_us"]
    return Rates(
        rate=commands / seconds,
        bytes_rate=(now["bytes"] - before["bytes"]) / seconds,
        failed=now["failed"] - before["failed"],
        mean_us=latency_us / commands if commands else None,
        p50_us=_quantile(counts, 0.5),
        p99_us=_quantile(counts, 0.99),
    )


def _quantile(counts: list[tuple[float, int]], share: float) -> float | None:
    """Upper end of the bin in which the quantile `share` (0 to 1) falls."""
    left = share * sum(count for _, count in counts)
    if left <= 0:
        return None
    for upper, count in counts:
        left -= count
        if left <= 0:
            return upper
    return counts[-1][0]


def _waf(before: dict[str, float | None], now: dict[str, float | None]) -> float | None:
    host = (now["host_write_bytes"] or 0) - (before["host_write_bytes"] or 0)
    return (_flash_bytes(now) - _flash_bytes(before)) / host if host > 0 else None


def _flash_bytes(counters: dict[str, float | None]) -> float:
    return (counters["waf"] or 0) * (counters["host_write_bytes"] or 0)

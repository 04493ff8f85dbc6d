"""What a served twin did between two looks: rates, latencies, write amplification."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from ssdlab.device.control import Control

KINDS: Final = ("read", "write", "trim", "flush")


class Rates(msgspec.Struct, frozen=True):
    """One kind of command: how many a second, bytes a second, latencies on the drive's clock.

    A latency is the end of its bin, at most a quarter too long; None where there was no command.
    """

    rate: float
    bytes_rate: float
    failed: int
    mean_us: float | None
    p50_us: float | None
    p99_us: float | None


class Look(msgspec.Struct, frozen=True):
    """What a drive did since the look before, over `seconds` of the wall's clock.

    `waf` is flash writes for each host write meanwhile, `waf_ever` since the drive was new; None
    without host writes. `counters` are all that there are.
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
    """Looks at a served twin again and again."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._before = self._state()

    def look(self) -> Look:
        """What it did since the last look, or since the watcher was made."""
        before, now = self._before, self._state()
        self._before = now
        (then, counted_then, metered_then), (at, counted, metered) = before, now
        seconds = max(at - then, 1e-9)
        rates = {kind: _rates(metered_then[kind], metered[kind], seconds) for kind in KINDS}
        return Look(
            seconds=seconds,
            power=self._control.power().power,
            clients=int(counted["clients"] or 0),
            in_flight=metered["in_flight"],
            virtual_s=counted["virtual_s"] or 0.0,
            waf=_waf(counted_then, counted),
            waf_ever=counted["waf"],
            counters=counted,
            **rates,
        )

    def _state(self) -> tuple[float, dict[str, float | None], dict[str, Any]]:
        return time.monotonic(), self._control.counters(), self._control.ask("meter")


def _rates(before: dict[str, Any], now: dict[str, Any], seconds: float) -> Rates:
    commands = now["commands"] - before["commands"]
    earlier = dict(before["histogram_us"])
    counts = [(upper, count - earlier.get(upper, 0)) for upper, count in now["histogram_us"]]
    took = now["latency_us"] - before["latency_us"]
    return Rates(
        rate=commands / seconds,
        bytes_rate=(now["bytes"] - before["bytes"]) / seconds,
        failed=now["failed"] - before["failed"],
        mean_us=took / commands if commands else None,
        p50_us=_quantile(counts, 0.5),
        p99_us=_quantile(counts, 0.99),
    )


def _quantile(counts: list[tuple[float, int]], share: float) -> float | None:
    """The end of the first bin by which that share of all has come."""
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


def _flash_bytes(counted: dict[str, float | None]) -> float:
    return (counted["waf"] or 0) * (counted["host_write_bytes"] or 0)

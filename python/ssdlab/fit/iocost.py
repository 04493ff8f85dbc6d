"""iocost's six numbers: measured on a twin as resctl-bench measures them, and fitted to.

resctl-bench uses a file of 16 GiB and 120 s for each number, in the order of `RATES`. `rbps` and
`wbps` are rates of very large requests in order; `rseqiops`, `rrandiops`, `wseqiops` and
`wrandiops` those of 4 KiB at depth 64. Each number has one mechanism that limits it, so a fit needs
no search:

* `rbps`: the link, or the channels if a faster link does not help. Its other direction is as fast,
  unless writes are faster;
* `rrandiops`: tR, as far as flash of a type differs; beyond it, the controller's time for a read;
* `wbps`: tPROG;
* `wseqiops`: the controller's time for a write command.

`rseqiops` and `wrandiops` follow from these; a fit uses them only in place of `rrandiops` and
`wseqiops`. A drive whose writes are much slower at random than in order has a cause that the six
numbers do not tell; the fit then says so in the source of `link.write_command`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ssdlab.analysis.cells import Cell
from ssdlab.device import Job, Op, describe_twin, open_twin, run_job
from ssdlab.device.kinds import Pattern
from ssdlab.errors import UsageError
from ssdlab.fit.direct_estimates import enlarge_buffer
from ssdlab.fit.measurement import CellKey, Limits, Measurement, check_number
from ssdlab.fit.objective import CAPACITY, Effort, Objective
from ssdlab.fit.parameters import LINK_MAX, Estimate
from ssdlab.fit.variables import Scale
from ssdlab.profiles.toml_edit import get_value, set_value, set_values
from ssdlab.units import parse_duration, parse_size

NAME: Final = "iocost"
FILE: Final = 16 << 30
SECONDS: Final = 120.0
LARGE: Final = 64 << 20
"""The method's requests of 128 MiB, halved: the pause between two of them stays below 1 %."""
BLOCK: Final = 4096
DEPTH: Final = 64
REGION: Final = CAPACITY // 8
READS: Final = 64 << 20
WRITES: Final = 64 << 20
CACHED_CAPACITY: Final = 8 * CAPACITY
"""Capacity of a candidate with an SLC cache: on it, file, cache and time are in proportion."""
ROUNDS: Final = 12
CLOSE: Final = 0.01
"""The fit ends when all rates are this close, relative."""
MARGIN: Final = 1.01
"""How much faster the link is than the fastest of the numbers, for its pauses."""
TR_FREEDOM: Final = 1.5
"""How far tR may move from the start profile; a further number is the controller's."""
PROGRAM_LIMITS: Final = (50e-6, 5e-3)
SIGMA: Final = 0.04
"""Standard deviation of the logarithm of a number, as of the results of other experiments."""
BOUND: Final = 1 + 2 * SIGMA
RANDOM_SLOWER: Final = 1.5
"""Beyond this ratio of `wseqiops` to `wrandiops`, no key of the profile explains `wrandiops`."""
DIES: Final = "flash.dies_per_channel"
DIES_MAX: Final = 128


@dataclass(frozen=True)
class _Rate:
    """How one number is measured; `unit` is that of the number."""

    op: Op
    pattern: Pattern
    block: int
    depth: int
    unit: str


MB: Final = "MB/s"
PER_S: Final = "requests/s"
RATES: Final = {
    "rbps": _Rate("read", "sequential", LARGE, 1, MB),
    "rseqiops": _Rate("read", "sequential", BLOCK, DEPTH, PER_S),
    "rrandiops": _Rate("read", "random", BLOCK, DEPTH, PER_S),
    "wbps": _Rate("write", "sequential", LARGE, 1, MB),
    "wseqiops": _Rate("write", "sequential", BLOCK, DEPTH, PER_S),
    "wrandiops": _Rate("write", "random", BLOCK, DEPTH, PER_S),
}
"""The six numbers, in the order in which they are measured."""
_LIMITS: Final = {MB: Limits(MB, 1, 1e5), PER_S: Limits(PER_S, 10, 1e8)}
_QUANTITY: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(MB/s|MiB/s|GB/s|requests/s)?\s*")
_TO_MB: Final[dict[str | None, float]] = {
    "MB/s": 1.0,
    "MiB/s": 2**20 / 1e6,
    "GB/s": 1e3,
    None: 1e-6,
}
"""MB/s in a unit; without one, a number is in bytes/s, as the kernel's `io.cost.model` has it."""


READS_BY: Final = ("rrandiops", "rseqiops")
WRITES_BY: Final = ("wseqiops", "wrandiops")
"""The numbers of 4 KiB requests that a fit uses: the first one present of each kind."""


def bytes_per_s(name: str, rate: float) -> float:
    """A number of the table as a rate in bytes/s."""
    return rate * (1e6 if RATES[name].unit == MB else BLOCK)


def used(names: Collection[str]) -> list[str]:
    """The numbers that a fit to these uses."""
    firsts = [next((name for name in by if name in names), "") for by in (READS_BY, WRITES_BY)]
    return [name for name in names if name in ("rbps", "wbps", *firsts)]


def from_toml(table: Any, path: Path) -> Measurement:
    """The numbers of a TOML table `[iocost]`: `rbps = "3449 MB/s"`, `rseqiops = 410455`.

    Raises:
        UsageError: an unknown key, or a number outside its limits.
    """
    where = f"{path}: [{NAME}]"
    if not isinstance(table, dict) or not RATES.keys() & table.keys():
        raise UsageError(f"{where} has no numbers; it may have {', '.join(RATES)}, model")
    unknown = next((key for key in table if key not in RATES and key != "model"), None)
    if unknown is not None:
        raise UsageError(f"{where} has {unknown}; it may have {', '.join(RATES)}, model")
    rates = {
        name: parse_rate(table[name], name, f"{where} {name}") for name in RATES if name in table
    }
    return of_rates(rates, str(table.get("model", "")), str(path))


def of_rates(rates: Mapping[str, float], model: str, where: str) -> Measurement:
    """The numbers as a measurement; rates of large requests are in MB/s."""
    cells = [Cell((name,), "rate", value, unit=RATES[name].unit) for name, value in rates.items()]
    return Measurement(NAME, model, where, tuple(cells))


def parse_rate(value: Any, name: str, where: str) -> float:
    """A number with or without its unit, in MB/s or requests/s; errors begin with `where`.

    Raises:
        UsageError: it is not a number with this unit, or outside its limits.
    """
    unit = RATES[name].unit
    match = _QUANTITY.fullmatch(str(value))
    example = "3449 MB/s" if unit == MB else "410455"
    allowed: dict[str | None, float] = _TO_MB if unit == MB else {PER_S: 1.0, None: 1.0}
    if match is None or match[2] not in allowed:
        raise UsageError(f"{where} is {value!r}; it must be a number such as {example!r}")
    number = float(match[1]) * allowed[match[2]]
    check_number(number, _LIMITS[unit], where)
    return number


def check_rate(value: Any, name: str, where: str) -> None:
    """Checks a bare number, in MB/s or requests/s.

    Raises:
        UsageError: it is not a number, or outside its limits.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{where} {name} is {value!r}; it must be a number")
    check_number(value, _LIMITS[RATES[name].unit], f"{where} {name}")


def objective(results: Measurement) -> Objective:
    """The drive's numbers, and those of a profile's twin."""

    def measure_twin(profile: str, _effort: Effort) -> dict[CellKey, float]:
        rates = measure(profile)
        return {((name,), "rate"): value for name, value in rates.items()}

    sigma = np.full(len(results.cells), SIGMA)
    return Objective(NAME, results.cells, measure_twin, sigma)


def measure(profile: str) -> dict[str, float]:
    """The six numbers of a profile's twin, scaled down; rates of large requests are in MB/s.

    Raises:
        TargetError: the profile is invalid.
    """
    twin, cached = describe_twin("the profile", profile), get_value(profile, "slc.size") is not None
    capacity = CACHED_CAPACITY if cached else CAPACITY
    drive, region, seconds = open_twin("candidate", profile, capacity, seed=0), REGION, None
    if cached:
        ratio = capacity / int(twin["capacity_bytes"])
        region, seconds = max(1, round(FILE * ratio / LARGE)) * LARGE, SECONDS * ratio
    run_job(drive, _job(RATES["wbps"], region, region))
    run_job(drive, _job(RATES["rbps"], region, region))  # and the drive programs its buffer
    rates = {}
    for name, rate in RATES.items():
        amount, limit = READS, None
        if rate.op == "write":
            filling = max(rate.block, 2 * int(twin["buffer_bytes"]))
            run_job(drive, _job(rate, region, filling))
            amount, limit = (WRITES, None) if seconds is None else (0, seconds)
        result = run_job(drive, _job(rate, region, amount, limit))
        rates[name] = result.bytes / result.seconds / (1e6 if rate.unit == MB else BLOCK)
    return rates


def _job(rate: _Rate, region: int, amount: int, seconds: float | None = None) -> Job:
    return Job(
        op=rate.op,
        pattern=rate.pattern,
        length_bytes=region,
        block_bytes=rate.block,
        amount_bytes=amount,
        seconds=seconds,
        queue_depth=rate.depth,
    )


@dataclass
class _Numbers:
    """The numbers that a fit changes: times in s, rates in bytes/s, and factors on the start."""

    bandwidth: float
    write_bandwidth: float | None
    read_command: float
    write_command: float
    channel: float = 1.0
    read: float = 1.0
    program: float = 1.0
    dies: int = 1


class RatesFit:
    """A fit of a profile to some of the six numbers: `wanted`, rates of large requests in MB/s.

    Numbers of the profile that are `known` stay as they are.
    """

    def __init__(
        self,
        profile: str,
        wanted: Mapping[str, float],
        source: str,
        known: Collection[str] = (),
    ) -> None:
        self.start, self.source, self.known = profile, source, frozenset(known)
        self.wanted = {name: wanted[name] for name in used(wanted)}
        self.reads = next((name for name in READS_BY if name in wanted), None)
        self.writes = next((name for name in WRITES_BY if name in wanted), None)
        self.random_slower = wanted.get("wseqiops", 0.0) / wanted.get("wrandiops", math.inf)
        self.interface = get_value(profile, "drive.interface")
        self.read_needed, write_needed = self._needed("read"), self._needed("write")
        if max(self.read_needed, write_needed) > LINK_MAX[self.interface]:
            self.interface = "nvme"
        bandwidth = _rate_of(profile, "link.bandwidth")
        from_host = get_value(profile, "link.write_bandwidth")
        write_bandwidth = _rate_of(profile, "link.write_bandwidth") if from_host else None
        if "link.bandwidth" not in known:
            limit = LINK_MAX[self.interface]
            if "rbps" in wanted or self.read_needed > bandwidth:
                bandwidth = min(limit, MARGIN * self.read_needed)
            if write_needed > (write_bandwidth or bandwidth):
                write_bandwidth = min(limit, MARGIN * write_needed)
        self.numbers = _Numbers(
            bandwidth,
            write_bandwidth,
            self._command("link.read_command", self.reads),
            self._command("link.write_command", self.writes),
        )

    def run(self) -> str:
        """The fitted profile."""
        for _ in range(ROUNDS):
            twin = measure(self.profile())
            off = [abs(twin[name] / value - 1.0) for name, value in self.wanted.items()]
            if max(off) < CLOSE:
                break
            self._correct({name: twin[name] / value for name, value in self.wanted.items()})
        return self.profile()

    def profile(self) -> str:
        """The start profile with the numbers so far."""
        now, start = self.numbers, self.start
        changes: dict[str, Any] = {"link.bandwidth": _mb_per_s(now.bandwidth)}
        if now.write_bandwidth:
            changes["link.write_bandwidth"] = _mb_per_s(now.write_bandwidth)
        if self.interface != get_value(start, "drive.interface"):
            changes["drive.interface"] = self.interface
        for key, factor in self._factors().items():
            if factor != 1.0:
                changes |= Scale(key, 0.0, math.inf, 1.0).changes(start, factor)
        for op, command in (("read", now.read_command), ("write", now.write_command)):
            overhead = parse_duration(get_value(start, f"link.{op}_overhead") or "0 us")
            key = f"link.{op}_command"
            if command != parse_duration(get_value(start, key) or "0 us"):
                changes[key] = _time(command) if command else None
            if command > overhead:
                changes[f"link.{op}_overhead"] = _time(command)
        if now.dies > 1:
            changes[DIES] = now.dies * get_value(start, DIES)
        changes = {key: value for key, value in changes.items() if value != get_value(start, key)}
        text = enlarge_buffer(set_values(start, changes, self.source))
        key = "link.write_command"
        if self.random_slower > RANDOM_SLOWER and now.write_command:
            why = (
                f"{self.source}; for writes in order: at random the drive is "
                f"{self.random_slower:.1f} times as slow, and its numbers do not show why"
            )
            text = set_value(text, key, get_value(text, key), why)
        return text

    def estimates(self) -> list[Estimate]:
        """The numbers that the fit changed, with their bounds."""
        return list(self._estimates())

    def _needed(self, op: Op) -> float:
        """The highest rate of reads or writes that is wanted, in bytes/s."""
        rates = [
            bytes_per_s(name, value) for name, value in self.wanted.items() if RATES[name].op == op
        ]
        return max(rates, default=0.0)

    def _command(self, key: str, name: str | None) -> float:
        """The controller's time for a command to start with: that of the wanted rate for writes."""
        current = parse_duration(get_value(self.start, key) or "0 us")
        if name is None:
            return current
        longest = 1.0 / self.wanted[name]
        return longest if key == "link.write_command" else min(current, 0.8 * longest)

    def _factors(self) -> dict[str, float]:
        now = self.numbers
        factors = {
            "flash.channel_bandwidth": now.channel,
            "flash.read": now.read,
            "flash.program": now.program,
        }
        of_cache = {"slc.read": now.read, "slc.program": now.program}
        present = {key for key in of_cache if get_value(self.start, key) is not None}
        return factors | {key: of_cache[key] for key in present}

    def _correct(self, ratios: Mapping[str, float]) -> None:
        """Moves the numbers that limit rates which differ; `ratios` are twin / drive."""
        if "rbps" in ratios and "link.bandwidth" not in self.known:
            self._correct_link(ratios["rbps"])
        if self.reads:
            self._correct_reads(ratios[self.reads])
        now = self.numbers
        if "wbps" in ratios and "flash.program" not in self.known:
            low, high = (limit / self._program() for limit in PROGRAM_LIMITS)
            now.program = min(max(now.program * ratios["wbps"], low), high)

    def _correct_link(self, ratio: float) -> None:
        now, wanted = self.numbers, 1e6 * self.wanted["rbps"]
        if ratio > 1.0 and wanted < 0.99 * self.read_needed:
            return  # the link must be faster for small reads
        most = min(LINK_MAX[self.interface], 1.1 * self.read_needed)
        if ratio < 1.0 and now.bandwidth >= 0.999 * most:
            now.channel /= ratio
        else:
            now.bandwidth = min(most, now.bandwidth / ratio)

    def _correct_reads(self, ratio: float) -> None:
        """tR first; beyond its freedom the controller's command, or more dies."""
        now, freedom = self.numbers, 1.0 if "flash.read" in self.known else TR_FREEDOM
        low, high = 1 / freedom, freedom
        if ratio > 1.0 and now.read >= high:
            assert self.reads is not None
            now.read_command = max(now.read_command * ratio, 1.0 / self.wanted[self.reads])
        elif ratio < 1.0 and now.read_command:
            now.read_command *= ratio
        elif ratio < 1.0 and now.read <= low and self._may_have_more_dies():
            now.dies, now.read = 2 * now.dies, 1.0
        else:
            now.read = min(max(now.read * ratio, low), high)

    def _may_have_more_dies(self) -> bool:
        channels, dies = get_value(self.start, "flash.channels"), get_value(self.start, DIES)
        is_free = self.known.isdisjoint({DIES, "flash.channels", "flash.read"})
        return is_free and 2 * channels * dies * self.numbers.dies <= DIES_MAX

    def _program(self) -> float:
        return parse_duration(get_value(self.start, "flash.program"))

    def _estimates(self) -> Iterator[Estimate]:
        text, now = self.profile(), self.numbers

        def bounds(key: str, low: float, high: float, *, determined: bool) -> Estimate:
            value, start = get_value(text, key), get_value(self.start, key)
            scale = Scale(key, 0.0, math.inf, 1.0)
            least, most = (scale.changes(text, factor)[key] for factor in (low, high))
            return Estimate(key, value, least, most, determined=determined, start=start)

        near = (1 / BOUND, BOUND)
        if "rbps" in self.wanted and "link.bandwidth" not in self.known:
            yield bounds("link.bandwidth", *near, determined=True)
            if now.write_bandwidth:  # any faster one would do as well
                most = LINK_MAX[self.interface] / now.write_bandwidth
                yield bounds("link.write_bandwidth", 1.0, most, determined=False)
        if self.reads and "flash.read" not in self.known:
            ends = 1 / TR_FREEDOM / now.read, TR_FREEDOM / now.read
            yield bounds("flash.read", *ends, determined=False)
        if self.reads and now.read_command:
            yield bounds("link.read_command", 0.0, BOUND, determined=False)
        if "wbps" in self.wanted and "flash.program" not in self.known:
            yield bounds("flash.program", *near, determined=True)
        if self.writes and now.write_command:
            yield bounds("link.write_command", *near, determined=True)
        if now.dies > 1:
            dies = get_value(self.start, DIES)
            yield Estimate(
                DIES, now.dies * dies, dies, 2 * now.dies * dies, determined=False, start=dies
            )


def _rate_of(profile: str, key: str) -> float:
    return float(parse_size(str(get_value(profile, key)).removesuffix("/s")))


def _mb_per_s(rate: float) -> str:
    return f"{rate / 1e6:.1f} MB/s"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.3f} us"

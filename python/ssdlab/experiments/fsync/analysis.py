"""Analysis of fsync: the cost of durable writes, and what the drive does on a flush.

`class` compares a flush right after a write with one that has nothing to flush. If the first takes
longer by at least the program time of flash, the write was still in volatile memory ("volatile").
If not, the drive needs no flush ("protected") or ignores it ("ignores flush"), provided that the
write was still in memory: it and the flush took less time than a program, or a burst and the flush
after it took less time than flash needs to take as much data in a long write. Timing cannot
distinguish these two. If the drive's protection is stated somewhere, that decides, and "ignores
flush" is only a suspicion; else the class is "protected or ignores flush".
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.shown import is_shown, not_excluded
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval
from ssdlab.stats.quantile import Percentiles, percentiles, quantile
from ssdlab.units import format_duration, format_size

COLUMNS: Final = Columns(
    ("mode", "in_flight"),
    ("read_mib_per_s", "write_mib_per_s", "sync_us_p50"),
    {"write_mib_per_s": "write_mib_per_s_all"},
    {"in_flight": "{} in flight"},
)
"""The columns that `compare` matches and compares between two runs."""
MIB: Final = 1 << 20
PROGRAM_US: Final = 75.0
"""Program time of the fastest flash sold (XL-FLASH)."""
ORDINARY_PROGRAM_US: Final = 160.0
"""Program time of ordinary SLC flash: a faster write stopped in the drive's memory."""
IN_MEMORY: Final = 0.7
"""A burst and its flush that take less than this share of flash's time left data in memory."""
PENALTY_MIN: Final = 1.1
"""A smaller ratio counts as no penalty."""
NOT_ONE_DRIVE: Final = frozenset({"virtual", "network", "composed", "page-cache-below"})
"""With one of these warnings, the class describes the storage stack, not one drive."""
WITNESS: Final = "only a power cut can prove it: run ssdlab witness"
UNDECIDED: Final = "protected or ignores flush"
"""The class of a drive whose flushes cost nothing, if nothing states whether it is protected."""
NEAR_MEDIAN: Final = (0.4, 0.6)
"""If flushes are fast or slow by turns, the median may be either; these are more certain bounds."""
_WRITE, _FLUSH = 1, 3  # values of the column `op`


@dataclass(frozen=True)
class Probe:
    """Median times of a flush with nothing to flush, of a write, and of the flush after it.

    `least_extra_us` is the lower quartile of the flush after a write, less the upper quartile of
    the flush with nothing to flush; None if not known.
    """

    empty_us: float
    write_us: float
    flush_us: float
    least_extra_us: float | None = None

    @property
    def extra_us(self) -> float:
        """Additional time of a flush that has a write to make durable."""
        return self.flush_us - self.empty_us

    @property
    def varies(self) -> bool:
        """Whether flushes with and without something to flush take too similar times to compare."""
        return self.least_extra_us is not None and self.least_extra_us < PROGRAM_US


@dataclass(frozen=True)
class Burst:
    """A burst of `size` bytes, the flush after it, and the time in which flash takes as much."""

    size: float
    write_us: float
    flush_us: float
    flash_us: float


def conclude(evidence: Evidence) -> Conclusion:
    """One row per mode and queue depth, and the findings `penalty`, `class` and `flush_us`."""
    rows = _rows(evidence)
    findings = {}
    penalty = _penalty(rows, max(1, int(evidence.parameters["repeats"])))
    if penalty is not None:
        findings["penalty"] = penalty
    probe = probe_of(evidence)
    if probe is not None:
        claims, sources = (evidence.observed(name) for name in ("claim", "claim_source"))
        claim = claims[-1]["detail"] if claims and sources else "unknown"
        source = sources[-1]["detail"] if claims and sources else ""
        burst = burst_of(evidence, probe)
        findings["class"] = class_of(probe, claim, source, evidence.warnings, burst)
        findings["flush_us"] = _flush(probe)
    return Conclusion(rows, findings, _verdict(findings, evidence))


def _rows(evidence: Evidence) -> list[dict[str, Any]]:
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for step in evidence.steps("mix"):
        groups.setdefault((step["case"], step["value"]), []).append(step)
    flush_s = {step["step"]: seconds_of(step) for step in evidence.steps("flush")}
    moved = _bytes_of_steps(evidence)
    return [_row(evidence, mode, steps, moved, flush_s) for (mode, _), steps in groups.items()]


def _row(
    evidence: Evidence,
    mode: str,
    steps: list[dict[str, Any]],
    moved: Mapping[int, tuple[int, int]],
    flush_s: Mapping[int, float],
) -> dict[str, Any]:
    read_mib, write_mib = (
        [moved.get(step["step"], (0, 0))[at] / MIB for step in steps] for at in (0, 1)
    )
    seconds = [max(1e-9, seconds_of(step)) for step in steps]
    with_flush = [
        of_step + flush_s.get(step["step"] + 1, 0.0)
        for of_step, step in zip(seconds, steps, strict=True)
    ]
    writes = _rates(write_mib, seconds)
    syncs, sync, near = _syncs(evidence, mode, steps)
    cached = _cached_share(evidence, steps)
    return {
        "mode": mode,
        "in_flight": int(steps[0]["value"]),
        "read_mib_per_s": statistics.median(_rates(read_mib, seconds)),
        "write_mib_per_s": statistics.median(writes),
        "write_mib_per_s_all": writes,
        "kept_mib_per_s": statistics.median(_rates(write_mib, with_flush)),
        "sync_requests": syncs,
        "sync_us_p40": _us(near[0]) if near else None,
        "sync_us_p50": _us(sync.p50) if sync else None,
        "sync_us_p60": _us(near[1]) if near else None,
        "sync_us_p99": _us(sync.p99) if sync else None,
        "cached_percent": None if cached is None else 100 * cached,
        "of_the_drive": mode.startswith("direct") or mode.endswith("sync"),
    }


def _bytes_of_steps(evidence: Evidence) -> dict[int, tuple[int, int]]:
    """Bytes read and bytes written, by step."""
    names = ("read_bytes", "write_bytes")
    sums = evidence.tables["intervals"].group_by("step").aggregate([(n, "sum") for n in names])
    columns = (sums[name].to_pylist() for name in ("step", *(f"{n}_sum" for n in names)))
    return {step: (read or 0, written or 0) for step, read, written in zip(*columns, strict=True)}


def _rates(amounts: list[float], seconds: list[float]) -> list[float]:
    return [amount / each for amount, each in zip(amounts, seconds, strict=True)]


def _syncs(
    evidence: Evidence, mode: str, steps: list[dict[str, Any]]
) -> tuple[int, Percentiles | None, tuple[float, float] | None]:
    """Number and latency of flushes in ns; the 40th and 60th percentile if the median is known.

    With O_DSYNC that of writes, because each includes a flush.
    """
    if not mode.endswith("sync"):
        return 0, None, None
    latencies, counts = _latency(evidence, steps, _WRITE if mode.endswith("dsync") else _FLUSH)
    found, total = percentiles(latencies, counts), int(counts.sum())
    if found.p50 is None:
        return total, found, None
    low, high = (quantile(latencies, counts, share) for share in NEAR_MEDIAN)
    return total, found, (low, high)


def _latency(evidence: Evidence, steps: list[dict[str, Any]], op: int) -> tuple[Any, Any]:
    """Distribution of an operation's latency in these steps: ns in ascending order, counts."""
    rows = evidence.tables["interval_latency"]
    numbers = pa.array([step["step"] for step in steps], rows["step"].type)
    selected = rows.filter(
        pc.and_(pc.is_in(rows["step"], value_set=numbers), pc.equal(rows["op"], op))
    )
    latencies, indices = np.unique(selected["latency_ns"].to_numpy(), return_inverse=True)
    counts = np.zeros(len(latencies), dtype=np.int64)
    np.add.at(counts, indices, selected["count"].to_numpy().astype(np.int64))
    return latencies.astype(np.float64), counts


def _cached_share(evidence: Evidence, steps: list[dict[str, Any]]) -> float | None:
    """The largest share of the file that was in the page cache after one of these steps."""
    next_steps = {step["step"] + 1 for step in steps}
    shares = [
        row["value"]
        for row in evidence.observed("cached_share")
        if row["step"] in next_steps and row["value"] is not None
    ]
    return max(shares, default=None)


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1000


def _penalty(rows: list[dict[str, Any]], repeats: int) -> Finding | None:
    """Speed of direct writes without fsync, divided by that with fsync (queue depth 1)."""
    by_mode = {row["mode"]: row for row in rows if row["in_flight"] == 1}
    if not {"direct none", "direct fsync"} <= by_mode.keys():
        return None
    plain, synced = (
        by_mode[mode]["write_mib_per_s_all"] for mode in ("direct none", "direct fsync")
    )
    if min(len(plain), len(synced)) < repeats or not min(*plain, *synced) > 0:
        return None
    value = statistics.median(plain) / statistics.median(synced)
    bounds = ratio_interval(plain, synced)
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (None, None)
    why = (
        f"direct writes of the mix at queue depth 1: {statistics.median(plain):.3g} MiB/s, with "
        f"fsync after each write {statistics.median(synced):.3g} MiB/s"
    )
    return Finding(value=value, unit="x", low=low, high=high, why=why)


def probe_of(evidence: Evidence) -> Probe | None:
    """The medians of the probe; None if it is incomplete."""
    steps = evidence.steps("probe")
    empty = [1e6 * seconds_of(step) for step in steps if step["case"] == "empty"]
    written = [step for step in steps if step["case"] == "written"]
    if not empty or not written:
        return None
    writes, flushes = (_latency(evidence, written, op) for op in (_WRITE, _FLUSH))
    write, low, flush = (
        quantile(*latency, q) / 1000
        for latency, q in ((writes, 0.5), (flushes, 0.25), (flushes, 0.5))
    )
    return Probe(statistics.median(empty), write, flush, low - float(np.quantile(empty, 0.75)))


def burst_of(evidence: Evidence, probe: Probe) -> Burst | None:
    """A burst that was still in memory after a flush that waited for nothing, or None.

    The second half of a long write shows the rate of flash, if the first half filled the buffer;
    otherwise it is as fast as the bursts, and shows nothing.
    """
    flood = evidence.steps("flood")
    if len(flood) < 2:
        return None
    us_per_byte = 1e6 * seconds_of(flood[-1]) / flood[-1]["bytes"]
    times: dict[float, dict[str, list[float]]] = {}
    for step in evidence.steps("burst"):
        if step["case"] != "drain":
            of_size = times.setdefault(step["value"], {"write": [], "flush": []})
            of_size[step["case"]].append(1e6 * seconds_of(step))
    for size, of_size in times.items():
        if not of_size["flush"]:
            continue
        write, flush = (statistics.median(of_size[case]) for case in ("write", "flush"))
        burst = Burst(size, write, flush, us_per_byte * size)
        if flush - probe.empty_us < PROGRAM_US and write + flush < IN_MEMORY * burst.flash_us:
            return burst
    return None


def class_of(
    probe: Probe, claim: str, source: str, warnings: frozenset[str], burst: Burst | None = None
) -> Finding:
    """The finding `class`, from the probe's times and whether the cache is said to be protected.

    `claim` is "protected", "volatile" or "unknown", and `source` names where that is stated. The
    `burst` was still in memory after a flush.
    """
    times = (
        f"a write took {_time(probe.write_us)}, a flush right after it {_time(probe.flush_us)}, a "
        f"flush with nothing to flush {_time(probe.empty_us)}"
    )
    if "no-barrier" in warnings:
        return _class(None, f"{times}, but with barriers off the file system sends no flushes")
    if probe.extra_us >= PROGRAM_US:
        return _waited(probe, times, claim, source)
    if claim == "protected":
        why = f"{times}: the flush did not wait for flash; the cache is protected according to"
        return _class("protected", f"{why} {source}")
    if max(probe.write_us, probe.flush_us) < ORDINARY_PROGRAM_US:
        least = f"ordinary flash takes at least {ORDINARY_PROGRAM_US:.0f} us to program"
        if max(probe.write_us, probe.flush_us) < PROGRAM_US:
            least = f"even the fastest flash takes {PROGRAM_US:.0f} us to program"
        why = f"{times}: {least}, so the write was still in memory"
    elif burst is not None:
        why = (
            f"{times}; {format_size(burst.size)} were written in {_time(burst.write_us)} and "
            f"flushed in {_time(burst.flush_us)}, but flash needs {_time(burst.flash_us)} for as "
            "much in a long write, so the data was still in memory"
        )
    else:
        why = f"{times}: slow enough that the data may already have been in flash"
        return _class(None, f"{why}; {WITNESS}")
    if claim == "volatile":
        why += f", which is volatile according to {source}. This is a suspicion: {WITNESS}"
        return _class("ignores flush", why)
    why += (
        ": the drive needs no flush, or it ignores flushes. Nothing states whether its write cache "
        f"is protected: give --data-sheet; {WITNESS}"
    )
    return _class(UNDECIDED, why)


def _waited(probe: Probe, times: str, claim: str, source: str) -> Finding:
    """The class if a flush after a write takes longer than one with nothing to flush."""
    if probe.varies:
        why = f"{times}, but in a quarter of the repeats the two differ too little to tell"
        return _class(None, f"{why}: repeat it on an idle machine; {WITNESS}")
    why = f"{times}: the flush waited for flash"
    if claim == "protected":
        why += f", although the cache is protected according to {source} (try hdparm -W 0)"
    return _class("volatile", why)


def _class(name: str | None, why: str) -> Finding:
    return Finding(value=name, unit="", low=None, high=None, why=why)


def _flush(probe: Probe) -> Finding:
    why = f"median flush right after a write; with nothing to flush {_time(probe.empty_us)}"
    return Finding(value=probe.flush_us, unit="us", low=None, high=None, why=why)


def _verdict(findings: dict[str, Finding], evidence: Evidence) -> str:
    if not {"penalty", "class"} <= findings.keys():
        ended = ENDINGS[evidence.outcome]
        return f"{ended} before there were enough writes with and without fsync to compare."
    flush = findings["flush_us"].value
    assert isinstance(flush, float)
    subject = "The storage below" if NOT_ONE_DRIVE & evidence.warnings else "This drive"
    behaviour = {
        "volatile": f"{subject} holds writes in volatile memory until a flush ({_time(flush)})",
        "protected": f"{subject} needs no flush: its write cache is stated to be protected",
        "ignores flush": f"{subject} completes flushes before flash can hold the data, although "
        f"its write cache is stated to be volatile: it seems to ignore flushes; {WITNESS}",
        UNDECIDED: f"{subject} completes flushes before flash can hold the data: its write cache "
        f"is protected, or it ignores flushes. The data sheet says which (--data-sheet); {WITNESS}",
        None: f"Timing does not show whether flushes are honoured; {WITNESS}",
    }
    name = findings["class"].value
    assert name is None or isinstance(name, str)
    cost = _cost(findings["penalty"])
    return qualified(f"{behaviour[name]}; {cost}.", evidence.warnings)


def _cost(penalty: Finding) -> str:
    if is_shown(penalty, PENALTY_MIN):
        return f"fsync after each write makes writes {penalty.value:.3g} times slower"
    why = not_excluded(penalty, PENALTY_MIN)
    if why:
        return f"no cost of fsync shown: {why}"
    return f"fsync after each write costs less than {PENALTY_MIN - 1:.0%}"


def _time(microseconds: float) -> str:
    return format_duration(microseconds / 1e6)

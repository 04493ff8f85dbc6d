"""What it costs to have each write kept, and what a drive does with a flush.

Class: a flush after a write is held against one with nothing to flush. If it takes longer by what
flash needs for a program, the write waited in memory that a power cut empties ("volatile"). If not,
the drive needs no flush ("protected") or ignores it ("ignores flush"): no timing tells these two
apart, so what is said of the drive decides, and the second is no more than a suspicion.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval
from ssdlab.stats.quantile import Percentiles, percentiles, quantile
from ssdlab.units import format_duration

COLUMNS: Final = Columns(
    ("mode", "in_flight"),
    ("read_mib_per_s", "write_mib_per_s", "sync_us_p50"),
    {"write_mib_per_s": "write_mib_per_s_all"},
)
"""The cells of `measures` that runs have in common."""
MIB: Final = 1 << 20
PROGRAM_US: Final = 75.0
"""No flash is programmed in less: what is sold as the fastest (XL-FLASH) takes this."""
ORDINARY_PROGRAM_US: Final = 160.0
"""Flash with one bit a cell as other drives have it: what is shorter ended in memory."""
CHEAP: Final = 1.1
"""Below this ratio a flush is called free."""
NO_DRIVE: Final = frozenset({"virtual", "network", "composed", "page-cache-below"})
"""Warnings after which a class is that of all that lies below, not of one drive."""
WITNESS: Final = "only a power cut can tell: ssdlab witness"
_WRITE, _FLUSH = 1, 3
_ALONE: Final = 1.0


@dataclass(frozen=True)
class Probe:
    """Medians in microseconds: a flush of nothing, a write, and the flush right after it."""

    empty_us: float
    write_us: float
    flush_us: float

    @property
    def extra_us(self) -> float:
        """What the drive took to bring the write where a flush wants it."""
        return self.flush_us - self.empty_us


def conclude(evidence: Evidence) -> Conclusion:
    """A row a mode and number of requests in flight; `penalty`, `class` and what a flush took."""
    rows = _rows(evidence)
    found = {}
    penalty = _penalty(rows, max(1, int(evidence.parameters["repeats"])))
    if penalty is not None:
        found["penalty"] = penalty
    probe = probe_of(evidence)
    if probe is not None:
        found["class"] = class_of(probe, _claim(evidence), evidence.warnings)
        found["flush_us"] = _flush(probe)
    return Conclusion(rows, found, _verdict(found, evidence))


def _rows(evidence: Evidence) -> list[dict[str, Any]]:
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for step in evidence.steps("mix"):
        groups.setdefault((step["case"], step["value"]), []).append(step)
    return [_row(evidence, mode, steps) for (mode, _), steps in groups.items()]


def _row(evidence: Evidence, mode: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    reads, writes, kept = (_speeds(evidence, steps, each) for each in ("read", "write", "kept"))
    sync = _sync_percentiles(evidence, mode, steps)
    cached = _cached(evidence, steps)
    return {
        "mode": mode,
        "in_flight": int(steps[0]["value"]),
        "read_mib_per_s": statistics.median(reads),
        "write_mib_per_s": statistics.median(writes),
        "write_mib_per_s_all": writes,
        "kept_mib_per_s": statistics.median(kept),
        "sync_us_p50": _us(sync.p50) if sync else None,
        "sync_us_p99": _us(sync.p99) if sync else None,
        "cached_percent": None if cached is None else 100 * cached,
        "of_the_drive": mode.startswith("direct") or mode.endswith("sync"),
    }


def _speeds(evidence: Evidence, steps: list[dict[str, Any]], what: str) -> list[float]:
    """MiB/s of reads or writes; `kept`: of writes, with the flush after the step in the time."""
    column = "read_bytes" if what == "read" else "write_bytes"
    flushed = {step["step"]: seconds_of(step) for step in evidence.steps("flush")}
    found = []
    for step in steps:
        moved = pc.sum(_of_step(evidence, "intervals", step)[column]).as_py() or 0
        more = flushed.get(step["step"] + 1, 0.0) if what == "kept" else 0.0
        found.append(moved / MIB / max(1e-9, seconds_of(step) + more))
    return found


def _of_step(evidence: Evidence, table: str, step: dict[str, Any]) -> Any:
    rows = evidence.tables[table]
    return rows.filter(pc.equal(rows["step"], step["step"]))


def _sync_percentiles(
    evidence: Evidence, mode: str, steps: list[dict[str, Any]]
) -> Percentiles | None:
    """Of the flushes; with O_DSYNC of the writes, which are their own flush. In nanoseconds."""
    if not mode.endswith("sync"):
        return None
    latencies, counts = _latency(evidence, steps, _WRITE if mode.endswith("dsync") else _FLUSH)
    return percentiles(latencies, counts)


def _latency(evidence: Evidence, steps: list[dict[str, Any]], op: int) -> tuple[Any, Any]:
    """How often each latency of a kind occurred in these steps: ascending ns, counts."""
    rows = evidence.tables["interval_latency"]
    numbers = [step["step"] for step in steps]
    chosen = rows.filter(
        pc.and_(pc.is_in(rows["step"], value_set=_set(rows, numbers)), pc.equal(rows["op"], op))
    )
    latencies, places = np.unique(chosen["latency_ns"].to_numpy(), return_inverse=True)
    counts = np.zeros(len(latencies), dtype=np.int64)
    np.add.at(counts, places, chosen["count"].to_numpy().astype(np.int64))
    return latencies.astype(np.float64), counts


def _set(rows: Any, numbers: list[int]) -> Any:
    import pyarrow as pa

    return pa.array(numbers, rows["step"].type)


def _cached(evidence: Evidence, steps: list[dict[str, Any]]) -> float | None:
    """The largest share of the file that was in memory after one of these steps."""
    after = {step["step"] + 1 for step in steps}
    seen = [row for row in evidence.observed("cached_share") if row["step"] in after]
    shares = [row["value"] for row in seen if row["value"] is not None]
    return max(shares, default=None)


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1000


def _penalty(rows: list[dict[str, Any]], repeats: int) -> Finding | None:
    """Writes past the page cache, one after the other, over those with fsync after each."""
    alone = {row["mode"]: row for row in rows if row["in_flight"] == _ALONE}
    if not {"direct none", "direct fsync"} <= alone.keys():
        return None
    free, kept = (alone[mode]["write_mib_per_s_all"] for mode in ("direct none", "direct fsync"))
    if min(len(free), len(kept)) < repeats or not min(*free, *kept) > 0:
        return None
    value = statistics.median(free) / statistics.median(kept)
    bounds = ratio_interval(free, kept)
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (None, None)
    why = (
        f"of the mix, one request after the other, {statistics.median(free):.3g} MiB/s were "
        f"written, and {statistics.median(kept):.3g} MiB/s with fsync after each write"
    )
    return Finding(value=value, unit="x", low=low, high=high, why=why)


def probe_of(evidence: Evidence) -> Probe | None:
    """The medians of the probe; None where it did not come to its end."""
    steps = evidence.steps("probe")
    empty = [1e6 * seconds_of(step) for step in steps if step["case"] == "empty"]
    written = [step for step in steps if step["case"] == "written"]
    if not empty or not written:
        return None
    write, flush = (
        quantile(*_latency(evidence, written, op), 0.5) / 1000 for op in (_WRITE, _FLUSH)
    )
    return Probe(statistics.median(empty), write, flush)


def _claim(evidence: Evidence) -> tuple[str, str]:
    words, sources = (evidence.observed(name) for name in ("claim", "claim_source"))
    return (words[-1]["detail"], sources[-1]["detail"]) if words and sources else ("unknown", "")


def class_of(probe: Probe, claim: tuple[str, str], warnings: frozenset[str]) -> Finding:
    """What the drive does with a flush, as far as timing and what is said of it tell."""
    times = (
        f"a flush right after a write that took {_time(probe.write_us)} took "
        f"{_time(probe.flush_us)}, one of nothing {_time(probe.empty_us)}"
    )
    word, source = claim
    if "no-barrier" in warnings:
        return _named(None, f"{times}; but the file system sends no flush, so the drive got none")
    if probe.extra_us >= PROGRAM_US:
        why = f"{times}: it waited for a program in flash"
        if word == "protected":
            why += f", although {source} says that the cache is protected (try hdparm -W 0)"
        return _named("volatile", why)
    if word == "protected":
        why = f"{times}: it did not wait for flash, and need not: {source} says so"
        return _named("protected", why)
    if max(probe.write_us, probe.flush_us) >= ORDINARY_PROGRAM_US:
        why = f"{times}: flash or the way there may have taken that, write or none"
        return _named(None, f"{why}; {WITNESS}")
    said = f"says {source}: it is" if word == "volatile" else "is not known"
    why = (
        f"{times}: too short for a program of any flash ({PROGRAM_US:.0f} us), so the write was "
        f"still in memory; whether that is volatile {said}. A suspicion: {WITNESS}"
    )
    return _named("ignores flush", why)


def _named(word: str | None, why: str) -> Finding:
    return Finding(value=word, unit="", low=None, high=None, why=why)


def _flush(probe: Probe) -> Finding:
    why = f"the median flush right after one write; one of nothing took {_time(probe.empty_us)}"
    return Finding(value=probe.flush_us, unit="us", low=None, high=None, why=why)


def _verdict(found: dict[str, Finding], evidence: Evidence) -> str:
    if not {"penalty", "class"} <= found.keys():
        ended = ENDINGS[evidence.outcome]
        return f"{ended} before enough was written with and without fsync: too little to tell."
    penalty, flush = found["penalty"].value, found["flush_us"].value
    assert isinstance(penalty, float)
    assert isinstance(flush, float)
    word = found["class"].value
    whose = "What lies below" if NO_DRIVE & evidence.warnings else "This drive"
    cost = _cost(penalty, found["penalty"].low)
    endings = {
        "volatile": f"{whose} keeps writes in volatile memory until a flush ({_time(flush)})",
        "protected": f"{whose} needs no flush: its memory is said to outlive the power",
        "ignores flush": f"{whose} answers flushes before flash could have the data: it has "
        f"protected memory that nobody told of, or ignores flushes; {WITNESS}",
        None: f"whether a flush is heeded cannot be told here; {WITNESS}",
    }
    assert word is None or isinstance(word, str)
    sentence = f"{endings[word]}; {cost}."
    return qualified(sentence[0].upper() + sentence[1:], evidence.warnings)


def _cost(penalty: float, low: float | None) -> str:
    if penalty < CHEAP:
        return "fsync after each write costs next to nothing"
    if low is not None and low <= 1.0:
        return "what fsync costs is less than the repeats scatter"
    return f"fsync after each write makes writing {penalty:.3g} times slower"


def _time(microseconds: float) -> str:
    return format_duration(microseconds / 1e6)

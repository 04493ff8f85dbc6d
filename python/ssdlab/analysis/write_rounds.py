"""Rounds of a write load: a row each, with rates, latencies and what the drive counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssdlab.analysis.evidence import Evidence, seconds_of
from ssdlab.stats.quantile import percentiles
from ssdlab.stats.steady import Progress

MIB: Final = 1 << 20
COUNTS_MOST: Final = 0.02
"""A count's step may be this share of what was written between two looks, or WAF is not told."""
_US: Final = 1000.0

Columns = tuple[list[float], list[float]]
"""Seconds and bytes of intervals, equally long."""


def rows(evidence: Evidence) -> list[dict[str, Any]]:
    """A row a round of any part: round, spare_percent, written_mib, iops, latencies, waf ..."""
    found: list[dict[str, Any]] = []
    written: dict[int, int] = {}
    for step in evidence.steps("round"):
        seconds = seconds_of(step)
        if not seconds or not step["requests"]:
            continue
        stage = step["stage"]
        written[stage] = written.get(stage, 0) + step["bytes"]
        found.append(
            {
                "round": step["repeat"],
                "spare_percent": round(100 * (step["value"] or 0.0), 6),
                "written_mib": written[stage] / MIB,
                "seconds": seconds,
                "iops": step["requests"] / seconds,
                "mib_per_s": step["bytes"] / MIB / seconds,
                **_latency(evidence.tables["latency"], step["step"]),
                "waf": waf_between(evidence, step["step"], step["step"] + 1),
            }
        )
    return found


def _latency(table: pa.Table, step: int) -> dict[str, float | None]:
    found = _columns_of(table, step, ("latency_ns", "count"))
    order = np.argsort(found[0])
    values, counts = found[0][order].astype(np.float64) / _US, found[1][order].astype(np.int64)
    told = percentiles(values, counts)
    names = ("latency_us_mean", "latency_us_sd", "latency_us_p50", "latency_us_p99")
    if not counts.sum():
        return dict.fromkeys((*names, "latency_us_p999"), None)
    mean = float(np.average(values, weights=counts))
    spread = math.sqrt(float(np.average((values - mean) ** 2, weights=counts)))
    return {
        "latency_us_mean": mean,
        "latency_us_sd": spread,
        "latency_us_p50": told.p50,
        "latency_us_p99": told.p99,
        "latency_us_p999": told.p999,
    }


def waf_between(evidence: Evidence, first: int, last: int) -> float | None:
    """Flash writes over host writes as the drive counted them, from before step `first` on.

    To before step `last`. None where it was not looked at, or counts too coarsely.
    """
    looks = [
        _look(evidence, name, at)
        for name in ("host_write_bytes", "flash_write_bytes", "write_count_step_bytes")
        for at in (first, last)
    ]
    if any(look is None for look in looks):
        return None
    host_0, host_1, flash_0, flash_1, _, count_step = (look or 0.0 for look in looks)
    host, flash = host_1 - host_0, flash_1 - flash_0
    if host <= 0 or flash <= 0 or count_step > COUNTS_MOST * host:
        return None
    return flash / host


def _look(evidence: Evidence, name: str, step: int) -> float | None:
    """The last value noted when so many steps were recorded."""
    found = [row["value"] for row in evidence.observed(name) if row["step"] == step]
    return found[-1] if found else None


def counted_by(evidence: Evidence) -> str:
    """Who counted flash writes: "the twin's counters", "smartctl, ..."; "" for nobody."""
    found = evidence.observed("flash_write_bytes")
    return str(found[-1]["detail"]) if found else ""


def progress(evidence: Evidence, steps: Sequence[dict[str, Any]]) -> Progress:
    """Bytes against seconds through steps one after the other, the time between them left out."""
    return joined([intervals(evidence, step) for step in steps])


def joined(columns: Sequence[Columns]) -> Progress:
    """Steps' intervals one after the other."""
    seconds = [length for lengths, _ in columns for length in lengths]
    return Progress(seconds, [amount for _, amounts in columns for amount in amounts])


def intervals(evidence: Evidence, step: dict[str, Any]) -> Columns:
    """Seconds and bytes of a step's intervals; one without bytes counts to the one before it."""
    starts, amounts = _columns_of(evidence.tables["intervals"], step["step"], ("start_ns", "bytes"))
    spans = np.diff(np.append(starts.astype(np.int64), step["end_ns"]))
    kept = spans > 0
    return [float(x) / 1e9 for x in spans[kept]], [float(x) for x in amounts[kept]]


def _columns_of(table: pa.Table, step: int, names: Sequence[str]) -> list[NDArray[np.uint64]]:
    """A step's rows of some columns; by NumPy, for Arrow would start threads of its own."""
    chosen = table["step"].to_numpy() == step
    return [table[name].to_numpy()[chosen] for name in names]

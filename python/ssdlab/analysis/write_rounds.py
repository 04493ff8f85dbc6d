"""Rounds of a write load: rates, latencies and write counters, one row per round."""

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
_COUNTER_STEP_MAX: Final = 0.02
"""WAF is reported if the counters' resolution is at most this fraction of the bytes written."""
_US: Final = 1000.0

Columns = tuple[list[float], list[float]]
"""Seconds and bytes of intervals; both lists have the same length."""


def rows(evidence: Evidence) -> list[dict[str, Any]]:
    """One row per round of each stage: round, spare_percent, written_mib, iops, latencies, waf."""
    result: list[dict[str, Any]] = []
    written: dict[int, int] = {}
    for step in evidence.steps("round"):
        seconds = seconds_of(step)
        if not seconds or not step["requests"]:
            continue
        stage = step["stage"]
        written[stage] = written.get(stage, 0) + step["bytes"]
        result.append(
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
    return result


def _latency(table: pa.Table, step: int) -> dict[str, float | None]:
    latency_ns, count = _columns_of(table, step, ("latency_ns", "count"))
    order = np.argsort(latency_ns)
    values, counts = latency_ns[order].astype(np.float64) / _US, count[order].astype(np.int64)
    quantiles = percentiles(values, counts)
    names = ("latency_us_mean", "latency_us_sd", "latency_us_p50", "latency_us_p99")
    if not counts.sum():
        return dict.fromkeys((*names, "latency_us_p999"), None)
    mean = float(np.average(values, weights=counts))
    spread = math.sqrt(float(np.average((values - mean) ** 2, weights=counts)))
    return {
        "latency_us_mean": mean,
        "latency_us_sd": spread,
        "latency_us_p50": quantiles.p50,
        "latency_us_p99": quantiles.p99,
        "latency_us_p999": quantiles.p999,
    }


def waf_between(evidence: Evidence, first: int, last: int) -> float | None:
    """Flash writes / host writes of the steps from `first` until `last` begins, by drive counters.

    None if the counters were not read, or their resolution is too coarse.
    """
    counters = [
        _counter(evidence, name, at)
        for name in ("host_write_bytes", "flash_write_bytes", "write_count_step_bytes")
        for at in (first, last)
    ]
    if any(value is None for value in counters):
        return None
    host_0, host_1, flash_0, flash_1, _, count_step = (value or 0.0 for value in counters)
    host, flash = host_1 - host_0, flash_1 - flash_0
    if host <= 0 or flash <= 0 or count_step > _COUNTER_STEP_MAX * host:
        return None
    return flash / host


def _counter(evidence: Evidence, name: str, step: int) -> float | None:
    """The last value observed before step `step`."""
    values = [row["value"] for row in evidence.observed(name) if row["step"] == step]
    return values[-1] if values else None


def counter_source(evidence: Evidence) -> str:
    """The source of the flash write counter: "the twin's counters", "smartctl, ..."; or ""."""
    rows = evidence.observed("flash_write_bytes")
    return str(rows[-1]["detail"]) if rows else ""


def progress(evidence: Evidence, steps: Sequence[dict[str, Any]]) -> Progress:
    """Bytes over time of consecutive steps, without the time between them."""
    return joined([intervals(evidence, step) for step in steps])


def joined(columns: Sequence[Columns]) -> Progress:
    """The intervals of several steps, concatenated."""
    seconds = [length for lengths, _ in columns for length in lengths]
    return Progress(seconds, [amount for _, amounts in columns for amount in amounts])


def intervals(evidence: Evidence, step: dict[str, Any]) -> Columns:
    """Seconds and bytes of a step's intervals; each includes the gap before the next interval."""
    starts, amounts = _columns_of(evidence.tables["intervals"], step["step"], ("start_ns", "bytes"))
    spans = np.diff(np.append(starts.astype(np.int64), step["end_ns"]))
    kept = spans > 0
    return [float(x) / 1e9 for x in spans[kept]], [float(x) for x in amounts[kept]]


def _columns_of(table: pa.Table, step: int, names: Sequence[str]) -> list[NDArray[np.uint64]]:
    """Columns of a step; selects with NumPy, since Arrow would start threads of its own."""
    selected = table["step"].to_numpy() == step
    return [table[name].to_numpy()[selected] for name in names]

"""Findings of a workload: rates and latencies by job and request type, and for all jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.latency import OPS, Latencies, latencies_by_op, latencies_of_steps
from ssdlab.records import Finding
from ssdlab.stats.interval import mean_interval
from ssdlab.units import format_duration

COLUMNS: Final = Columns(("job", "op"), ("iops",), {})
"""The columns that `compare` matches and compares between two runs."""
MIB: Final = 1 << 20
FEWEST_INTERVALS: Final = 20
"""With fewer intervals the rate of a job gets no confidence interval."""


def conclude(evidence: Evidence) -> Conclusion:
    """A row for each job and request type; findings are rates, p50 and p99 of all jobs together."""
    steps = [step for step in evidence.steps("job") if step["requests"] > 0]
    rows = [row for step in steps for row in rows_of(evidence.tables, step)]
    if not steps or not sum(map(seconds_of, steps)):
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before a request was complete: no result.")
    findings = _findings(evidence.tables, steps)
    sentence = _sentence(findings, steps, evidence.outcome)
    return Conclusion(rows, findings, qualified(sentence, evidence.warnings))


def rows_of(tables: Mapping[str, pa.Table], step: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each request type of a job: request rate, throughput, percentiles."""
    intervals = tables["intervals"]
    own_rows = intervals.filter(pc.equal(intervals["step"], step["step"]))
    seconds = seconds_of(step)
    latencies = latencies_by_op(tables, [step["step"]])
    rows = []
    for op in (op for op in OPS if op in latencies):
        moved = _bytes(own_rows, op)
        rows.append(
            {
                "job": step["case"],
                "op": op,
                "requests": latencies[op].requests,
                "iops": latencies[op].requests / seconds if seconds else None,
                "mib_per_s": moved / MIB / seconds if moved is not None and seconds else None,
                **latencies[op].columns(),
                "waf": write_amplification([own_rows]) if op == "write" else None,
                "errors": step["errors"],
                "unserved": step.get("unserved"),
                "why": latencies[op].unsupported(),
            }
        )
    return rows


def _bytes(intervals: pa.Table, op: str) -> int | None:
    """Bytes transferred by one request type; None for flushes."""
    read, write, total = (
        pc.sum(intervals[name]).as_py() or 0 for name in ("read_bytes", "write_bytes", "bytes")
    )
    return {"read": read, "write": write, "trim": total - read - write, "flush": None}[op]


def write_amplification(tables: Sequence[pa.Table]) -> float | None:
    """Bytes programmed to the flash / bytes written by the host; None for a real drive.

    `tables` are rows of `records.INTERVALS`. What is in the write buffer at the end is programmed
    later, and not counted.
    """
    if not all("flash_write_bytes" in table.column_names for table in tables):
        return None  # an older run
    flash, host = (
        sum(pc.sum(table[name]).as_py() or 0 for table in tables)
        for name in ("flash_write_bytes", "write_bytes")
    )
    known = any(table["flash_write_bytes"].null_count < len(table) for table in tables)
    return flash / host if known and host else None


def amplification_curve(
    tables: Mapping[str, pa.Table], step: Mapping[str, Any], points: int = 200
) -> list[tuple[float, float]]:
    """Write amplification over a job: seconds since its start, and WAF of the intervals up to then.

    Neighbouring intervals are joined, so that there are at most `points`; the last one, which is
    shorter, is part of the one before.
    """
    intervals = tables["intervals"]
    own_rows = intervals.filter(pc.equal(intervals["step"], step["step"]))
    starts = [*own_rows["start_ns"].to_pylist()[1:], step["end_ns"]]
    joined = -(-len(own_rows) // points) or 1
    curve = []
    edges = [*range(0, len(own_rows), joined), len(own_rows)]
    if len(edges) > 2:
        del edges[-2]
    for at, end in pairwise(edges):
        waf = write_amplification([own_rows.slice(at, end - at)])
        if waf is not None:
            curve.append(((starts[end - 1] - step["start_ns"]) / 1e9, waf))
    return curve


def _findings(
    tables: Mapping[str, pa.Table], steps: Sequence[Mapping[str, Any]]
) -> dict[str, Finding]:
    seconds = sum(seconds_of(step) for step in steps)
    requests, moved = (sum(step[name] for step in steps) for name in ("requests", "bytes"))
    low, high = _rate_interval(tables["intervals"], steps) or (None, None)
    jobs = f"{len(steps)} jobs" if len(steps) > 1 else "the job"
    why = f"{requests} requests of {jobs} in {format_duration(seconds)}"
    value = requests / seconds
    if low is not None and high is not None:
        low, high = min(low, value), max(high, value)
    size = moved / requests / MIB
    rates = {
        "iops": Finding(value, "/s", low, high, why),
        "mib_per_s": Finding(
            moved / MIB / seconds,
            "MiB/s",
            None if low is None else low * size,
            None if high is None else high * size,
            f"{moved / MIB:.6g} MiB in {format_duration(seconds)}",
        ),
    }
    latencies = latencies_of_steps(tables, [step["step"] for step in steps])
    return {**rates, **_percentiles(latencies, jobs), **_amplification(tables, steps, jobs)}


def _amplification(
    tables: Mapping[str, pa.Table], steps: Sequence[Mapping[str, Any]], jobs: str
) -> dict[str, Finding]:
    intervals = tables["intervals"]
    of_jobs = pa.array([step["step"] for step in steps], pa.uint32())
    waf = write_amplification([intervals.filter(pc.is_in(intervals["step"], of_jobs))])
    if waf is None:
        return {}
    why = f"bytes programmed to the flash / bytes that {jobs} wrote, without the first fill"
    return {"waf": Finding(waf, "x", None, None, why)}


def _percentiles(latencies: Latencies, jobs: str) -> dict[str, Finding]:
    columns = latencies.columns()
    why = f"of all {latencies.requests} requests of {jobs}"
    findings = {}
    for name in ("latency_us_p50", "latency_us_p99"):
        reason = why if columns[name] is not None else latencies.unsupported() or why
        findings[name] = Finding(columns[name], "us", None, None, reason)
    return findings


def _rate_interval(
    intervals: pa.Table, steps: Sequence[Mapping[str, Any]]
) -> tuple[float, float] | None:
    """Confidence interval of a job's rate, from its intervals except a partial last one."""
    if len(steps) != 1:
        return None
    own_rows = intervals.filter(pc.equal(intervals["step"], steps[0]["step"]))
    starts, requests = own_rows["start_ns"].to_pylist(), own_rows["requests"].to_pylist()[:-1]
    if len(requests) < FEWEST_INTERVALS or not all(requests):
        return None
    length_s = (starts[-1] - starts[0]) / len(requests) / 1e9
    if len(set(requests)) == 1 or not length_s:
        return None
    low, high = mean_interval(requests, max(1, len(requests) // 10))
    return low / length_s, high / length_s


def _sentence(
    findings: Mapping[str, Finding], steps: Sequence[Mapping[str, Any]], outcome: str
) -> str:
    rate, throughput = findings["iops"].value, findings["mib_per_s"].value
    assert isinstance(rate, float)
    assert isinstance(throughput, float)
    parts = [f"{_digits(rate)} requests/s, {_digits(throughput)} MiB/s"]
    for name, share in (("latency_us_p50", "half"), ("latency_us_p99", "99 %")):
        value = findings[name].value
        if isinstance(value, float):
            parts.append(f"{share} within {format_duration(value / 1e6)}")
    if "waf" in findings:
        parts.append(f"write amplification {_digits(float(findings['waf'].value or 0.0))}")
    unserved = sum(step.get("unserved") or 0 for step in steps)
    late = f"; {unserved} requests that were due had not started at the end" if unserved else ""
    ended = "" if outcome == "complete" else f" ({ENDINGS[outcome].lower()} before the end)"
    return f"{', '.join(parts)}{late}{ended}."


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"

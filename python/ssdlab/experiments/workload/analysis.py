"""What the jobs of a workload did: rates and latencies by kind of request, and of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""The cells of `measures` that runs have in common."""
MIB: Final = 1 << 20
FEWEST_INTERVALS: Final = 20
"""Of one job: with fewer its rate gets no interval."""


def conclude(evidence: Evidence) -> Conclusion:
    """A row a job and kind of request; rates and p50, p99 of all jobs together."""
    steps = [step for step in evidence.steps("job") if step["requests"] > 0]
    rows = [row for step in steps for row in rows_of(evidence.tables, step)]
    if not steps or not sum(map(seconds_of, steps)):
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before a request was done: nothing to tell.")
    found = _findings(evidence.tables, steps)
    sentence = _sentence(found, steps, evidence.outcome)
    return Conclusion(rows, found, qualified(sentence, evidence.warnings))


def rows_of(tables: Mapping[str, pa.Table], step: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each kind of request of a job: rate, speed, percentiles."""
    intervals = tables["intervals"]
    mine = intervals.filter(pc.equal(intervals["step"], step["step"]))
    seconds = seconds_of(step)
    found = latencies_by_op(tables, [step["step"]])
    rows = []
    for op in (op for op in OPS if op in found):
        moved = _bytes(mine, op)
        rows.append(
            {
                "job": step["case"],
                "op": op,
                "requests": found[op].requests,
                "iops": found[op].requests / seconds if seconds else None,
                "mib_per_s": moved / MIB / seconds if moved is not None and seconds else None,
                **found[op].columns(),
                "errors": step["errors"],
                "unserved": step.get("unserved"),
                "why": found[op].unsupported(),
            }
        )
    return rows


def _bytes(intervals: pa.Table, op: str) -> int | None:
    """Bytes that one kind moved; None for a flush."""
    read, write, every = (
        pc.sum(intervals[name]).as_py() or 0 for name in ("read_bytes", "write_bytes", "bytes")
    )
    return {"read": read, "write": write, "trim": every - read - write, "flush": None}[op]


def _findings(
    tables: Mapping[str, pa.Table], steps: Sequence[Mapping[str, Any]]
) -> dict[str, Finding]:
    seconds = sum(seconds_of(step) for step in steps)
    requests, moved = (sum(step[name] for step in steps) for name in ("requests", "bytes"))
    low, high = _rate_interval(tables["intervals"], steps) or (None, None)
    what = f"{len(steps)} jobs" if len(steps) > 1 else "the job"
    why = f"{requests} requests of {what} in {format_duration(seconds)}"
    value = requests / seconds
    if low is not None and high is not None:
        low, high = min(low, value), max(high, value)
    size = moved / requests / MIB
    found = {
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
    return {**found, **_percentiles(latencies, what)}


def _percentiles(latencies: Latencies, what: str) -> dict[str, Finding]:
    said = latencies.columns()
    why = f"of all {latencies.requests} requests of {what}"
    found = {}
    for name in ("latency_us_p50", "latency_us_p99"):
        value = said[name]
        because = why if value is not None else latencies.unsupported() or why
        found[name] = Finding(value, "us", None, None, because)
    return found


def _rate_interval(
    intervals: pa.Table, steps: Sequence[Mapping[str, Any]]
) -> tuple[float, float] | None:
    """Bounds of one job's rate, from its intervals; the last of them is a part of one."""
    if len(steps) != 1:
        return None
    mine = intervals.filter(pc.equal(intervals["step"], steps[0]["step"]))
    starts, requests = mine["start_ns"].to_pylist(), mine["requests"].to_pylist()[:-1]
    if len(requests) < FEWEST_INTERVALS or not all(requests):
        return None
    length_s = (starts[-1] - starts[0]) / len(requests) / 1e9
    if len(set(requests)) == 1 or not length_s:
        return None
    low, high = mean_interval(requests, max(1, len(requests) // 10))
    return low / length_s, high / length_s


def _sentence(
    found: Mapping[str, Finding], steps: Sequence[Mapping[str, Any]], outcome: str
) -> str:
    rate, speed = found["iops"].value, found["mib_per_s"].value
    assert isinstance(rate, float)
    assert isinstance(speed, float)
    said = [f"{_digits(rate)} requests a second, {_digits(speed)} MiB/s"]
    for name, words in (("latency_us_p50", "half"), ("latency_us_p99", "99 %")):
        value = found[name].value
        if isinstance(value, float):
            said.append(f"{words} within {format_duration(value / 1e6)}")
    unserved = sum(step.get("unserved") or 0 for step in steps)
    late = f"; {unserved} requests should have started in time and did not" if unserved else ""
    ended = "" if outcome == "complete" else f" ({ENDINGS[outcome].lower()} before the end)"
    return f"{', '.join(said)}{late}{ended}."


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"

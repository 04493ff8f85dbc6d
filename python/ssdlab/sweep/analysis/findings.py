"""Findings of one run of a sweep: write rate, write amplification, read rate, latencies."""

from __future__ import annotations

from typing import Any, Final

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, seconds_of
from ssdlab.analysis.latency import latencies_of_steps
from ssdlab.records import Finding

MIB: Final = 1 << 20


def conclude(evidence: Evidence) -> Conclusion:
    """The findings `write_iops`, `waf`, `read_mib_per_s`, `latency_us_p50`, `latency_us_p99`."""
    written, read, probes = (evidence.steps(phase) for phase in ("overwrite", "read", "probe"))
    if len(written) < 2 or not read or not probes:
        return Conclusion([], {}, f"{ENDINGS[evidence.outcome]} before all was measured.")
    last = written[-1]
    wafs = [row["value"] for row in evidence.observed("waf") if row["step"] == last["step"] + 1]
    latency = latencies_of_steps(evidence.tables, [step["step"] for step in probes]).columns()
    findings = {
        "write_iops": _finding(_rate(last, "requests"), "/s", "of the second half's writes"),
        "waf": _finding(wafs[0] if wafs else None, "", "of the second half's writes"),
        "read_mib_per_s": _finding(
            _rate(read[0], "bytes", MIB), "MiB/s", "sequential reads of 1 MiB"
        ),
        **{
            name: _finding(latency[name], "us", "of single random reads")
            for name in ("latency_us_p50", "latency_us_p99")
        },
    }
    rate, waf = findings["read_mib_per_s"].value, findings["waf"].value
    return Conclusion([], findings, f"Reads {rate:.4g} MiB/s; write amplification {waf}.")


def _rate(step: dict[str, Any], column: str, per: int = 1) -> float | None:
    seconds = seconds_of(step)
    return step[column] / per / seconds if seconds else None


def _finding(value: float | None, unit: str, why: str) -> Finding:
    return Finding(value, unit, None, None, why)

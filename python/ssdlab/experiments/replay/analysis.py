"""Findings of a replayed trace: rates and latencies by request type, and whether it kept pace."""

from __future__ import annotations

import dataclasses
from typing import Final

from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.experiments.workload import analysis as workload
from ssdlab.records import Finding
from ssdlab.units import format_duration

LATE_SHARE: Final = 0.01
"""The pace is kept if less than this share of the requests start more than 1 ms late."""


def conclude(evidence: Evidence) -> Conclusion:
    """The findings of `workload`; at the trace's pace, also how late requests started."""
    base = workload.conclude(evidence)
    observed = {row["name"]: row["value"] for row in evidence.tables["observations"].to_pylist()}
    if "lag_us_max" not in observed or not base.findings:
        return base
    requests = sum(step["requests"] for step in evidence.steps("job"))
    share = observed["late"] / max(requests, 1)
    kept = share < LATE_SHARE
    why = f"{observed['late']:.0f} of {requests} requests started more than a millisecond late"
    findings = {
        **base.findings,
        "pace_kept": Finding(kept, "", None, None, why),
        "lag_us_mean": Finding(observed["lag_us_mean"], "us", None, None, "of all requests"),
        "lag_us_max": Finding(observed["lag_us_max"], "us", None, None, "of the latest request"),
    }
    late = format_duration(observed["lag_us_max"] / 1e6)
    sentence = (
        "The trace's pace was kept."
        if kept
        else f"The pace was not kept: {share:.0%} of the requests started late, by up to {late}; "
        "latencies include this delay."
    )
    return dataclasses.replace(base, findings=findings, verdict=f"{base.verdict} {sentence}")

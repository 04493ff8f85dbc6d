"""What a replayed trace did: rates and latencies by kind, and how well its pace was kept."""

from __future__ import annotations

import dataclasses
from typing import Final

from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.experiments.workload import analysis as workload
from ssdlab.records import Finding
from ssdlab.units import format_duration

LATE_SHARE: Final = 0.01
"""A pace is kept where fewer requests than this share started more than a millisecond late."""


def conclude(evidence: Evidence) -> Conclusion:
    """As `workload` concludes, and of a trace with a pace whether that was kept."""
    base = workload.conclude(evidence)
    seen = {row["name"]: row["value"] for row in evidence.tables["observations"].to_pylist()}
    if "lag_us_max" not in seen or not base.findings:
        return base
    requests = sum(step["requests"] for step in evidence.steps("job"))
    share = seen["late"] / max(requests, 1)
    kept = share < LATE_SHARE
    why = f"{seen['late']:.0f} of {requests} requests started more than a millisecond late"
    findings = {
        **base.findings,
        "pace_kept": Finding(kept, "", None, None, why),
        "lag_us_mean": Finding(seen["lag_us_mean"], "us", None, None, "of all requests"),
        "lag_us_max": Finding(seen["lag_us_max"], "us", None, None, "of the latest request"),
    }
    late = format_duration(seen["lag_us_max"] / 1e6)
    said = (
        "The trace's pace was kept."
        if kept
        else f"The pace was not kept: {share:.0%} of the requests started late, by up to {late}; "
        "latencies count from when they were due."
    )
    return dataclasses.replace(base, findings=findings, verdict=f"{base.verdict} {said}")

"""Rates of one target or setting of an interleaved comparison: each turn, and the medians."""

from __future__ import annotations

from statistics import median

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.experiments.workload.analysis import MIB, rows_of
from ssdlab.records import Finding


def conclude(evidence: Evidence) -> Conclusion:
    """A row for each turn, job and request type; findings are the medians over the turns."""
    steps = [step for step in evidence.steps("job") if step["requests"] > 0]
    rows = [
        {"turn": step["repeat"], **row}
        for step in steps
        for row in rows_of(evidence.tables, step)
        if seconds_of(step)
    ]
    if not rows:
        return Conclusion([], {}, f"{ENDINGS[evidence.outcome]} before a turn was complete.")
    turns: dict[int, list[float]] = {}
    for step in steps:
        seconds, requests, moved = turns.setdefault(step["repeat"], [0.0, 0.0, 0.0])
        sums = [seconds + seconds_of(step), requests + step["requests"], moved + step["bytes"]]
        turns[step["repeat"]] = sums
    why = f"the median of {len(turns)} turns"
    iops = median(requests / seconds for seconds, requests, _ in turns.values())
    throughput = median(moved / MIB / seconds for seconds, _, moved in turns.values())
    findings = {
        "iops": Finding(iops, "/s", None, None, why),
        "mib_per_s": Finding(throughput, "MiB/s", None, None, why),
    }
    rate = f"{iops:.4g}" if iops < 1000 else f"{iops:.0f}"
    sentence = f"{rate} requests/s, the median of {len(turns)} turns."
    return Conclusion(rows, findings, qualified(sentence, evidence.warnings))

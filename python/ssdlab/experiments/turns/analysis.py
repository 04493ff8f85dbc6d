"""What each turn of a side did, and the medians of its turns."""

from __future__ import annotations

from statistics import median

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.experiments.workload.analysis import MIB, rows_of
from ssdlab.records import Finding


def conclude(evidence: Evidence) -> Conclusion:
    """A row a turn, job and kind of request; the medians of the turns' rates."""
    steps = [step for step in evidence.steps("job") if step["requests"] > 0]
    rows = [
        {"turn": step["repeat"], **row}
        for step in steps
        for row in rows_of(evidence.tables, step)
        if seconds_of(step)
    ]
    if not rows:
        return Conclusion([], {}, f"{ENDINGS[evidence.outcome]} before a turn was done.")
    turns: dict[int, list[float]] = {}
    for step in steps:
        seconds, requests, moved = turns.setdefault(step["repeat"], [0.0, 0.0, 0.0])
        done = [seconds + seconds_of(step), requests + step["requests"], moved + step["bytes"]]
        turns[step["repeat"]] = done
    why = f"the median of {len(turns)} turns"
    rates = [requests / seconds for seconds, requests, _ in turns.values()]
    speeds = [moved / MIB / seconds for seconds, _, moved in turns.values()]
    findings = {
        "iops": Finding(median(rates), "/s", None, None, why),
        "mib_per_s": Finding(median(speeds), "MiB/s", None, None, why),
    }
    middle = f"{median(rates):.4g}" if median(rates) < 1000 else f"{median(rates):.0f}"
    sentence = f"{middle} requests a second, the median of {len(turns)} turns."
    return Conclusion(rows, findings, qualified(sentence, evidence.warnings))

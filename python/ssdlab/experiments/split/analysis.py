"""The cost of splitting a read into many commands."""

from __future__ import annotations

import statistics
from typing import Any, Final

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.shown import is_shown, not_excluded
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval

COLUMNS: Final = Columns(
    ("unit_kib", "queue_depth"),
    ("read_ms",),
    {"read_ms": "read_ms_all"},
    {"unit_kib": "{} KiB units", "queue_depth": "queue depth {}"},
)
"""The columns that `compare` matches and compares between two runs."""
KIB: Final = 1024
CHEAP: Final = 1.1
"""A smaller ratio counts as no penalty: repeats scatter by a few per cent."""


def conclude(evidence: Evidence) -> Conclusion:
    """A row for each command size and queue depth; `split_penalty` at the lowest depth."""
    rows = _rows(evidence)
    penalty = _penalty(rows, max(1, int(evidence.parameters["repeats"])))
    if penalty is None:
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before enough was read: too little to tell.")
    sentence = _sentence(penalty, rows)
    return Conclusion(rows, {"split_penalty": penalty}, qualified(sentence, evidence.warnings))


def _rows(evidence: Evidence) -> list[dict[str, Any]]:
    times: dict[tuple[int, int], list[float]] = {}
    for step in evidence.steps("read"):
        case = (step["queue_depth"], step["block_bytes"])
        times.setdefault(case, []).append(1000 * seconds_of(step))
    return [
        {
            "unit_kib": unit // KIB,
            "queue_depth": depth,
            "read_ms": statistics.median(reads_ms),
            "read_ms_all": reads_ms,
        }
        for (depth, unit), reads_ms in sorted(
            times.items(), key=lambda item: (item[0][0], -item[0][1])
        )
    ]


def _penalty(rows: list[dict[str, Any]], repeats: int) -> Finding | None:
    """Read time with the smallest commands / with the largest, at the lowest depth; or None."""
    complete = [row for row in rows if len(row["read_ms_all"]) >= repeats]
    lowest = min((row["queue_depth"] for row in complete), default=0)
    at_lowest = [row for row in complete if row["queue_depth"] == lowest]
    if len(at_lowest) < 2:
        return None
    large, small = at_lowest[0], at_lowest[-1]
    value = small["read_ms"] / large["read_ms"]
    bounds = ratio_interval(small["read_ms_all"], large["read_ms_all"])
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (None, None)
    why = (
        f"as much data took {large['read_ms']:.3g} ms with commands of "
        f"{large['unit_kib']} KiB and {small['read_ms']:.3g} ms with {small['unit_kib']} KiB, one "
        "at a time"
    )
    return Finding(value=value, unit="x", low=low, high=high, why=why)


def _sentence(penalty: Finding, rows: list[dict[str, Any]]) -> str:
    assert isinstance(penalty.value, float)
    if not is_shown(penalty, CHEAP):
        why = not_excluded(penalty, CHEAP)
        if why:
            return f"No cost of splitting a read into small commands shown: {why}."
        return "Splitting a read into small commands has no measurable cost here."
    highest = max(row["queue_depth"] for row in rows)
    lowest = min(row["queue_depth"] for row in rows)
    times_ms = [row["read_ms"] for row in rows if row["queue_depth"] == highest]
    ratio = times_ms[-1] / times_ms[0] if times_ms else float("nan")
    at_highest = f", and {ratio:.2f} times as long {highest} at a time" if highest > lowest else ""
    return (
        f"Reading with commands of {rows[-1]['unit_kib']} KiB takes {penalty.value:.2f} times as "
        f"long as with {rows[0]['unit_kib']} KiB, one at a time{at_highest}."
    )

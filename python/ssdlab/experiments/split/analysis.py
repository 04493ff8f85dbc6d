"""What splitting a read into many commands costs, with nothing else changed."""

from __future__ import annotations

import statistics
from typing import Any, Final

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval

COLUMNS: Final = Columns(("unit_kib", "queue_depth"), ("read_ms",), {"read_ms": "read_ms_all"})
"""The cells of `measures` that runs have in common."""
KIB: Final = 1024
CHEAP: Final = 1.1
"""Below this ratio splitting is called free: repeats scatter by a few per cent."""


def conclude(evidence: Evidence) -> Conclusion:
    """A row a command size and depth; `split_penalty` is that of the smallest, one at a time."""
    rows = _rows(evidence)
    found = _penalty(rows, max(1, int(evidence.parameters["repeats"])))
    if found is None:
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before enough was read: too little to tell.")
    sentence = _sentence(found, rows)
    return Conclusion(rows, {"split_penalty": found}, qualified(sentence, evidence.warnings))


def _rows(evidence: Evidence) -> list[dict[str, Any]]:
    times: dict[tuple[int, int], list[float]] = {}
    for step in evidence.steps("read"):
        place = (step["queue_depth"], step["block_bytes"])
        times.setdefault(place, []).append(1000 * seconds_of(step))
    return [
        {
            "unit_kib": unit // KIB,
            "queue_depth": depth,
            "read_ms": statistics.median(each),
            "read_ms_all": each,
        }
        for (depth, unit), each in sorted(times.items(), key=lambda item: (item[0][0], -item[0][1]))
    ]


def _penalty(rows: list[dict[str, Any]], repeats: int) -> Finding | None:
    """The smallest commands over the largest, at the least depth; None where one is missing."""
    whole = [row for row in rows if len(row["read_ms_all"]) >= repeats]
    least = min((row["queue_depth"] for row in whole), default=0)
    alone = [row for row in whole if row["queue_depth"] == least]
    if len(alone) < 2:
        return None
    large, small = alone[0], alone[-1]
    value = small["read_ms"] / large["read_ms"]
    bounds = ratio_interval(small["read_ms_all"], large["read_ms_all"])
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (None, None)
    why = (
        f"the same bytes took {large['read_ms']:.3g} ms by commands of {large['unit_kib']} KiB "
        f"and {small['read_ms']:.3g} ms by {small['unit_kib']} KiB, one at a time"
    )
    return Finding(value=value, unit="x", low=low, high=high, why=why)


def _sentence(found: Finding, rows: list[dict[str, Any]]) -> str:
    assert isinstance(found.value, float)
    deep = max(row["queue_depth"] for row in rows)
    least = min(row["queue_depth"] for row in rows)
    many = [row["read_ms"] for row in rows if row["queue_depth"] == deep]
    ratio = many[-1] / many[0] if many else float("nan")
    if found.value < CHEAP:
        return "Splitting a read into small commands costs nothing that can be seen here."
    cure = f"; {deep} at a time {ratio:.2f} times" if deep > least else ""
    return (
        f"Reading by commands of {rows[-1]['unit_kib']} KiB takes {found.value:.2f} times as long "
        f"as by {rows[0]['unit_kib']} KiB, one at a time{cure}."
    )

"""Findings of a trim on a twin: whether it unmapped the blocks, and the WAF before and after.

Timing alone decides whether the trim reached the flash. The counters of the twin are shown as rows.
"""

from __future__ import annotations

import statistics
from typing import Any, Final

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, seconds_of
from ssdlab.records import Finding
from ssdlab.stats.interval import median_ratio_interval
from ssdlab.units import format_duration

SAME: Final = 1.06
"""Reads that still sense flash are at most this factor faster than before (noise)."""
FASTER: Final = 1.03
"""Reads that sense none are at least this factor faster: a tR of 5 us in a read of 80 us has 1.07.
"""


def conclude(evidence: Evidence) -> Conclusion:
    """`reaches`, from the flash reads for trimmed blocks; `waf_full` and `waf_trimmed`."""
    values = {name: _value(evidence, name) for name in _NAMES}
    rows = _rows(values)
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < len(_NAMES):
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before all was measured: too little to tell.")
    reaches = reach_of(evidence)
    layer = None if reaches.value is None else "none" if reaches.value else "drive"
    findings = {
        "reaches": reaches,
        "layer": Finding(layer, "", None, None, "a twin is one layer"),
        "reads_back": Finding(None, "", None, None, _NO_DATA),
        "waf_full": Finding(known["waf_full"], "x", None, None, _WHY_FULL),
        "waf_trimmed": Finding(known["waf_trimmed"], "x", None, None, _WHY_TRIMMED),
    }
    return Conclusion(rows, findings, _sentence(known, reaches))


def reach_of(evidence: Evidence) -> Finding:
    """The finding `reaches`, from the times of random reads before and after the trim."""
    before, after = (
        [
            seconds_of(step) / step["requests"]
            for step in evidence.steps("timed")
            if step["stage"] == stage
        ]
        for stage in (0, 1)
    )
    ratio = statistics.median(before) / statistics.median(after)
    # By ranks: an SLC cache that is still being folded delays some reads.
    low, high = median_ratio_interval(before, after) or (ratio, ratio)
    why = (
        f"a random read of 4 KiB took {format_duration(statistics.median(before))} before the trim "
        f"and {format_duration(statistics.median(after))} after it"
    )
    if low > FASTER:
        return Finding(True, "", None, None, f"{why}: trimmed blocks need no flash read")
    if high < SAME:
        return Finding(False, "", None, None, f"{why}: flash is still read")
    return Finding(None, "", None, None, f"{why}: too close to tell; run it again")


_NAMES = (
    *("mapping_units", "units_trimmed", "senses_written", "senses_trimmed"),
    *("waf_full", "waf_trimmed"),
)
_NO_DATA = "a twin stores no data; to read a trimmed block back, serve the twin (ssdlab serve)"
_WHY_FULL = "half of the drive overwritten at random, the other half full"
_WHY_TRIMMED = "the same after the other half was trimmed"


def _rows(values: dict[str, float | None]) -> list[dict[str, Any]]:
    details = {
        "mapping_units": "{:.0f} mapping units written",
        "senses_written": "{:.0f} senses of flash to read them",
        "units_trimmed": "{:.0f} mapping units trimmed",
        "senses_trimmed": "{:.0f} senses of flash to read them again",
        "waf_full": f"write amplification {{:.2f}}: {_WHY_FULL}",
        "waf_trimmed": f"write amplification {{:.2f}}: {_WHY_TRIMMED}",
    }
    steps = {
        "mapping_units": "written",
        "senses_written": "read",
        "units_trimmed": "trimmed",
        "senses_trimmed": "read after the trim",
        "waf_full": "worth: before",
        "waf_trimmed": "worth: after",
    }
    empty = {"layer": None, "device": None, "passes": None}
    return [
        {"step": steps[name], **empty, "detail": text.format(values[name])}
        for name, text in details.items()
        if values[name] is not None
    ]


def _sentence(known: dict[str, float], reaches: Finding) -> str:
    if reaches.value is None:
        return f"Not determined: {reaches.why}."
    if not reaches.value:
        return f"The twin did not unmap the trimmed blocks: {reaches.why}."
    return (
        "A trim unmaps the blocks: reading them senses no flash, and with half of the drive "
        f"trimmed the write amplification of random writes is {known['waf_trimmed']:.2f} instead "
        f"of {known['waf_full']:.2f}."
    )


def _value(evidence: Evidence, name: str) -> float | None:
    rows = evidence.observed(name)
    return rows[-1]["value"] if rows else None

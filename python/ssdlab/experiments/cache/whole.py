"""The conclusion of cache for a drive whose first part showed no drop, so that all was written."""

from __future__ import annotations

from typing import Any, Final

from ssdlab.analysis.evidence import Conclusion, Evidence, qualified
from ssdlab.analysis.write_rounds import progress
from ssdlab.experiments.cache.buffers import MIB, RAMP
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import last_drop

KEEPS_UP: Final = 0.9
"""Rates that differ by a smaller factor than this count as one."""


def whole_drive(evidence: Evidence, measures: list[dict[str, Any]]) -> Conclusion:
    """The conclusion if the first part of the drive showed no drop and the rest was written too."""
    steps = [step for step in evidence.steps("write") if step["case"] in {"first", "rest"}]
    curve = progress(evidence, steps)
    rates = curve.written / 4 / curve.between(0.0, curve.written, 4)
    fastest, slowest = float(rates.max()), float(rates.min())
    drop = last_drop(curve, least=RAMP * steps[0]["block_bytes"])
    buffer = (
        "the speed never dropped because a buffer was full: flash accepts data about as fast as "
        "the link delivers it, or the buffer holds a few requests only"
    )
    if drop is not None:
        why = (
            f"the speed drops after {drop.at / MIB:.4g} MiB: an SLC cache is full, or it borrowed "
            "flash that the data needs; repeat the run with half as much data on the drive"
        )
        cache = Finding(None, "MiB", None, drop.at / MIB, why)
        sentence = f"Not determined: {why}."
    elif slowest > KEEPS_UP * fastest:
        why = f"all {curve.written / MIB:.4g} MiB were written at the same rate"
        cache = Finding(0.0, "MiB", None, None, f"{why}: no SLC cache makes writes faster")
        sentence = (
            f"The whole drive is written at {slowest / MIB:.4g} MiB/s: neither a buffer nor an SLC "
            "cache makes sequential writes faster than flash."
        )
    else:
        why = (
            f"the rate fell from {fastest / MIB:.4g} to {slowest / MIB:.4g} MiB/s, too little or "
            "too slowly for a full cache; if the drive held data, trim it and repeat the run"
        )
        cache = Finding(None, "MiB", None, None, why)
        sentence = f"Not determined: {why}."
    findings = {
        "buffer_mib": Finding(None, "MiB", None, None, buffer),
        "slc_mib": cache,
        "refill_s": Finding(None, "s", None, None, "no further write was needed"),
    }
    return Conclusion(measures, findings, qualified(sentence, evidence.warnings))

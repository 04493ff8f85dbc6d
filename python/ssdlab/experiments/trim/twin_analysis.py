"""Findings of a trim on a twin: whether it unmapped the blocks, and the WAF before and after."""

from __future__ import annotations

from typing import Any

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence
from ssdlab.records import Finding


def conclude(evidence: Evidence) -> Conclusion:
    """`reaches`, from the flash reads for trimmed blocks; `waf_full` and `waf_trimmed`."""
    values = {name: _value(evidence, name) for name in _NAMES}
    rows = _rows(values)
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < len(_NAMES):
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before all was measured: too little to tell.")
    reaches = known["units_trimmed"] == known["mapping_units"] and known["senses_trimmed"] == 0
    why = (
        f"reading the region took {known['senses_written']:.0f} flash reads (senses) when written "
        f"and {known['senses_trimmed']:.0f} when trimmed"
    )
    findings = {
        "reaches": Finding(reaches, "", None, None, why),
        "layer": Finding("none" if reaches else "drive", "", None, None, "a twin is one layer"),
        "reads_back": Finding(None, "", None, None, _NO_DATA),
        "waf_full": Finding(known["waf_full"], "x", None, None, _WHY_FULL),
        "waf_trimmed": Finding(known["waf_trimmed"], "x", None, None, _WHY_TRIMMED),
    }
    return Conclusion(rows, findings, _sentence(known, reaches=reaches))


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


def _sentence(known: dict[str, float], *, reaches: bool) -> str:
    if not reaches:
        return "The twin did not unmap the trimmed blocks."
    return (
        "A trim unmaps the blocks: reading them senses no flash, and with half of the drive "
        f"trimmed the write amplification of random writes is {known['waf_trimmed']:.2f} instead "
        f"of {known['waf_full']:.2f}."
    )


def _value(evidence: Evidence, name: str) -> float | None:
    rows = evidence.observed(name)
    return rows[-1]["value"] if rows else None

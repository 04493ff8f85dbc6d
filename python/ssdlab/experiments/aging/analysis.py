"""Analysis of aging: by how much random writes slow sequential reads, and whether idle time helps.

`slowdown` is the best read time after the last amount of random writes, divided by the best read
time of the fresh file. The published table that the experiment follows takes the best of three
reads in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.shown import is_shown, not_excluded
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval
from ssdlab.units import format_duration

COLUMNS: Final = Columns(
    ("written_mib",),
    ("read_s",),
    {"read_s": "read_s_all"},
    {"written_mib": "{} MiB written"},
)
"""The columns that `compare` matches and compares between two runs."""
SLOWDOWN_MIN: Final = 1.05
"""Smaller ratios count as no slowdown: repeated reads of an idle drive differ by a few per cent."""
RECOVERY_MIN: Final = 0.5
"""A drive recovers if idle time removes at least this share of the added read time."""


def conclude(evidence: Evidence) -> Conclusion:
    """One row per stage, the findings `slowdown` and `recovers`, and the verdict."""
    steps, repeats = evidence.tables["steps"], len(evidence.parameters["rests_s"])
    rows, results = measures(steps, repeats), findings(steps, repeats)
    sentence = verdict(results, complete_stages(rows, repeats), evidence.outcome, evidence.warnings)
    return Conclusion(rows, results, sentence)


def measures(steps: pa.Table, repeats: int) -> list[dict[str, Any]]:
    """One row per stage, in order: written_mib (cumulative), read_s (best), read_s_all.

    Only the first `repeats` reads of a stage count, not the read after the long idle time. A stage
    without reads (of an interrupted run) has no row; a stage with too few reads has one.
    """
    written_bytes, rows = 0, []
    read_seconds: dict[int, list[float]] = {}
    written_at: dict[int, int] = {}
    for step in steps.to_pylist():
        if step["phase"] == "overwrite":
            written_bytes += step["bytes"]
        elif step["phase"] == "read" and step["repeat"] < repeats:
            read_seconds.setdefault(step["stage"], []).append(seconds_of(step))
            written_at[step["stage"]] = written_bytes
    for stage, seconds in read_seconds.items():
        written_mib = written_at[stage] / 2**20
        rows.append({"written_mib": written_mib, "read_s": min(seconds), "read_s_all": seconds})
    return rows


def complete_stages(rows: list[dict[str, Any]], repeats: int) -> list[dict[str, Any]]:
    """The rows with all `repeats` reads; an interrupted run may lack some in its last stage."""
    return [row for row in rows if len(row["read_s_all"]) >= repeats]


def faster_than_fresh(rows: list[dict[str, Any]]) -> bool:
    """Whether a stage read faster than the fresh file, which random writes do not explain."""
    return any(row["read_s"] * SLOWDOWN_MIN < rows[0]["read_s"] for row in rows[1:])


def findings(steps: pa.Table, repeats: int) -> dict[str, Finding]:
    """`slowdown` and `recovers`; empty with fewer than two complete stages."""
    rows = complete_stages(measures(steps, repeats), repeats)
    if len(rows) < 2:
        return {}
    slowdown = _slowdown(rows[0], rows[-1])
    last_reads = [
        step
        for step in steps.to_pylist()
        if step["phase"] == "read" and step["stage"] == len(rows) - 1
    ]
    is_slower = is_shown(slowdown, SLOWDOWN_MIN) and not faster_than_fresh(rows)
    recovers = _recovers(rows[0]["read_s"], last_reads, is_slower=is_slower)
    return {"slowdown": slowdown, "recovers": recovers}


def verdict(
    results: dict[str, Finding],
    rows: list[dict[str, Any]],
    outcome: str,
    warnings: Iterable[str] = (),
) -> str:
    """The verdict sentence, from the findings and the complete rows.

    `outcome` is how the run ended (manifest). `warnings` are warning codes: some of them mean
    that the numbers may not be the drive's, and the sentence says so.
    """
    sentence = _unqualified_verdict(results, rows, outcome)
    return qualified(sentence, frozenset(warnings)) if results else sentence


def _unqualified_verdict(
    results: dict[str, Finding], rows: list[dict[str, Any]], outcome: str
) -> str:
    ended = ENDINGS[outcome]
    if "slowdown" not in results:
        return f"{ended} before there were enough reads of the fresh and the aged file to compare."
    slowdown = results["slowdown"]
    fresh, aged = (format_duration(rows[n]["read_s"]) for n in (0, -1))
    times = f"{fresh} fresh, {aged} after {_format_mib(rows[-1]['written_mib'])}"
    partly = f" ({ended.lower()}: not all amounts were written)"
    ending = "" if outcome == "complete" else partly
    ratio = slowdown.value
    assert isinstance(ratio, float)
    if not is_shown(slowdown, SLOWDOWN_MIN):
        why = not_excluded(slowdown, SLOWDOWN_MIN)
        if not why:
            return f"Random writes do not slow reads: {times}{ending}."
        return f"No slowdown shown: {why} ({times}){ending}."
    if faster_than_fresh(rows):
        why = (
            "some reads in between were faster than fresh, so the storage's speed varies by itself"
        )
        return f"No clear slowdown: {why} ({times}){ending}."
    recovery = (
        "idle time restores the speed"
        if results["recovers"].value is True
        else "idle time does not restore the speed (rewriting in order usually does)"
    )
    return f"Random writes make reads {ratio:.2f} times slower ({times}); {recovery}{ending}."


def _slowdown(fresh: dict[str, Any], aged: dict[str, Any]) -> Finding:
    value = aged["read_s"] / fresh["read_s"]
    bounds = ratio_interval(aged["read_s_all"], fresh["read_s_all"])
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (None, None)
    why = (
        f"best of {len(fresh['read_s_all'])} reads fresh: {format_duration(fresh['read_s'])}; "
        f"best of {len(aged['read_s_all'])} after {_format_mib(aged['written_mib'])} of random "
        f"writes: {format_duration(aged['read_s'])}"
    )
    return Finding(value=value, unit="x", low=low, high=high, why=why)


def _recovers(fresh_s: float, aged: list[dict[str, Any]], *, is_slower: bool) -> Finding:
    """Compares the first and the last read after the last random writes."""
    first, last = seconds_of(aged[0]), seconds_of(aged[-1])
    if not is_slower or first < SLOWDOWN_MIN * fresh_s:
        why = "no slowdown was measured, so there is nothing to recover from"
        return Finding(value=None, unit="", low=None, high=None, why=why)
    rested = format_duration(sum(step["rest_s"] for step in aged))
    why = (
        f"{format_duration(first)} after the first rest, {format_duration(last)} after {rested} "
        f"of rest in total; fresh: {format_duration(fresh_s)}"
    )
    recovered = first - last >= RECOVERY_MIN * (first - fresh_s)
    return Finding(value=recovered, unit="", low=None, high=None, why=why)


def _format_mib(mib: float) -> str:
    return f"{mib:.4g} MiB" if mib < 1000 else f"{mib:.0f} MiB"

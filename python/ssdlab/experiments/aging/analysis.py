"""How much random writing slowed sequential reads, and whether rest heals that.

Question and method: a file is read, overwritten at random by growing amounts, and read again after
each. `slowdown` is the best read after the last amount over the best read of the fresh file, as in
the published table that the experiment follows (best of three reads counts).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval
from ssdlab.units import format_duration

COLUMNS: Final = Columns(("written_mib",), ("read_s",), {"read_s": "read_s_all"})
"""The cells of `measures` that runs have in common."""
SLOW: Final = 1.05
"""A slowdown below this is called none: repeats on quiet drives scatter by a few per cent."""
HEALED: Final = 0.5
"""Rest heals where it takes away at least this share of the added time."""


def conclude(evidence: Evidence) -> Conclusion:
    """The whole of it: a row a stage, `slowdown` and `recovers`, and the sentence."""
    steps, repeats = evidence.tables["steps"], len(evidence.parameters["rests_s"])
    rows, found = measures(steps, repeats), findings(steps, repeats)
    sentence = verdict(
        found, whole(rows, repeats), outcome=evidence.outcome, warnings=evidence.warnings
    )
    return Conclusion(rows, found, sentence)


def measures(steps: pa.Table, repeats: int) -> list[dict[str, Any]]:
    """One row an amount: written_mib (in all), read_s (best), read_s_all, in the steps' order.

    `repeats` reads belong to a stage; a further one, after a long rest, is left out. A stage
    without a read (the run was interrupted) has no row; one with fewer is here but not judged.
    """
    written_bytes, rows = 0, []
    stages: dict[int, list[float]] = {}
    amounts: dict[int, int] = {}
    for step in steps.to_pylist():
        if step["phase"] == "overwrite":
            written_bytes += step["bytes"]
        elif step["phase"] == "read" and step["repeat"] < repeats:
            stages.setdefault(step["stage"], []).append(seconds_of(step))
            amounts[step["stage"]] = written_bytes
    for stage, seconds in stages.items():
        written_mib = amounts[stage] / 2**20
        rows.append({"written_mib": written_mib, "read_s": min(seconds), "read_s_all": seconds})
    return rows


def whole(rows: list[dict[str, Any]], repeats: int) -> list[dict[str, Any]]:
    """The rows that have all their reads: a stage that was broken off has too few to tell."""
    return [row for row in rows if len(row["read_s_all"]) >= repeats]


def drifts(rows: list[dict[str, Any]]) -> bool:
    """Whether a stage was read faster than the fresh file: then other things than age decide."""
    return any(row["read_s"] * SLOW < rows[0]["read_s"] for row in rows[1:])


def findings(steps: pa.Table, repeats: int) -> dict[str, Finding]:
    """`slowdown` and `recovers`; nothing before the file was read often enough fresh and aged."""
    rows = whole(measures(steps, repeats), repeats)
    if len(rows) < 2:
        return {}
    found = {"slowdown": _slowdown(rows[0], rows[-1])}
    reads = [step for step in steps.to_pylist() if step["phase"] == "read"]
    aged = [step for step in reads if step["stage"] == len(rows) - 1]
    shown = _is_shown(found["slowdown"]) and not drifts(rows)
    found["recovers"] = _recovers(rows[0], aged, shown=shown)
    return found


def verdict(
    found: dict[str, Finding],
    rows: list[dict[str, Any]],
    *,
    outcome: str,
    warnings: Iterable[str] = (),
) -> str:
    """One sentence for people, from whole rows.

    `outcome` is how the run ended (manifest); `warnings` are codes of warnings: some say that what
    was measured may not be the drive, and then the sentence must not stand alone.
    """
    sentence = _plain_verdict(found, rows, outcome)
    return qualified(sentence, frozenset(warnings)) if found else sentence


def _plain_verdict(found: dict[str, Finding], rows: list[dict[str, Any]], outcome: str) -> str:
    ended = ENDINGS[outcome]
    if "slowdown" not in found:
        return f"{ended} before enough reads of the file fresh and aged: too little to tell."
    slowdown = found["slowdown"]
    fresh, aged = rows[0]["read_s"], rows[-1]["read_s"]
    times = f"{_short(fresh)} fresh, {_short(aged)} after {_mib(rows[-1]['written_mib'])}"
    partly = f" ({ended.lower()}: not all amounts were written)"
    ending = "" if outcome == "complete" else partly
    ratio = slowdown.value
    assert isinstance(ratio, float)
    if ratio < SLOW:
        return f"Random writing does not slow reads here: {times}{ending}."
    if not _is_shown(slowdown):
        return f"No slowdown shown: the reads scatter more than they differ ({times}){ending}."
    if drifts(rows):
        why = "reads in between were faster than fresh, so this storage drifts by itself"
        return f"No clear slowdown: {why} ({times}){ending}."
    heals = found["recovers"].value is True
    tail = "rest heals it" if heals else "rest does not heal it (rewriting in order usually does)"
    return f"Random writing makes reads {ratio:.2f} times slower ({times}); {tail}{ending}."


def _is_shown(slowdown: Finding) -> bool:
    """Whether the ratio is above noise: its interval, where there is one, excludes none at all."""
    assert isinstance(slowdown.value, float)
    return slowdown.value >= SLOW and (slowdown.low is None or slowdown.low > 1.0)


def _slowdown(fresh: dict[str, Any], aged: dict[str, Any]) -> Finding:
    value = aged["read_s"] / fresh["read_s"]
    bounds = ratio_interval(aged["read_s_all"], fresh["read_s_all"])
    low, high = (min(bounds[0], value), max(bounds[1], value)) if bounds else (None, None)
    why = (
        f"best of {len(fresh['read_s_all'])} reads fresh {_short(fresh['read_s'])}, best of "
        f"{len(aged['read_s_all'])} after {_mib(aged['written_mib'])} of random writes "
        f"{_short(aged['read_s'])}"
    )
    return Finding(value=value, unit="x", low=low, high=high, why=why)


def _recovers(fresh: dict[str, Any], aged: list[dict[str, Any]], *, shown: bool) -> Finding:
    """Compares the last read after the last writing with the first, against the fresh one."""
    first, last = seconds_of(aged[0]), seconds_of(aged[-1])
    added = first - fresh["read_s"]
    rested = format_duration(sum(step["rest_s"] for step in aged))
    if not shown or first < SLOW * fresh["read_s"]:
        why = "no slowdown was shown, so there is nothing to recover from"
        return Finding(value=False, unit="", low=None, high=None, why=why)
    why = (
        f"{_short(first)} after the first rest, {_short(last)} after {rested} of rest in all; "
        f"fresh {_short(fresh['read_s'])}"
    )
    healed = first - last >= HEALED * added
    return Finding(value=healed, unit="", low=None, high=None, why=why)


def _mib(written: float) -> str:
    return f"{written:.4g} MiB" if written < 1000 else f"{written:.0f} MiB"


def _short(seconds: float) -> str:
    return format_duration(seconds)

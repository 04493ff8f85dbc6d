"""Findings and verdict over all verified cuts.

The unit is the cut: all its requests share one moment, so a thousand requests lost or kept in one
cut are one event.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab.stats.binomial import proportion_bounds, proportion_upper_bound, trials_needed
from ssdlab.witness.journal import Record, events

Control = Literal["none", "negative", "positive"]
LOSS_RATE_AIM: Final = 0.05
"""While the upper bound of the loss rate is higher, the verdict says how many cuts are needed."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a round; `counts` if the drive is known to have lost power."""

    run: str
    round: int
    control: Control
    counts: bool
    software: tuple[str, ...]
    kinds: dict[str, int]
    in_flight: int
    near_misses: int
    requests: int


def verifications_of(run: str, records: list[Record]) -> list[Verification]:
    """The first verification of each round of a run: it read the drive first."""
    by_round: dict[int, Verification] = {}
    for event in events(records, "verified"):
        judgement = event["judgement"]
        verification = Verification(
            run=run,
            round=event["round"],
            control=event["control"],
            counts=event["proof"]["level"] in {"measured", "attested"},
            software=tuple(event["software"]),
            kinds=judgement["kinds"],
            in_flight=judgement["in_flight"]["requests"],
            near_misses=judgement["in_flight"]["near_misses"],
            requests=judgement["durable"],
        )
        by_round.setdefault(event["round"], verification)
    return list(by_round.values())


def summarize(verifications: list[Verification]) -> dict[str, Any]:
    """Counts, bounds and verdict, with the keys of `--json`: findings, warnings, verdict, bad.

    Findings: cuts, bad_cuts, loss_rate_per_cut (95 % interval; without a loss only `high`),
    loss_rate_per_request (assumes that requests in flight are independent, which they are not),
    in_flight_mean, near_misses, kinds.
    """
    cuts = [each for each in verifications if each.control == "none" and each.counts]
    bad = [cut for cut in cuts if cut.kinds]
    n, k = len(cuts), sum(cut.in_flight for cut in cuts)
    kinds = sum((Counter(cut.kinds) for cut in cuts), Counter[str]())
    low, high = proportion_bounds(len(bad), n) if bad else (0.0, proportion_upper_bound(0, n))
    findings = {
        "cuts": _finding(n, "", "cuts with proof that power was lost"),
        "bad_cuts": _finding(len(bad), "", "cuts after which acknowledged data was missing"),
        "loss_rate_per_cut": {
            "value": len(bad) / n if n else None,
            "unit": "",
            "low": low,
            "high": high,
            "why": "exact binomial bounds (Clopper-Pearson), 95 %; the unit is the cut",
        },
        "loss_rate_per_request": {
            "value": None,
            "unit": "",
            "low": None,
            "high": proportion_upper_bound(0, k) if k and not bad else None,
            "why": f"optimistic: assumes that the {k} requests in flight are independent",
        },
        "in_flight_mean": _finding(k / n if n else None, "requests", "issued, not acknowledged"),
        "near_misses": _finding(
            sum(cut.near_misses for cut in cuts), "requests", "in the buffer when power was lost"
        ),
        "kinds": _finding(dict(kinds), "requests", "missing or damaged, by kind"),
    }
    return {
        "findings": findings,
        "warnings": _warnings(verifications, cuts),
        "verdict": _verdict(cuts, bad, high, verifications),
        "bad": bool(bad) or _loses_without_cut(verifications),
    }


def _loses_without_cut(verifications: list[Verification]) -> bool:
    return any(each.kinds for each in verifications if each.control == "negative")


def _verdict(
    cuts: list[Verification],
    bad: list[Verification],
    high: float,
    verifications: list[Verification],
) -> str:
    if _loses_without_cut(verifications):
        return (
            "Data was lost without a power cut: the software loses it, so the drive cannot be "
            "judged. Check the file system and its mount options."
        )
    if not cuts:
        return _verdict_without_cuts(verifications)
    if any(cut.software for cut in bad):
        return f"{len(bad)} of {len(cuts)} cuts lost data, but the software sent no flushes."
    if bad:
        return (
            f"The drive does not keep what it acknowledged: {len(bad)} of {len(cuts)} cuts lost "
            "data that a flush had covered."
        )
    if not any(cut.near_misses for cut in cuts):
        return (
            f"No loss in {len(cuts)} cuts, and no near miss: either the drive has power-loss "
            f"protection, or it was idle at the cuts; at most {high:.2g} of cuts lose data (95 %)."
        )
    more = ""
    if high > LOSS_RATE_AIM:
        more = f"; {trials_needed(LOSS_RATE_AIM)} clean cuts would bound it at {LOSS_RATE_AIM:.0%}"
    return f"No loss in {len(cuts)} cuts: at most {high:.2g} of cuts lose data (95 %){more}."


def _verdict_without_cuts(verifications: list[Verification]) -> str:
    unproven = [each for each in verifications if each.control == "none"]
    missing = sum(bool(each.kinds) for each in unproven)
    if missing:
        return (
            "No verdict on the drive: data that a flush had covered is missing in "
            f"{missing} of {len(unproven)} verifications, but nothing shows that power was lost. "
            "If you cut it, add --power-was-cut."
        )
    if unproven:
        return (
            "No verdict: nothing is missing, but nothing shows that power was lost. If you cut it, "
            "add --power-was-cut."
        )
    return "No verdict: there was no cut with proof that power was lost."


def _warnings(verifications: list[Verification], cuts: list[Verification]) -> list[str]:
    warnings = []
    unproven = [each for each in verifications if each.control == "none" and not each.counts]
    if unproven:
        warnings.append(
            f"{len(unproven)} verifications have no proof that power was lost and do not count; "
            "if you cut it yourself, verify with --power-was-cut."
        )
    idle = [cut for cut in cuts if not cut.in_flight]
    if idle:
        warnings.append(
            f"{len(idle)} cuts had nothing in flight and show little; cut while `write` runs."
        )
    warnings += sorted({sentence for each in verifications for sentence in each.software})
    controls = {each.control: each for each in verifications}
    if cuts and "negative" not in controls:
        warnings.append("No negative control: verify once without a cut (--control negative).")
    if cuts and "positive" not in controls:
        warnings.append("No positive control: write once without flushes (--sync none), and cut.")
    elif cuts and not controls["positive"].kinds:
        warnings.append(
            "The positive control lost nothing: the drive has power-loss protection, or the cuts "
            "come too late; cut while `write` runs."
        )
    return warnings


def _finding(value: Any, unit: str, why: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "low": None, "high": None, "why": why}

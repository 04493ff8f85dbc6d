"""The report: what all looked-at cuts say together, and a verdict that says no more than that.

The unit is the cut: requests of one cut share its moment, so that a thousand requests lost or kept
at once are one event.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab.stats.binomial import proportion_bounds, proportion_upper_bound, trials_needed
from ssdlab.witness.journal import Record, events

Control = Literal["none", "negative", "positive"]
ENOUGH: Final = 0.05
"""Above this bound a verdict asks for more cuts."""


@dataclass(frozen=True, slots=True)
class Look:
    """One verification: of which round, with what proof that power was lost, and what it found."""

    run: str
    round: int
    control: Control
    counts: bool
    software: tuple[str, ...]
    kinds: dict[str, int]
    in_flight: int
    near_misses: int
    requests: int


def looks_of(run: str, records: list[Record]) -> list[Look]:
    """All verifications of a run; of several of one round the first, for it saw the drive first."""
    found: dict[int, Look] = {}
    for event in events(records, "verified"):
        judgement = event["judgement"]
        look = Look(
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
        found.setdefault(event["round"], look)
    return list(found.values())


def summarize(looks: list[Look]) -> dict[str, Any]:
    """Counts, bounds and a verdict, as `--json` has them: `findings`, `warnings`, `verdict`, `bad`.

    Findings: cuts, bad_cuts, loss_rate_per_cut (its 95 % interval; `high` alone without a loss),
    loss_rate_per_request (as if requests in flight were independent, which they are not),
    in_flight_mean, near_misses, kinds.
    """
    cuts = [look for look in looks if look.control == "none" and look.counts]
    bad = [look for look in cuts if look.kinds]
    n, k = len(cuts), sum(look.in_flight for look in cuts)
    kinds = sum((Counter(look.kinds) for look in cuts), Counter[str]())
    low, high = proportion_bounds(len(bad), n) if bad else (0.0, proportion_upper_bound(0, n))
    findings = {
        "cuts": _finding(n, "", "cuts with proof that power was lost"),
        "bad_cuts": _finding(len(bad), "", "of these, cuts after which something was missing"),
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
            "why": f"as if the {k} requests in flight were independent: an optimist's bound",
        },
        "in_flight_mean": _finding(k / n if n else None, "requests", "issued, not acknowledged"),
        "near_misses": _finding(
            sum(look.near_misses for look in cuts), "requests", "in the buffer when power went"
        ),
        "kinds": _finding(dict(kinds), "requests", "what was missing, by kind"),
    }
    warnings = _warnings(looks, cuts)
    is_bad = bool(bad) or any(look.kinds for look in looks if look.control == "negative")
    return {
        "findings": findings,
        "warnings": warnings,
        "verdict": _verdict(cuts, bad, high, looks),
        "bad": is_bad,
    }


def _verdict(cuts: list[Look], bad: list[Look], high: float, looks: list[Look]) -> str:
    if any(look.kinds for look in looks if look.control == "negative"):
        return "Data was lost without a power cut: the software loses it; no drive can be judged."
    if not cuts:
        return _without_proof(looks)
    if bad and any(look.software for look in bad):
        return f"{len(bad)} of {len(cuts)} cuts lost data, but flushes were not sent: software."
    if bad:
        return (
            f"It does not keep what it acknowledged: {len(bad)} of {len(cuts)} cuts lost data that "
            "a flush had covered."
        )
    if not any(look.near_misses for look in cuts):
        return (
            f"No loss in {len(cuts)} cuts, and no near miss: either power-loss protection or cuts "
            f"at idle; at most {high:.2g} of cuts lose data (95 %)."
        )
    more = ""
    if high > ENOUGH:
        more = f"; {trials_needed(ENOUGH)} clean cuts would say {ENOUGH:.0%}"
    return f"No loss in {len(cuts)} cuts: at most {high:.2g} of cuts lose data (95 %){more}."


def _without_proof(looks: list[Look]) -> str:
    """What is said where no cut counts: that nothing is missing shows nothing then."""
    unproven = [look for look in looks if look.control == "none"]
    missing = sum(bool(look.kinds) for look in unproven)
    if missing:
        return (
            f"No verdict on the drive: data that a flush had covered is missing in {missing} of "
            f"{len(unproven)} looks, but nothing shows that power was lost (--power-was-cut does)."
        )
    if unproven:
        return (
            "No verdict: nothing is missing, which shows nothing without a cut, and nothing shows "
            "that power was lost (a drive's own count would, or --power-was-cut)."
        )
    return "No verdict: there was no cut with proof that power was lost."


def _warnings(looks: list[Look], cuts: list[Look]) -> list[str]:
    found = []
    unproven = [each for each in looks if each.control == "none" and not each.counts]
    if unproven:
        found.append(f"{len(unproven)} looks had no proof that power was lost: they do not count.")
    idle = [look for look in cuts if not look.in_flight]
    if idle:
        found.append(f"{len(idle)} cuts had nothing in flight: they say little.")
    found += sorted({sentence for look in looks for sentence in look.software})
    controls = {look.control: look for look in looks}
    if cuts and "negative" not in controls:
        found.append("No negative control: look once without a cut (--control negative).")
    if cuts and "positive" not in controls:
        found.append("No positive control: write once without flushes (--sync none), and cut.")
    elif cuts and not controls["positive"].kinds:
        found.append(
            "The positive control lost nothing: the drive is protected, or the cuts come too late."
        )
    return found


def _finding(value: Any, unit: str, why: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "low": None, "high": None, "why": why}

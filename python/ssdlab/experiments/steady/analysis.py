"""Whether a write load reached steady state, its rate, and estimates of hidden spare and WAF.

Findings are from the first part (nothing left unused); the other parts are compared with it.
Hidden spare is estimated from the last fall of the rate: after a sequential fill the hidden flash
is empty, and absorbs its size at the fresh rate before garbage collection begins. Blocks that
collection keeps in reserve never hold data, so the estimate is slightly below the true value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.write_amplification import (
    BY_POLICY,
    Bracket,
    alpha_from_waf,
    spare_from_alpha,
    waf_from_alpha,
    waf_from_costs,
)
from ssdlab.analysis.write_rounds import (
    Columns,
    counter_source,
    intervals,
    joined,
    progress,
    rows,
    waf_between,
)
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop, last_drop
from ssdlab.stats.steady import WINDOW, Progress, Rule, Verdict, evaluate
from ssdlab.units import format_size

MIB: Final = 1 << 20
_FALL_WITHIN: Final = 2.0  # regions: no drive hides more than twice its visible flash
_GAUGE_WINDOW: Final = (0.4, 0.9)  # share of the gauge's writes: after caches fill, before its end
_SLC: Final = (
    "the SLC cache takes writes first, so the rate shows neither where the hidden flash is used up "
    "nor what a write without relocation costs"
)
_BUFFER_MAX: Final = 64 * MIB  # write buffers are rarely larger
_SAME_COST: Final = 1.15  # the cost of writes at random / in order, for drives that map each block
_AS_FAST: Final = 0.97  # of the fresh rate: such a gauge may have been limited by link or host


@dataclass(frozen=True)
class Part:
    """The rounds of one unused share of the region: their steps, curve and verdict.

    `steady_from` is the first round of the first window from which all windows were steady.
    """

    share: float
    steps: Sequence[dict[str, Any]]
    curve: Progress
    rule: Rule
    verdict: Verdict
    steady_from: int | None

    @property
    def block(self) -> float:
        """Bytes of a request."""
        return float(self.steps[0]["block_bytes"])

    @property
    def iops(self) -> float | None:
        """Requests/s in the last window."""
        return None if self.verdict.mean is None else self.verdict.mean / self.block


def conclude(evidence: Evidence) -> Conclusion:
    """Rows of all parts, findings of the first part, and the gain of the other parts."""
    measures, parts = rows(evidence), parts_of(evidence)
    if not parts or parts[0].verdict.mean is None:
        ended = ENDINGS[evidence.outcome]
        sentence = f"{ended} before {WINDOW} rounds were written: too little to tell."
        return Conclusion(measures, {}, sentence)
    first, caveat = parts[0], slc_caveat(evidence, parts[0])
    findings = {**_rates(first, caveat), **_estimates(evidence, first), **_gain(parts)}
    sentence = _sentence(first, findings, caveat)
    return Conclusion(measures, findings, qualified(sentence, evidence.warnings))


def parts_of(evidence: Evidence) -> list[Part]:
    """The parts of a run that have rounds, in order."""
    stages: dict[int, list[dict[str, Any]]] = {}
    for step in evidence.steps("round"):
        if step["bytes"]:
            stages.setdefault(step["stage"], []).append(step)
    return [_part(evidence, stage, steps) for stage, steps in sorted(stages.items())]


def _part(evidence: Evidence, stage: int, steps: list[dict[str, Any]]) -> Part:
    sizes = [evidence.parameters[name][stage] * MIB for name in ("rounds_mib", "floors_mib")]
    rule = Rule(max(1, round(sizes[0])), round(sizes[1]))
    columns = [intervals(evidence, step) for step in steps]
    curve = joined(columns)
    return Part(
        share=steps[0]["value"] or 0.0,
        steps=steps,
        curve=curve,
        rule=rule,
        verdict=evaluate(curve, rule),
        steady_from=_steady_from(columns, rule),
    )


def _steady_from(columns: Sequence[Columns], rule: Rule) -> int | None:
    """The first round of the first window from which all windows are steady; else None."""
    first = None
    for count in range(len(columns), 0, -1):
        verdict = evaluate(joined(columns[:count]), rule)
        if not verdict.steady:
            break
        first = verdict.from_round
    return first


def slc_caveat(evidence: Evidence, part: Part) -> str:
    """Why a constant rate may be that of an SLC cache; "" if the cache was full, or is known.

    A known size is part of the rule's floor. Otherwise more than the largest cache that the drive
    may have must be written before the last window.
    """
    if evidence.parameters.get("slc_cache_mib") is not None or not part.verdict.steady:
        return ""
    limits = evidence.observed("slc_limit_mib")
    limit, source = (limits[-1]["value"], limits[-1]["detail"]) if limits else (None, "")
    before = (part.verdict.rounds - WINDOW) * part.rule.round_bytes
    if limit is not None and before >= limit * MIB:
        return ""
    largest = "of unknown size" if limit is None else f"of up to {format_size(limit * MIB)}"
    why = f" ({source})" if source else ""
    return (
        f"only {format_size(before)} were written before the last {WINDOW} rounds, and an SLC "
        f"cache {largest}{why} may have taken them: give --slc-cache (its size by the data sheet "
        "or by `ssdlab run cache`; 0B if the drive has none)"
    )


def _rates(part: Part, caveat: str) -> dict[str, Finding]:
    verdict = part.verdict
    assert verdict.mean is not None
    low, high = (None if x is None else x / part.block for x in (verdict.low, verdict.high))
    window = f"the last {WINDOW} of {verdict.rounds} rounds, each {_mib(part.rule.round_bytes)}"
    return {
        "steady": Finding(
            None if caveat else verdict.steady,
            "",
            None,
            None,
            f"the rate was constant, but {caveat}" if caveat else str(verdict),
        ),
        "steady_from_round": _steady_from_round(part, caveat),
        "iops": Finding(part.iops, "requests/s", low, high, f"the mean of {window}"),
        "iops_cv": Finding(
            verdict.cv, "", None, None, f"standard deviation / mean of the rates of {window}"
        ),
    }


def _steady_from_round(part: Part, caveat: str) -> Finding:
    if caveat or part.steady_from is None:
        return Finding(None, "", None, None, "undetermined" if caveat else "not attained")
    return Finding(float(part.steady_from), "", None, None, "rounds are counted from 0")


def _estimates(evidence: Evidence, part: Part) -> dict[str, Finding]:
    """Hidden spare and WAF, from the curve and from the drive's counters."""
    fall, reason = spare_fall(evidence, part)
    hidden = None if fall is None else _hidden(fall, part)
    curve = _waf_of_curve(evidence, part, fall)
    findings = {"waf": _counted_waf(evidence, part) or curve, "waf_curve": curve}
    if fall is None or hidden is None:
        unknown = Finding(None, "%", None, None, reason)
        return {**findings, "hidden_spare": unknown, "overprovisioning": unknown}
    scope = _scope(part)
    percent = [100 * spare_from_alpha(1 + size / scope) for size in hidden]
    second = "" if curve.value is None else _second_estimate(evidence, part)
    why = (
        f"after the fill, {format_size(max(0.0, hidden.value))} were written at "
        f"{fall.before / MIB:.4g} MiB/s before the rate fell to {fall.after / MIB:.4g}: hidden / "
        f"all flash, without the blocks that garbage collection keeps in reserve{second}"
    )
    over = [100 * size / scope for size in hidden]
    visible = "the same, hidden / visible"
    return {
        **findings,
        "hidden_spare": Finding(percent[0], "%", percent[1], percent[2], why),
        "overprovisioning": Finding(over[0], "%", over[1], over[2], visible),
        "fresh_iops": Finding(
            fall.before / part.block, "requests/s", None, None, "the rate before that fall"
        ),
    }


def spare_fall(evidence: Evidence, part: Part) -> tuple[RateDrop | None, str]:
    """The fall of the rate at which garbage collection begins; or None and the reason."""
    parameters = evidence.parameters
    drive_mib = parameters.get("drive_mib")
    if drive_mib is None or parameters["region_mib"] < 0.99 * drive_mib:
        return None, "the region is not the whole drive, so the free space outside it is unknown"
    reason = _unclear_cost(evidence)
    if reason:
        return None, reason
    if parameters["pattern"] != "random":
        return None, "only uniform random writes show where garbage collection begins"
    last = last_drop(part.curve, _FALL_WITHIN * _scope(part))
    if last is None:
        return None, f"the rate did not fall within {_FALL_WITHIN:g} times the region"
    if part.curve.written < last.at + _scope(part):
        return None, "too little was written after the last fall to be sure that it is the last"
    return last, ""


def _scope(part: Part) -> float:
    """Bytes in use: `WINDOW` rounds, up to rounding to whole requests."""
    return float(part.rule.round_bytes * WINDOW)


def _hidden(fall: RateDrop, part: Part) -> Bracket:
    """Bytes programmed before collection began: bytes written minus those still in the buffer."""
    least = 1e-4 * _scope(part)
    values = (max(least, at - fall.ahead) for at in (fall.at, fall.low, fall.high))
    return Bracket(*values)


def _counted_waf(evidence: Evidence, part: Part) -> Finding | None:
    """The WAF of the last window, by the drive's counters."""
    window = part.steps[-WINDOW:]
    waf = waf_between(evidence, window[0]["step"], window[-1]["step"] + 1)
    if waf is None:
        return None
    why = f"{counter_source(evidence)}, over the last {len(window)} rounds"
    return Finding(waf, "", None, None, why)


def _waf_of_curve(evidence: Evidence, part: Part, fall: RateDrop | None) -> Finding:
    """WAF without counters: from the cost of a steady write, or from the spare by a formula.

    The cost gives the WAF for any victim policy, but only if flash limits the writes: if the gauge
    was as fast as the fresh drive and gives a lower WAF, the formula is used.
    """
    reason = _unclear_cost(evidence)
    if reason:
        return Finding(None, "", None, None, reason)
    costs, form = _waf_by_costs(evidence, part), None if fall is None else _waf_by_spare(fall, part)
    limited = fall is not None and _gauge_rate(evidence) >= _AS_FAST * fall.before
    if costs is not None and not (limited and form is not None and form.value > costs.high):
        why = (
            f"from the curve: a steady write costs {costs.high:.3g} times a write without "
            "relocation; the bounds assume that reads for relocation take no time, or all of it"
        )
        return Finding(costs.value, "", costs.low, costs.high, why)
    if form is not None:
        why = (
            "from the curve: the closed form for the estimated spare; the bounds hold for most "
            "victim policies"
        )
        if limited and costs is not None:
            why += "; the cost of writes was not used, as link or host may have limited the gauge"
        return Finding(form.value, "", form.low, form.high, why)
    why = "the drive does not count flash writes, and no gauge was measured to estimate them"
    return Finding(None, "", None, None, why)


def _waf_by_spare(fall: RateDrop, part: Part) -> Bracket:
    hidden, scope = _hidden(fall, part), _scope(part)
    waf, high, low = (waf_from_alpha(1 + size / scope) for size in hidden)
    return Bracket(waf, low * BY_POLICY[0], high * BY_POLICY[1])


def _waf_by_costs(evidence: Evidence, part: Part) -> Bracket | None:
    reads = [step for step in evidence.steps("gauge") if step["case"] == "read"]
    rate = _gauge_rate(evidence)
    if not reads or not rate or part.verdict.mean is None:
        return None
    read = seconds_of(reads[0]) / max(1, reads[0]["bytes"])
    return waf_from_costs(1 / part.verdict.mean, 1 / rate, read)


def _unclear_cost(evidence: Evidence) -> str:
    """Why neither the curve nor the rate shows how many bytes are programmed; "" if they do."""
    slc = evidence.parameters.get("slc_cache_mib")
    if slc:
        return _SLC
    curves = [
        progress(evidence, [step for step in evidence.steps("fill") if step["stage"] == 0]),
        _gauge(evidence, "write"),
        _gauge(evidence, "write in order"),
    ]
    drops = [] if slc == 0 or not curves[1].written else [last_drop(curve) for curve in curves]
    largest = max((drop.buffered for drop in drops if drop is not None), default=0.0)
    if largest > _BUFFER_MAX:
        return f"on trimmed flash the rate fell after {format_size(largest)}: {_SLC}"
    random, ordered = (_gauge_rate(evidence, case) for case in ("write", "write in order"))
    if random and ordered > _SAME_COST * random:
        return (
            f"on trimmed flash a write at random takes {ordered / random:.3g} times as long as one "
            "in order: the mapping unit is larger, or the map does not fit into the drive's memory"
        )
    return ""


def _gauge(evidence: Evidence, case: str) -> Progress:
    return progress(evidence, [s for s in evidence.steps("gauge") if s["case"] == case])


def _gauge_rate(evidence: Evidence, case: str = "write") -> float:
    """Bytes/s of the writes without relocation; 0 if they were not measured."""
    curve = _gauge(evidence, case)
    if not curve.written:
        return 0.0
    start, stop = (share * curve.written for share in _GAUGE_WINDOW)
    return (stop - start) / float(curve.between(start, stop, 1)[0])


def _second_estimate(evidence: Evidence, part: Part) -> str:
    """The spare derived from the cost of steady writes, as a check of that from the fall."""
    costs = _waf_by_costs(evidence, part)
    if costs is None or costs.low <= 1:
        return ""
    low, high = (100 * spare_from_alpha(alpha_from_waf(waf)) for waf in (costs.high, costs.low))
    return f"; with greedy collection the steady rate fits {low:.3g} to {high:.3g} %"


def _gain(parts: Sequence[Part]) -> dict[str, Finding]:
    """Steady rates with a part of the region unused, relative to the rate with all of it in use."""
    base = parts[0]
    others = [part for part in parts[1:] if part.iops is not None]
    if not others or base.iops is None:
        return {}
    ratios = [
        f"{100 * part.share:.3g} % of the region unused: {part.iops / base.iops:.3g} times"
        + ("" if part.verdict.steady else " (not steady)")
        for part in others
        if part.iops is not None
    ]
    last = others[-1]
    assert last.iops is not None
    low, high = _ratio_bounds(last.verdict, base.verdict, last.block / base.block)
    why = "steady rate / the rate with all of the region in use: " + "; ".join(ratios)
    return {"spare_gain": Finding(last.iops / base.iops, "x", low, high, why)}


def _ratio_bounds(
    over: Verdict, under: Verdict, blocks: float
) -> tuple[float | None, float | None]:
    """The interval of a ratio of two means; their relative half-widths add in quadrature."""
    if not (over.mean and over.low and over.high and under.mean and under.low and under.high):
        return None, None
    ratio = over.mean / under.mean / blocks
    down = ((1 - over.low / over.mean) ** 2 + (under.high / under.mean - 1) ** 2) ** 0.5
    up = ((over.high / over.mean - 1) ** 2 + (1 - under.low / under.mean) ** 2) ** 0.5
    return ratio * (1 - down), ratio * (1 + up)


def _sentence(part: Part, findings: dict[str, Finding], caveat: str) -> str:
    assert part.iops is not None
    rate = f"{_count(part.iops)} requests/s"
    fresh = findings.get("fresh_iops")
    versus_fresh = ""
    if fresh is not None and isinstance(fresh.value, float):
        versus_fresh = f" (the fresh drive: {fresh.value / part.iops:.3g} times as many)"
    if caveat:
        start = (
            f"The last {WINDOW} rounds had a constant rate of {rate}{versus_fresh}, but it may not "
            f"last: {caveat}"
        )
    elif part.verdict.steady:
        start = f"Steady from round {part.steady_from} at {rate}{versus_fresh}"
    else:
        start = (
            f"A steady state was not attained; the last {WINDOW} rounds had {rate}{versus_fresh}"
        )
    waf, spare, gain = (findings.get(name) for name in ("waf", "hidden_spare", "spare_gain"))
    more = []
    if waf is not None and isinstance(waf.value, float):
        more.append(f"write amplification {waf.value:.3g}")
    if spare is not None and isinstance(spare.value, float):
        more.append(f"{spare.value:.3g} % of the flash is hidden spare")
    if gain is not None and isinstance(gain.value, float):
        more.append(f"{gain.value:.3g} times that rate with the most spare")
    return "; ".join((start, *more)) + "."


def _count(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _mib(size: float) -> str:
    return f"{size / MIB:.4g} MiB"

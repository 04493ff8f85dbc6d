"""Whether a write load came to its lasting rate, what that is, and what the curve tells inside.

The first part (no share of spare) is judged; the others are held against it. Hidden spare is read
off the place of the last fall: a drive that was filled in order has its hidden flash empty, and
takes so much at its fresh rate until collection must begin. What collection keeps in reserve is
never seen by that, so the spare is what the drive has of use, a little less than what it has.
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
_LOOKED_AT: Final = 2.0  # of the region: what is hidden is less than twice what is visible
_GAUGED: Final = (0.4, 0.9)  # of the gauge's writes: caches fill before, its last wait behind
_ALIKE: Final = 0.97  # of the fresh rate: a gauge this fast may have been limited by what fresh is


@dataclass(frozen=True)
class Part:
    """The rounds with one share of spare: their steps, their curve, and the verdict on them.

    `steady_from` is the first round of the first window from which on all were steady.
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
        """Requests a second in the last window."""
        return None if self.verdict.mean is None else self.verdict.mean / self.block


def conclude(evidence: Evidence) -> Conclusion:
    """Rows of all parts, the findings of the first one and what the others gain."""
    measures, parts = rows(evidence), parts_of(evidence)
    if not parts or parts[0].verdict.mean is None:
        ended = ENDINGS[evidence.outcome]
        sentence = f"{ended} before {WINDOW} rounds were written: too little to tell."
        return Conclusion(measures, {}, sentence)
    first = parts[0]
    found = {**_rates(first), **_inside(evidence, first), **_gain(parts)}
    return Conclusion(measures, found, qualified(_sentence(first, found), evidence.warnings))


def parts_of(evidence: Evidence) -> list[Part]:
    """The parts of a run in order, as far as they have rounds."""
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
        steady_from=_from_round(columns, rule),
    )


def _from_round(columns: Sequence[Columns], rule: Rule) -> int | None:
    """Back from the end, as long as the state was steady after each round."""
    found = None
    for count in range(len(columns), 0, -1):
        verdict = evaluate(joined(columns[:count]), rule)
        if not verdict.steady:
            break
        found = verdict.from_round
    return found


def _rates(part: Part) -> dict[str, Finding]:
    verdict = part.verdict
    assert verdict.mean is not None
    low, high = (None if x is None else x / part.block for x in (verdict.low, verdict.high))
    window = f"the last {WINDOW} of {verdict.rounds} rounds, each {_mib(part.rule.round_bytes)}"
    return {
        "steady": Finding(verdict.steady, "", None, None, str(verdict)),
        "steady_from_round": Finding(
            None if part.steady_from is None else float(part.steady_from),
            "",
            None,
            None,
            "not attained" if part.steady_from is None else "rounds are counted from 0",
        ),
        "iops": Finding(part.iops, "requests/s", low, high, f"the mean of {window}"),
        "iops_cv": Finding(
            verdict.cv, "", None, None, f"deviation of the rates of {window}, over their mean"
        ),
    }


def _inside(evidence: Evidence, part: Part) -> dict[str, Finding]:
    """What the curve and the drive's counts tell of its inside."""
    fall, why_not = spare_fall(evidence, part)
    hidden = None if fall is None else _hidden(fall, part)
    curve = _waf_of_curve(evidence, part, fall)
    found = {"waf": _counted_waf(evidence, part) or curve, "waf_curve": curve}
    if fall is None or hidden is None:
        nothing = Finding(None, "%", None, None, why_not)
        return {**found, "hidden_spare": nothing, "overprovisioning": nothing}
    scope = _scope(part)
    percent = [100 * spare_from_alpha(1 + each / scope) for each in hidden]
    low, high = percent[1], percent[2]
    second = "" if curve.value is None else _second(evidence, part)
    why = (
        f"after the fill {format_size(max(0.0, hidden.value))} went at {fall.before / MIB:.4g} "
        f"MiB/s before the rate fell to {fall.after / MIB:.4g}: hidden / all flash, without what "
        f"collection keeps in reserve{second}"
    )
    over = [100 * each / scope for each in hidden]
    visible = "the same, hidden / visible"
    return {
        **found,
        "hidden_spare": Finding(percent[0], "%", low, high, why),
        "overprovisioning": Finding(over[0], "%", over[1], over[2], visible),
        "fresh_iops": Finding(
            fall.before / part.block, "requests/s", None, None, "the level before that fall"
        ),
    }


def spare_fall(evidence: Evidence, part: Part) -> tuple[RateDrop | None, str]:
    """The fall at which collection begins; or None, and why."""
    asked = evidence.parameters
    if asked.get("drive_mib") is None or asked["region_mib"] < 0.99 * asked["drive_mib"]:
        return None, "the region is not the whole drive: how much else is free is not known"
    if asked["pattern"] != "random":
        return None, "only uniform writes at random tell where collection begins"
    last = last_drop(part.curve, _LOOKED_AT * _scope(part))
    if last is None:
        return None, f"the rate did not fall within {_LOOKED_AT:g} times the region"
    if part.curve.written < last.at + _scope(part):
        return None, "too little was written behind the last fall to call it the last"
    return last, ""


def _scope(part: Part) -> float:
    """Bytes in use: five rounds, but for what is no whole request."""
    return float(part.rule.round_bytes * WINDOW)


def _hidden(fall: RateDrop, part: Part) -> Bracket:
    """Bytes programmed before collection began: those written less those in the buffer."""
    least = 1e-4 * _scope(part)
    values = (max(least, each - fall.ahead) for each in (fall.at, fall.low, fall.high))
    return Bracket(*values)


def _counted_waf(evidence: Evidence, part: Part) -> Finding | None:
    """Of the last window, by the drive's own counts."""
    window = part.steps[-WINDOW:]
    waf = waf_between(evidence, window[0]["step"], window[-1]["step"] + 1)
    if waf is None:
        return None
    why = f"{counter_source(evidence)}, over the last {len(window)} rounds"
    return Finding(waf, "", None, None, why)


def _waf_of_curve(evidence: Evidence, part: Part, fall: RateDrop | None) -> Finding:
    """Without any count: from what writes cost, or from the spare by the closed form.

    Costs know nothing of how victims are chosen, but need writes that the flash limits: where
    the gauge was as fast as the fresh drive, and says less than the form, the form is taken.
    """
    costs, form = _by_costs(evidence, part), None if fall is None else _by_form(fall, part)
    limited = fall is not None and _gauged_rate(evidence) >= _ALIKE * fall.before
    if costs is not None and not (limited and form is not None and form.value > costs.high):
        why = (
            f"from the curve: a steady write costs {costs.high:.3g} times one that moves nothing; "
            "the bounds are whether senses for what is moved cost nothing, or all their time"
        )
        return Finding(costs.value, "", costs.low, costs.high, why)
    if form is not None:
        why = (
            "from the curve: the closed form for the spare that it shows; the bounds hold for "
            "most ways to choose victims"
        )
        if limited and costs is not None:
            why += "; link or host, not the flash, may have limited what else it is told from"
        return Finding(form.value, "", form.low, form.high, why)
    why = "the drive counts no flash writes, and nothing was gauged that they could be told from"
    return Finding(None, "", None, None, why)


def _by_form(fall: RateDrop, part: Part) -> Bracket:
    hidden, scope = _hidden(fall, part), _scope(part)
    waf, high, low = (waf_from_alpha(1 + each / scope) for each in hidden)
    return Bracket(waf, low * BY_POLICY[0], high * BY_POLICY[1])


def _by_costs(evidence: Evidence, part: Part) -> Bracket | None:
    reads = [step for step in evidence.steps("gauge") if step["case"] == "read"]
    rate = _gauged_rate(evidence)
    if not reads or not rate or part.verdict.mean is None:
        return None
    read = seconds_of(reads[0]) / max(1, reads[0]["bytes"])
    return waf_from_costs(1 / part.verdict.mean, 1 / rate, read)


def _gauged_rate(evidence: Evidence) -> float:
    """Bytes a second of the writes that moved nothing; 0 where there were none."""
    steps = [step for step in evidence.steps("gauge") if step["case"] == "write"]
    curve = progress(evidence, steps)
    if not curve.written:
        return 0.0
    start, stop = (share * curve.written for share in _GAUGED)
    return (stop - start) / float(curve.between(start, stop, 1)[0])


def _second(evidence: Evidence, part: Part) -> str:
    """The spare that the costs imply: a second opinion, that knows nothing of the fall."""
    costs = _by_costs(evidence, part)
    if costs is None or costs.low <= 1:
        return ""
    low, high = (100 * spare_from_alpha(alpha_from_waf(waf)) for waf in (costs.high, costs.low))
    return f"; the steady rate fits {low:.3g} to {high:.3g} % if the emptiest is collected"


def _gain(parts: Sequence[Part]) -> dict[str, Finding]:
    """Lasting rates with a share of spare over that without; nothing where none was asked for."""
    base = parts[0]
    others = [part for part in parts[1:] if part.iops is not None]
    if not others or base.iops is None:
        return {}
    told = [
        f"{100 * part.share:.3g} % of the region unused: {part.iops / base.iops:.3g} times"
        + ("" if part.verdict.steady else " (not steady)")
        for part in others
        if part.iops is not None
    ]
    last = others[-1]
    assert last.iops is not None
    low, high = _ratio_bounds(last.verdict, base.verdict, last.block / base.block)
    why = "lasting rate over that without: " + "; ".join(told)
    return {"spare_gain": Finding(last.iops / base.iops, "x", low, high, why)}


def _ratio_bounds(
    over: Verdict, under: Verdict, blocks: float
) -> tuple[float | None, float | None]:
    """Of two means with intervals of their own: the square root of the sum of their squares."""
    if not (over.mean and over.low and over.high and under.mean and under.low and under.high):
        return None, None
    ratio = over.mean / under.mean / blocks
    down = ((1 - over.low / over.mean) ** 2 + (under.high / under.mean - 1) ** 2) ** 0.5
    up = ((over.high / over.mean - 1) ** 2 + (1 - under.low / under.mean) ** 2) ** 0.5
    return ratio * (1 - down), ratio * (1 + up)


def _sentence(part: Part, found: dict[str, Finding]) -> str:
    assert part.iops is not None
    rate = f"{_count(part.iops)} requests/s"
    fresh = found.get("fresh_iops")
    less = ""
    if fresh is not None and isinstance(fresh.value, float):
        less = f", {fresh.value / part.iops:.3g} times fewer than fresh"
    if part.verdict.steady:
        start = f"Steady from round {part.steady_from} at {rate}{less}"
    else:
        start = f"A steady state was not attained; the last {WINDOW} rounds had {rate}{less}"
    waf, spare, gain = (found.get(name) for name in ("waf", "hidden_spare", "spare_gain"))
    more = []
    if waf is not None and isinstance(waf.value, float):
        more.append(f"each byte costs {waf.value:.3g} of flash writes")
    if spare is not None and isinstance(spare.value, float):
        more.append(f"{spare.value:.3g} % of the flash is hidden spare")
    if gain is not None and isinstance(gain.value, float):
        more.append(f"with the most spare {gain.value:.3g} times that rate")
    return "; ".join((start, *more)) + "."


def _count(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _mib(size: float) -> str:
    return f"{size / MIB:.4g} MiB"

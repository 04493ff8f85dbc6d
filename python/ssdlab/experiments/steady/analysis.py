"""Whether a write load reached steady state, its rate, and estimates of hidden spare and WAF.

Findings are from the first part (nothing left unused); the other parts are compared with it.
Hidden spare is estimated from the last fall of the rate: after a sequential fill the hidden flash
is empty, and absorbs its size at the fresh rate before garbage collection begins. Blocks that
collection keeps in reserve never hold data, so the estimate is slightly below the true value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified
from ssdlab.analysis.write_amplification import spare_from_alpha
from ssdlab.analysis.write_rounds import (
    Columns,
    counter_source,
    intervals,
    joined,
    rows,
    waf_between,
)
from ssdlab.experiments.steady.closed_form import hidden_by_waf, reconcile
from ssdlab.experiments.steady.estimate import Estimate
from ssdlab.experiments.steady.garbage import Garbage
from ssdlab.experiments.steady.gauged import Gauged
from ssdlab.experiments.steady.hidden_flash import hidden_flash, reportable
from ssdlab.experiments.steady.map_pages import map_page_span
from ssdlab.experiments.steady.mapping_unit import UNIT
from ssdlab.experiments.steady.rates import SAME
from ssdlab.experiments.steady.waf import GAUGES, waf_without_map, with_map
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop, last_drop
from ssdlab.stats.steady import FLASH_ROUNDS, WINDOW, Progress, Rule, Verdict, evaluate
from ssdlab.units import format_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
_FALL_WITHIN: Final = 2.0  # regions: no drive hides more than twice its visible flash
_COVERS: Final = 1.02
"""Factor of the reported bounds of WAF: they then cover 95 % of the values on random drives."""
_RESERVE: Final = "; the upper bound adds the blocks that garbage collection keeps in reserve"


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
    first, caveat = parts[0], caveat_of(evidence, parts[0])
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


def caveat_of(evidence: Evidence, part: Part) -> str:
    """Why a constant rate may not last; "" if nothing is known that could change it."""
    if not part.verdict.steady:
        return ""
    before = (part.verdict.rounds - WINDOW) * part.rule.round_bytes
    written = f"only {format_size(before)} were written before the last {WINDOW} rounds, and "
    flash = (evidence.parameters.get("flash_mib") or 0.0) * MIB
    if before < flash:
        # The rule of a longer run has rounds of this size.
        passes = (1 + WINDOW / FLASH_ROUNDS) * flash / _scope(evidence, part)
        return (
            f"{written}the drive may have up to {format_size(flash)} of flash, some of which was "
            f"still erased: give --drive-writes {math.ceil(passes)}, or a larger --size"
        )
    return "" if flash else _slc_caveat(evidence, before, written)


def _slc_caveat(evidence: Evidence, before: float, written: str) -> str:
    """In a directory: whether an SLC cache may have taken the writes.

    A known size is part of the rule's floor. Otherwise more than the largest cache that the drive
    may have must be written before the last window.
    """
    if evidence.parameters.get("slc_cache_mib") is not None:
        return ""
    limits = evidence.observed("slc_limit_mib")
    limit, source = (limits[-1]["value"], limits[-1]["detail"]) if limits else (None, "")
    if limit is not None and before >= limit * MIB:
        return ""
    largest = "of unknown size" if limit is None else f"of up to {format_size(limit * MIB)}"
    why = f" ({source})" if source else ""
    return (
        f"{written}an SLC cache {largest}{why} may have taken them: give --slc-cache (its size by "
        "the data sheet or by `ssdlab run cache`; 0B if the drive has none)"
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
    assert part.verdict.mean is not None
    scope = _scope(evidence, part)
    gauged = Gauged(evidence, scope, part.curve, part.verdict.mean)
    fall, reason = spare_fall(evidence, part)
    if fall is not None and not gauged.is_complete:
        reason = "the gauges need trim"
    is_shown = gauged.is_complete and isinstance(gauged.garbage, Garbage)
    hidden = Estimate(None, reason) if reason and not is_shown else hidden_flash(gauged)
    without_map = waf_without_map(gauged, hidden)
    reserve = _RESERVE
    if hidden.bracket is None and (by_waf := hidden_by_waf(gauged, without_map)):
        hidden, reserve = by_waf, ""
    else:
        hidden, without_map = reconcile(gauged, hidden, without_map)
    note = "" if part.verdict.steady else "; the rate is not steady: this is WAF in the last window"
    curve = _waf_finding(with_map(gauged, without_map), note)
    findings = {
        "waf": _counted_waf(evidence, part) or curve,
        "waf_curve": curve,
        "waf_without_map": _waf_finding(without_map, note),
        "mapping_unit_kib": _mapping_unit(gauged, part.block),
        "map_misses": _map_misses(gauged),
        "map_page_span_mib": _map_page_span(gauged),
    }
    hidden = reportable(hidden, scope)
    if hidden.bracket is None:
        unknown = Finding(None, "%", None, None, hidden.why)
        return {**findings, "hidden_spare": unknown, "overprovisioning": unknown}
    percent = [100 * spare_from_alpha(1 + size / scope) for size in hidden.bracket]
    why = (
        f"{hidden.why} {format_size(hidden.bracket.value)} of hidden flash had taken data: hidden "
        f"/ all flash{reserve}"
    )
    over = [100 * size / scope for size in hidden.bracket]
    visible = "the same, hidden / visible"
    return {
        **findings,
        "hidden_spare": Finding(percent[0], "%", percent[1], percent[2], why),
        "overprovisioning": Finding(over[0], "%", over[1], over[2], visible),
        **({} if fall is None or fall.at < SAME * gauged.buffer else _fresh(fall, part)),
    }


def _mapping_unit(gauged: Gauged, block: float) -> Finding:
    """The mapping unit, if it is not smaller than a block of `block` bytes."""
    if not gauged.is_complete:
        return Finding(None, "KiB", None, None, GAUGES)
    if gauged.unit is None:
        return Finding(None, "KiB", None, None, UNIT)
    size = gauged.unit * block / KIB
    why = "a smaller write at random takes up a whole one"
    if gauged.unit == 1:
        return Finding(size, "KiB", None, size, "or less: it is not larger than the writes")
    return Finding(size, "KiB", size, size, why)


def _map_misses(gauged: Gauged) -> Finding:
    """The share of reads all over the region that first load a part of the map."""
    if not (gauged.is_complete and gauged.has_single_reads):
        return Finding(None, "%", None, None, GAUGES)
    found = gauged.map_misses
    if found is None:
        why = "slow and fast reads do not agree on how many load a part of the map"
        return Finding(None, "%", None, None, why)
    why = "of reads all over the region were slower than those within 4 MiB, whose map fits"
    value, low, high = (100 * share for share in found)
    return Finding(value, "%", max(0.0, low), high, why)


def _map_page_span(gauged: Gauged) -> Finding:
    """How much of the region a map page covers, if the map does not fit into memory."""
    if not (gauged.is_complete and gauged.has_single_reads):
        return Finding(None, "MiB", None, None, GAUGES)
    if not gauged.misses_map:
        return Finding(None, "MiB", None, None, "no reads load a part of the map")
    found = map_page_span(gauged)
    if found is None:
        why = "reads of a block in each MiB do not show how many of them load a part of the map"
        return Finding(None, "MiB", None, None, why)
    why = "each part of the map that is loaded covers that much of the region"
    value, low, high = (size / MIB for size in found)
    return Finding(value, "MiB", low, high, why)


def _fresh(fall: RateDrop, part: Part) -> dict[str, Finding]:
    why = f"the rate before it fell to {fall.after / MIB:.4g} MiB/s"
    return {"fresh_iops": Finding(fall.before / part.block, "requests/s", None, None, why)}


def _waf_finding(estimate: Estimate, note: str) -> Finding:
    if estimate.bracket is None:
        return Finding(None, "", None, None, estimate.why)
    value, low, high = estimate.bracket
    return Finding(value, "", max(1.0, low / _COVERS), _COVERS * high, estimate.why + note)


def spare_fall(evidence: Evidence, part: Part) -> tuple[RateDrop | None, str]:
    """The last fall of the rate; or None and the reason why it would show no hidden flash."""
    parameters = evidence.parameters
    drive_mib = parameters.get("drive_mib")
    if drive_mib is None or parameters["region_mib"] < 0.99 * drive_mib:
        return None, "the region is not the whole drive, so the free space outside it is unknown"
    if parameters["pattern"] != "random":
        return None, "only uniform random writes show where garbage collection begins"
    scope = _scope(evidence, part)
    last = last_drop(part.curve, _FALL_WITHIN * scope, in_bursts=True)
    if last is None:
        return None, f"the rate did not fall within {_FALL_WITHIN:g} times the region"
    if part.curve.written < last.at + scope:
        return None, "too little was written after the last fall to be sure that it is the last"
    return last, ""


def _scope(evidence: Evidence, part: Part) -> float:
    """Bytes in use."""
    return float(evidence.parameters["region_mib"] * MIB * (1 - part.share))


def _counted_waf(evidence: Evidence, part: Part) -> Finding | None:
    """The WAF of the last window, by the drive's counters."""
    window = part.steps[-WINDOW:]
    counted = waf_between(evidence, window[0]["step"], window[-1]["step"] + 1)
    if counted is None:
        return None
    why = f"{counter_source(evidence)}, over the last {len(window)} rounds"
    return Finding(counted, "", None, None, why)


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
    counted, spare, gain = (findings.get(name) for name in ("waf", "hidden_spare", "spare_gain"))
    misses = findings.get("map_misses")
    more = []
    if counted is not None and isinstance(counted.value, float):
        more.append(f"write amplification {counted.value:.3g}")
    if spare is not None and isinstance(spare.value, float):
        more.append(f"{spare.value:.3g} % of the flash is effective spare")
    if gain is not None and isinstance(gain.value, float):
        more.append(f"{gain.value:.3g} times that rate with the most spare")
    if misses is not None and isinstance(misses.value, float) and misses.value > 0:
        more.append(
            f"{misses.value:.0f} % of reads all over the region first load a part of the map"
        )
    return "; ".join((start, *more)) + "."


def _count(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _mib(size: float) -> str:
    return f"{size / MIB:.4g} MiB"

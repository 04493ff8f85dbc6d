"""Victims, kind and folding of an SLC cache, and spare, from the rates of the rounds of `steady`.

They depend on these, as everything else is fitted by now. The spare is a finding of `steady` where
the curve shows when the hidden flash is used up. It does not behind some SLC caches, for example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ssdlab.device import describe_twin
from ssdlab.errors import TargetError
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.steady.plan import QUICK_SETTLE_S
from ssdlab.fit.direct_estimates import RESERVE
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY, Objective, candidate_session, evidence_of
from ssdlab.fit.parameters import Estimate
from ssdlab.fit.results import FitInput
from ssdlab.fit.solving import cost_on
from ssdlab.profiles.toml_edit import get_value, set_values, values_only

Floats = npt.NDArray[np.float64]
MODES: Final = ("static", "dynamic")
MODE: Final = "slc.mode"
VICTIM: Final = "ftl.victim"
VICTIMS: Final = ("greedy", "fifo", "random")
"""The rules that are tried: with uniform writes the others collect as greedy does."""
FOLDING: Final = "slc.folding"
DRIVE_WRITES: Final = 2.0
SPARES: Final = (0.03, 0.06, 0.09, 0.14, 0.21, 0.3, 0.42)
"""The spares that are tried; the best is refined between its neighbours."""
RANDOM_LEAST: Final = 0.05
"""With less spare, victims chosen at random are not tried: WAF is 1 / spare, and a twin is slow."""
REFINEMENTS: Final = 2
SIGMA: Final = 0.05
"""Standard deviation of the logarithm of a rate, most of it from the other numbers."""
CHI2_95: Final = 3.84
DETERMINED_RATIO: Final = 1.25


@dataclass(frozen=True)
class _Tried:
    rules: Mapping[str, str | None]
    spare: float
    cost: float


def lasting_estimates(
    profile: str,
    fit_input: FitInput,
    excess: float = 1.0,
    *,
    objectives: Sequence[Objective] = (),
    is_known: bool = True,
) -> Iterator[Estimate]:
    """`ftl.spare`, `ftl.victim`, `slc.mode` and `slc.folding`; nothing if `steady` has no rates.

    If `steady` shows the spare, only the others. What they change of the other results
    (`objectives`) counts, too; `excess` is how badly those are explained: chi squared per degree of
    freedom. `is_known`: the time of a program is. Otherwise the spare may be any.
    """
    for results in fit_input.others:
        rates = _rates(results)
        if results.experiment == "steady" and len(rates):
            if not any(fit_input.is_held_out("steady", cell) for cell in results.cells):
                for one in _estimates(profile, results, rates, excess, objectives):
                    is_any = one.key == "ftl.spare" and not is_known
                    low, high = SPARES[0], SPARES[-1]
                    yield replace(one, low=low, high=high, determined=False) if is_any else one
            return


def _rates(results: Measurement) -> Floats:
    """Requests/s of the first rounds of writes to the whole drive."""
    drive, region = (results.parameters.get(f"{name}_mib") for name in ("drive", "region"))
    if not drive or not region or region < 0.99 * drive:
        return np.empty(0)
    rates = [cell.value for cell in results.cells if cell.name == "iops"]
    return np.array(rates[: round(5 * DRIVE_WRITES)])


def _estimates(
    profile: str,
    results: Measurement,
    rates: Floats,
    excess: float,
    objectives: Sequence[Objective],
) -> Iterator[Estimate]:
    is_known = results.number("hidden_spare") is not None
    spares = (_spare(profile),) if is_known else SPARES
    tried = list[_Tried]()
    for rules in _rules(profile):
        other = cost_on(objectives, values_only(profile, rules))
        by_rates = _try_spares(profile, results, rates, rules, spares)
        tried += [replace(one, cost=one.cost + other) for one in by_rates]
    if not tried:
        return
    best = min(tried, key=lambda one: one.cost)
    of_rates = best.cost - cost_on(objectives, values_only(profile, best.rules))
    excess = max(excess, of_rates / max(1, len(rates) - 2))
    near = [one for one in tried if one.cost <= best.cost + CHI2_95 * excess]
    if not is_known:
        yield _spare_estimate(profile, best, near, tried)
    for key in best.rules:
        fits = {one.rules[key] for one in near}
        found = [rule for rule in dict.fromkeys(one.rules[key] for one in tried) if rule in fits]
        is_sure = len(found) == 1 and key == MODE
        yield Estimate(key, best.rules[key], found[0], found[-1], is_sure)


def _rules(profile: str) -> Iterator[dict[str, str | None]]:
    """The victims that are tried, with each kind of cache, and each way to fold it."""
    start = get_value(profile, VICTIM) or VICTIMS[0]
    has_cache = get_value(profile, "slc.size") is not None
    for victim in dict.fromkeys((start, *VICTIMS)):
        if not has_cache:
            yield {VICTIM: victim}
            continue
        for mode in MODES:
            yield {VICTIM: victim, MODE: mode, FOLDING: None}
    if has_cache:
        yield {VICTIM: start, MODE: "dynamic", FOLDING: "while writing"}


def _spare(profile: str) -> float:
    return float(describe_twin("the candidate", profile, CAPACITY)["spare"])


def _spare_estimate(
    profile: str, best: _Tried, near: Sequence[_Tried], tried: Sequence[_Tried]
) -> Estimate:
    bounds = []
    for rules in {tuple(one.rules.items()): one.rules for one in near}.values():
        same = [one for one in tried if one.rules == rules]
        bounds.append(_bounds([one for one in near if one.rules == rules], same))
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    # The drive's superblocks may be half or twice as large: that shifts what collection holds.
    share = _superblock_share(profile)
    low, high = max(low / 2, low - RESERVE / 2 * share), high + RESERVE * share
    return Estimate(
        "ftl.spare",
        round(best.spare, 4),
        round(low, 4),
        round(high, 4),
        high <= DETERMINED_RATIO * low,
    )


def _bounds(near: Sequence[_Tried], tried: Sequence[_Tried]) -> tuple[float, float]:
    """Half way from the outermost spares that fit to the next ones that do not."""
    low, high = (end(one.spare for one in near) for end in (min, max))
    below = max((one.spare for one in tried if one.spare < low), default=low / 2)
    above = min((one.spare for one in tried if one.spare > high), default=0.5)
    return (low * below) ** 0.5, (high * above) ** 0.5


def _superblock_share(profile: str) -> float:
    """A superblock's share of the candidate's flash."""
    twin = describe_twin("the candidate", profile, CAPACITY)
    return float(twin["superblock_bytes"] / twin["flash_bytes"])


def _try_spares(
    profile: str,
    results: Measurement,
    rates: Floats,
    rules: Mapping[str, str | None],
    spares: Sequence[float],
) -> list[_Tried]:
    tried = list[_Tried]()
    least = RANDOM_LEAST if rules[VICTIM] == "random" else 0.0
    for _ in range(REFINEMENTS + 1):
        tried += [
            _Tried(rules, spare, cost)
            for spare in spares
            if spare >= least and (cost := _cost(profile, results, rates, rules, spare)) is not None
        ]
        if len(tried) < 2:
            return tried
        tried.sort(key=lambda one: one.spare)
        at = min(range(len(tried)), key=lambda n: tried[n].cost)
        around = tried[max(0, at - 1) : at + 2]
        spares = [(a.spare * b.spare) ** 0.5 for a, b in pairwise(around)]
    return tried


def _cost(
    profile: str, results: Measurement, rates: Floats, rules: Mapping[str, str | None], spare: float
) -> float | None:
    """The squared errors of the candidate's rates; None if there is no such twin."""
    changes: dict[str, Any] = {"ftl.spare": round(spare, 5), **rules}
    text = set_values(profile, changes)
    try:
        describe_twin("the candidate", text, CAPACITY)
    except TargetError:
        return None
    session = candidate_session(text)
    settle_s = float(results.parameters.get("settle_s") or QUICK_SETTLE_S)
    plan = steady.Plan(CAPACITY, drive_writes=DRIVE_WRITES, settle_s=settle_s)
    steady.measure(session, plan)
    rows = steady_analysis.conclude(evidence_of(session, plan)).measures
    twin = np.array([row["iops"] for row in rows[: len(rates)]])
    errors = np.log(twin / rates[: len(twin)]) / SIGMA
    return float(errors @ errors)

"""Victims, kind and folding of an SLC cache, and spare, from the rates of the rounds of `steady`.

They depend on these, as everything else is fitted by now. The spare is a finding of `steady` where
the curve shows when the hidden flash is used up. It does not behind some SLC caches, for example.
Where the spare is known, the rates show how long programs take, also behind a link that hides it
from all other experiments; or, if that is known, how much a die programs at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
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
from ssdlab.fit.solving import cost_on, robust
from ssdlab.fit.variables import FOLDING, MODE, SLC_MODES, WHILE_WRITING, Choice, Scale
from ssdlab.profiles.toml_edit import get_value, set_values, values_only

Floats = npt.NDArray[np.float64]
VICTIM: Final = "ftl.victim"
VICTIMS: Final = ("greedy", "fifo", "random")
"""The rules that are tried: with uniform writes the others collect as greedy does."""
DRIVE_WRITES: Final = 2.0
SPARES: Final = (0.03, 0.06, 0.09, 0.14, 0.21, 0.3, 0.42)
"""The spares that are tried; the best is refined between its neighbours."""
RANDOM_LEAST: Final = 0.05
"""With less spare, victims chosen at random are not tried: WAF is 1 / spare, and a twin is slow."""
RANDOM_LEAST_KNOWN: Final = 0.03
"""The same if the spare is known, so that only one is tried."""
REFINEMENTS: Final = 2
SIGMA: Final = 0.05
"""Standard deviation of the logarithm of a rate, most of it from the other numbers."""
CHI2_95: Final = 3.84
DETERMINED_RATIO: Final = 1.25
PROGRAM: Final = "flash.program"
PROGRAM_STEPS: Final = 3
"""How often the time of a program is moved by the ratio of the rates, at most."""
AGREE: Final = 0.02
"""Rates that differ by less agree."""
PROGRAM_ENDS: Final = (0.8, 1.25)
"""Factors that must fit worse: otherwise the link limits these rates, too."""


CONTRADICT: Final = 1.3
"""If the rates differ by a larger factor, the time of a program is not known."""
UNKNOWN_RULES: Final = 1.2
"""WAF may differ by this factor at the same spare: no result shows the pacing of collection, nor
whether it mixes old and new data."""

Rules = Mapping[str, str | None]


@dataclass(frozen=True)
class _Tried:
    rules: Rules
    spare: float
    program: float
    """Factor on the time of a program."""
    cost: float
    faster: float
    """Rate of the candidate / that of the drive, median of the rounds."""


def lasting_estimates(
    profile: str,
    fit_input: FitInput,
    excess: float = 1.0,
    *,
    objectives: Sequence[Objective] = (),
    spare: Estimate | None = None,
    is_known: bool = True,
) -> Iterator[Estimate]:
    """`ftl.spare`, `ftl.victim`, `slc.mode`, `slc.folding` and `flash.program`.

    Nothing if `steady` has no rates. The spare only if `steady` does not show it, and the time of a
    program only if it does (`spare`). What they change of the other results (`objectives`) counts,
    too; `excess` is how badly those are explained: chi squared per degree of freedom.
    `is_known`: the time of a program is, unless the rates contradict it. If neither is known, the
    spare may be any.
    """
    results = _with_rates(fit_input)
    if results is not None:
        has_spare = results.number("hidden_spare") is not None
        skipped = int(has_spare and not is_known)
        candidates = _Candidates(profile, results, objectives, skipped)
        yield from _estimates(candidates, excess, spare, is_known=is_known)


def page_by_rates(
    profile: str,
    fit_input: FitInput,
    choice: Choice,
    page: Estimate,
    excess: float = 1.0,
    *,
    objectives: Sequence[Objective] = (),
) -> Estimate:
    """The multi-plane page, if the spare and the time of a program are known, but `page` is not.

    The rates show how many bytes a die programs at a time. Of those in `choice`, larger and smaller
    pages than `page` are tried, for as long as they explain all results better. `excess` and
    `objectives` are those of `lasting_estimates`.
    """
    results = _with_rates(fit_input)
    if results is None or results.number("hidden_spare") is None:
        return page

    def cost(at: int) -> float:
        text = choice.apply(profile, choice.values[at])
        candidates = _Candidates(text, results, objectives, skipped=1)
        try:
            spares = [candidates.spare]
        except TargetError:  # a page that is not a multiple of the mapping unit, for example
            return inf
        each = (candidates.try_each(rules, spares) for rules in candidates.rules())
        return min((one.cost for tried in each for one in tried), default=inf)

    own = choice.values.index(page.value)
    costs = {own: cost(own)}
    for step in (1, -1):
        at = own + step
        while 0 <= at < len(choice.values):
            costs[at] = cost(at)
            if costs[at] > costs[at - step]:
                break
            at += step
    best = min(costs, key=lambda at: costs[at])
    near = [at for at, each in costs.items() if each <= costs[best] + CHI2_95 * excess]
    ends = [choice.values.index(end) for end in (page.low, page.high)] if best == own else near
    low, high = (choice.values[end((*near, *ends))] for end in (min, max))
    return replace(page, value=choice.values[best], low=low, high=high)


def _with_rates(fit_input: FitInput) -> Measurement | None:
    """The results of `steady` on the whole drive, unless some of them are held out."""
    for results in fit_input.others:
        if results.experiment == "steady" and len(_rates(results)):
            held = any(fit_input.is_held_out("steady", cell) for cell in results.cells)
            return None if held else results
    return None


def _rates(results: Measurement) -> Floats:
    """Requests/s of the first rounds of writes to the whole drive."""
    drive, region = (results.parameters.get(f"{name}_mib") for name in ("drive", "region"))
    if not drive or not region or region < 0.99 * drive:
        return np.empty(0)
    rates = [cell.value for cell in results.cells if cell.name == "iops"]
    return np.array(rates[: round(5 * DRIVE_WRITES)])


def _estimates(
    candidates: _Candidates, excess: float, spare: Estimate | None, *, is_known: bool
) -> Iterator[Estimate]:
    has_spare = candidates.results.number("hidden_spare") is not None
    own = candidates.spare
    tried = list[_Tried]()
    for rules in candidates.rules():
        if has_spare and is_known:
            tried += candidates.try_each(rules, [own])
        elif has_spare:
            first = min(tried, key=lambda one: one.cost, default=None)
            program = 1.0 if first is None else first.program
            tried += candidates.try_programs(rules, own, program)
        else:
            tried += candidates.try_spares(rules)
    if not tried:
        return
    best = min(tried, key=lambda one: one.cost)
    of_rates = best.cost - candidates.other_cost(best.rules, best.program)
    excess = max(excess, of_rates / max(1, len(candidates.rates) - 2))
    near = [one for one in tried if one.cost <= best.cost + CHI2_95 * excess]
    if not has_spare:
        one = _spare_estimate(candidates.profile, best, near, tried)
        any_spare = replace(one, low=SPARES[0], high=SPARES[-1], determined=False)
        yield one if is_known else any_spare
    elif not is_known:
        yield from _program_estimate(candidates, best, near, excess, spare)
    elif own >= RANDOM_LEAST_KNOWN and not 1 / CONTRADICT < best.faster < CONTRADICT:
        ends = best.faster / UNKNOWN_RULES, best.faster * UNKNOWN_RULES
        factors = (1.0, min(1.0, ends[0]), max(1.0, ends[1]))
        value, low, high = (candidates.program_time(factor) for factor in factors)
        yield Estimate(PROGRAM, value, low, high, determined=False)
    for key in best.rules:
        fits = {one.rules[key] for one in near}
        found = [rule for rule in dict.fromkeys(one.rules[key] for one in tried) if rule in fits]
        is_sure = len(found) == 1 and key == MODE
        yield Estimate(key, best.rules[key], found[0], found[-1], is_sure)


def _spare_estimate(
    profile: str, best: _Tried, near: Sequence[_Tried], tried: Sequence[_Tried]
) -> Estimate:
    bounds = []
    for rules in _distinct(near):
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


def _distinct(tried: Iterable[_Tried]) -> list[Rules]:
    return list({tuple(one.rules.items()): one.rules for one in tried}.values())


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


def _program_estimate(
    candidates: _Candidates,
    best: _Tried,
    near: Sequence[_Tried],
    excess: float,
    spare: Estimate | None,
) -> Iterator[Estimate]:
    """The time of a program, with bounds for each spare and victim that the drive may have.

    Nothing if a longer or a shorter one explains the rates as well.
    """
    for factor in PROGRAM_ENDS:
        end = candidates.tried(best.rules, best.spare, factor * best.program)
        if end is not None and end.cost <= best.cost + CHI2_95 * excess:
            return
    programs = [one.program for one in near]
    for rules in _distinct(near):
        for end in () if spare is None else (spare.low, spare.high):
            one = candidates.tried(rules, float(end), best.program)
            programs += [] if one is None else [one.program * one.faster]
    factors = (best.program, min(programs) / UNKNOWN_RULES, max(programs) * UNKNOWN_RULES)
    value, low, high = (candidates.program_time(factor) for factor in factors)
    yield Estimate(PROGRAM, value, low, high, determined=False)


@dataclass(frozen=True)
class _Candidates:
    """Candidates with the numbers of a profile except these, and the results of `steady`."""

    profile: str
    results: Measurement
    objectives: Sequence[Objective]
    skipped: int
    """Rounds that do not count: the first, unless it must show the spare, because what it writes
    before collection begins depends on the buffer and the link."""
    _other_costs: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def rates(self) -> Floats:
        """Those of the drive."""
        return _rates(self.results)

    @property
    def spare(self) -> float:
        """The profile's spare, which a twin rounds up to whole superblocks."""
        spare = get_value(self.profile, "ftl.spare")
        twin = describe_twin("the candidate", self.profile, CAPACITY)
        return float(twin["spare"] if spare is None else spare)

    def program_time(self, factor: float) -> Any:
        """The profile's time of a program, multiplied by a factor."""
        return Scale(PROGRAM, 0.0, np.inf, 1.0).changes(self.profile, factor)[PROGRAM]

    def rules(self) -> Iterator[Rules]:
        """The victims that are tried, with each kind of cache, and each way to fold it."""
        start = get_value(self.profile, VICTIM) or VICTIMS[0]
        has_cache = get_value(self.profile, "slc.size") is not None
        for victim in dict.fromkeys((start, *VICTIMS)):
            if not has_cache:
                yield {VICTIM: victim}
                continue
            for mode in SLC_MODES:
                yield {VICTIM: victim, MODE: mode, FOLDING: None}
        if has_cache:
            yield {VICTIM: start, MODE: "dynamic", FOLDING: WHILE_WRITING}

    def try_spares(self, rules: Rules) -> list[_Tried]:
        """All spares, and more between the best and its neighbours."""
        least = RANDOM_LEAST if rules[VICTIM] == "random" else 0.0
        spares = [spare for spare in SPARES if spare >= least]
        tried = list[_Tried]()
        for _ in range(REFINEMENTS + 1):
            tried += self.try_each(rules, spares)
            if len(tried) < 2:
                return tried
            tried.sort(key=lambda one: one.spare)
            at = min(range(len(tried)), key=lambda n: tried[n].cost)
            around = tried[max(0, at - 1) : at + 2]
            spares = [(a.spare * b.spare) ** 0.5 for a, b in pairwise(around)]
        return tried

    def try_programs(self, rules: Rules, spare: float, program: float) -> list[_Tried]:
        """The time of a program moved until the rates agree."""
        tried = list[_Tried]()
        for _ in range(PROGRAM_STEPS + 1):
            one = self.tried(rules, spare, program)
            if one is None:
                break
            tried.append(one)
            if abs(one.faster - 1) < AGREE:
                break
            program *= one.faster
        return tried

    def try_each(self, rules: Rules, spares: Sequence[float]) -> list[_Tried]:
        """Each of these spares that makes a twin."""
        return [one for spare in spares if (one := self.tried(rules, spare)) is not None]

    def tried(self, rules: Rules, spare: float, program: float = 1.0) -> _Tried | None:
        """The errors of a candidate; None if there is no such twin, or it would be slow."""
        if rules[VICTIM] == "random" and spare < RANDOM_LEAST_KNOWN:
            return None
        text = self._text(rules, program, {"ftl.spare": round(spare, 5)})
        try:
            describe_twin("the candidate", text, CAPACITY)
        except TargetError:
            return None
        errors = self._errors(text)
        residuals = robust(errors / SIGMA)
        cost = float(residuals @ residuals) + self.other_cost(rules, program)
        return _Tried(rules, spare, program, cost, float(np.exp(np.median(errors))))

    def other_cost(self, rules: Rules, program: float) -> float:
        """How badly the candidate explains the other results."""
        text = values_only(self._text(rules, program, {}))
        if text not in self._other_costs:
            self._other_costs[text] = cost_on(self.objectives, text)
        return self._other_costs[text]

    def _text(self, rules: Rules, program: float, changes: Mapping[str, Any]) -> str:
        programs = {} if program == 1.0 else {PROGRAM: self.program_time(program)}
        return set_values(self.profile, {**rules, **programs, **changes})

    def _errors(self, text: str) -> Floats:
        """log(twin / drive) of the rates."""
        session = candidate_session(text)
        settle_s = float(self.results.parameters.get("settle_s") or QUICK_SETTLE_S)
        plan = steady.Plan(CAPACITY, drive_writes=DRIVE_WRITES, settle_s=settle_s)
        steady.measure(session, plan)
        rows = steady_analysis.conclude(evidence_of(session, plan)).measures
        twin = np.array([row["iops"] for row in rows[: len(self.rates)]])
        errors: Floats = np.log(twin / self.rates[: len(twin)])
        return errors[self.skipped :]

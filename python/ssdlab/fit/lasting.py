"""Spare and the kind of SLC cache, from the rates of `steady`, if it does not show the spare.

Behind an SLC cache the rate does not show where the hidden flash is used up. But the rates of the
rounds depend on the spare, as everything else is fitted by now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ssdlab.device import describe_twin
from ssdlab.errors import TargetError
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.steady.plan import QUICK_SETTLE_S
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import CAPACITY, candidate_session, evidence_of
from ssdlab.fit.parameters import Estimate
from ssdlab.fit.results import FitInput
from ssdlab.profiles.toml_edit import get_value, set_values

Floats = npt.NDArray[np.float64]
MODES: Final = ("static", "dynamic")
DRIVE_WRITES: Final = 2.0
SPARES: Final = (0.03, 0.06, 0.09, 0.14, 0.21, 0.3, 0.42)
"""The spares that are tried; the best is refined between its neighbours."""
REFINEMENTS: Final = 2
SIGMA: Final = 0.05
"""Standard deviation of the logarithm of a rate, most of it from the other numbers."""
RESERVE: Final = 3
"""Superblocks that collection and frontiers hold."""
CHI2_95: Final = 3.84
DETERMINED_RATIO: Final = 1.25


@dataclass(frozen=True)
class _Tried:
    mode: str
    spare: float
    cost: float


def lasting_estimates(
    profile: str, fit_input: FitInput, modes: Sequence[str] = MODES, excess: float = 1.0
) -> Iterator[Estimate]:
    """`ftl.spare` and `slc.mode`; nothing if `steady` shows the spare, or has no rates.

    `modes` are the kinds of cache that agree with the other results, `excess` is how badly those
    are explained: chi squared per degree of freedom.
    """
    for results in fit_input.others:
        rates = _rates(results)
        has_cache = get_value(profile, "slc.size") is not None
        if (
            results.experiment == "steady"
            and len(rates)
            and (has_cache or not _shows_spare(results))
        ):
            if not any(fit_input.is_held_out("steady", cell) for cell in results.cells):
                kinds = modes if has_cache else ("",)
                yield from _estimates(profile, results, rates, kinds, excess)
            return


def _shows_spare(results: Measurement) -> bool:
    return results.number("hidden_spare") is not None


def _rates(results: Measurement) -> Floats:
    """Requests/s of the first rounds of writes to the whole drive."""
    drive, region = (results.parameters.get(f"{name}_mib") for name in ("drive", "region"))
    if not drive or not region or region < 0.99 * drive:
        return np.empty(0)
    rates = [cell.value for cell in results.cells if cell.name == "iops"]
    return np.array(rates[: round(5 * DRIVE_WRITES)])


def _estimates(
    profile: str, results: Measurement, rates: Floats, modes: Sequence[str], excess: float
) -> Iterator[Estimate]:
    tried = [one for mode in modes for one in _try_spares(profile, results, rates, mode)]
    if not tried:
        return
    best = min(tried, key=lambda one: one.cost)
    excess = max(excess, best.cost / max(1, len(rates) - 2))
    near = [one for one in tried if one.cost <= best.cost + CHI2_95 * excess]
    low, high = _bounds(near, tried)
    # The drive's superblocks may be half or twice as large: that shifts what collection holds.
    share = _superblock_share(profile)
    low, high = max(low / 2, low - RESERVE / 2 * share), high + RESERVE * share
    yield Estimate(
        "ftl.spare",
        round(best.spare, 4),
        round(low, 4),
        round(high, 4),
        high <= DETERMINED_RATIO * low,
    )
    if best.mode:
        found = [mode for mode in MODES if mode in {one.mode for one in near}]
        yield Estimate("slc.mode", best.mode, found[0], found[-1], len(found) == 1)


def _bounds(near: list[_Tried], tried: list[_Tried]) -> tuple[float, float]:
    """Half way from the outermost spares that fit to the next ones that do not."""
    low, high = (end(one.spare for one in near) for end in (min, max))
    below = max((one.spare for one in tried if one.spare < low), default=low / 2)
    above = min((one.spare for one in tried if one.spare > high), default=0.5)
    return (low * below) ** 0.5, (high * above) ** 0.5


def _superblock_share(profile: str) -> float:
    """A superblock's share of the candidate's flash."""
    twin = describe_twin("the candidate", profile, CAPACITY)
    return float(twin["superblock_bytes"] / twin["flash_bytes"])


def _try_spares(profile: str, results: Measurement, rates: Floats, mode: str) -> list[_Tried]:
    spares, tried = list(SPARES), list[_Tried]()
    for _ in range(REFINEMENTS + 1):
        tried += [
            _Tried(mode, spare, cost)
            for spare in spares
            if (cost := _cost(profile, results, rates, mode, spare)) is not None
        ]
        if not tried:
            return []
        tried.sort(key=lambda one: one.spare)
        at = min(range(len(tried)), key=lambda n: tried[n].cost)
        around = tried[max(0, at - 1) : at + 2]
        spares = [(a.spare * b.spare) ** 0.5 for a, b in pairwise(around)]
    return tried


def _cost(
    profile: str, results: Measurement, rates: Floats, mode: str, spare: float
) -> float | None:
    """The squared errors of the candidate's rates; None if there is no such twin."""
    changes: dict[str, Any] = {"ftl.spare": round(spare, 5)}
    if mode:
        changes["slc.mode"] = mode
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

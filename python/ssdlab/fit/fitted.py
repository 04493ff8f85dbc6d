"""`fit`: fits a profile to a drive's results; gives intervals of its numbers, and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ssdlab.analysis.cells import Cell
from ssdlab.analysis.evidence import Conclusion
from ssdlab.errors import UsageError
from ssdlab.fit.direct_estimates import apply_estimates, corrected_estimates, initial_estimates
from ssdlab.fit.measurement import Measurement
from ssdlab.fit.objective import (
    CAPACITY,
    Effort,
    Floats,
    Objective,
    ageing_objective,
    experiment_objective,
    measure_cache,
    measure_spare,
)
from ssdlab.fit.parameters import Estimate, SearchSpace, search_space
from ssdlab.fit.results import FitInput
from ssdlab.fit.search import Progress, Solution, candidate_profile, estimates, search
from ssdlab.profiles.toml_edit import get_value, restore_value

UNCHANGED: Final = 0.01
"""If the logarithm of a factor is smaller, the profile's number and source stay unchanged."""
SPARE_CHECK_MAX: Final = 4 * CAPACITY
"""Largest drive (in bytes) whose spare is checked: `steady` finds less spare on a small twin."""
ASSUMED: Final = (
    "flash.channels",
    "flash.planes",
    "flash.page",
    "flash.pages_per_block",
    "ftl.mapping_unit",
)
"""Numbers that no experiment determines; times of the flash are right only if these are."""
FITTED, HELD_OUT, NOT_FITTED = "", "held out", "not fitted"


@dataclass(frozen=True)
class Check:
    """A value measured on the drive and on the twin; `note` says whether the fit used it."""

    experiment: str
    cell: Cell
    twin: float
    note: str

    @property
    def error(self) -> float:
        """Relative error: positive where the twin's value is larger."""
        return self.twin / self.cell.value - 1.0


@dataclass(frozen=True)
class Fitted:
    """The result of a fit: the profile's text, its fitted numbers, and checks of its accuracy."""

    profile: str
    parameters: tuple[Estimate, ...]
    checks: tuple[Check, ...]

    @property
    def assumed(self) -> dict[str, Any]:
        """Numbers of the start profile that the fit takes as known, and their values."""
        fitted = {parameter.key for parameter in self.parameters}
        return {key: get_value(self.profile, key) for key in ASSUMED if key not in fitted}

    @property
    def twin_values(self) -> Floats:
        """The twin's value of each check."""
        return np.array([check.twin for check in self.checks])

    @property
    def errors(self) -> Floats:
        """The relative error of each check."""
        return np.array([check.error for check in self.checks])


def fit(
    profile: str, fit_input: FitInput, source: str, progress: Progress = lambda _done, _total: None
) -> Fitted:
    """Fits a profile to the results that are not held out, and checks it on all results.

    Direct estimates come first, then the search; then buffer and spare are corrected with the
    fitted twin. `source` names the fit and its date, and is written to each changed number.

    Raises:
        UsageError: the start profile is unusable, or a twin can produce none of the results.
    """
    direct = {estimate.key: estimate for estimate in initial_estimates(profile, fit_input.others)}
    start = apply_estimates(profile, list(direct.values()), source)
    objectives = list(_objectives(start, fit_input))
    if not direct and not any(whole.cells for whole, _ in objectives):
        raise UsageError(
            f"a twin has none of these results ({', '.join(fit_input.experiments)}); give rows or "
            "findings under the names that `ssdlab run --json` prints"
        )
    space = search_space(start, fit_input.experiments, direct)
    solutions = search(start, [kept for _, kept in objectives if kept.cells], space, progress)
    text = _apply_solution(start, space, solutions[0], source)
    direct |= {estimate.key: estimate for estimate in corrected_estimates(text, fit_input.others)}
    text = apply_estimates(text, list(direct.values()), source)
    parameters = [replace(one, start=get_value(profile, one.key)) for one in direct.values()]
    parameters += [_with_units(start, text, space, one) for one in estimates(space, solutions)]
    checks = [*_check_cells(text, objectives), *_check_findings(text, fit_input.others)]
    return Fitted(text, tuple(parameters), tuple(checks))


def _objectives(profile: str, fit_input: FitInput) -> Iterator[tuple[Objective, Objective]]:
    """Each objective twice: with all values that a twin can produce, and with the fitted ones."""
    if fit_input.row is not None and fit_input.kept_row is not None:
        yield ageing_objective(fit_input.row), ageing_objective(fit_input.kept_row)
    for results in fit_input.others:
        objective = experiment_objective(results)
        if objective is not None:
            whole = objective.select(np.isfinite(objective.simulate(profile)))
            held = [fit_input.is_held_out(results.experiment, cell) for cell in whole.cells]
            yield whole, whole.select(~np.array(held, dtype=np.bool_))


def _check_cells(text: str, objectives: Sequence[tuple[Objective, Objective]]) -> Iterator[Check]:
    for whole, kept in objectives:
        effort = Effort.FINAL if whole.experiment == "aging" else Effort.FINE
        fitted = {cell.key for cell in kept.cells}
        for cell, twin in zip(whole.cells, whole.simulate(text, effort), strict=True):
            note = FITTED if cell.key in fitted else HELD_OUT
            yield Check(whole.experiment, cell, float(twin), note)


def _check_findings(text: str, others: Sequence[Measurement]) -> Iterator[Check]:
    """Compares buffer, spare and steady-state rate of the fitted twin with the drive's."""
    for results in others:
        if results.experiment == "cache":
            yield from _compare(results, measure_cache(text), {"buffer_mib": FITTED})
        elif results.experiment == "steady" and _is_small(results):
            notes = {"hidden_spare": FITTED, "iops": NOT_FITTED}
            yield from _compare(results, measure_spare(text), notes)


def _compare(
    results: Measurement, conclusion: Conclusion, notes: Mapping[str, str]
) -> Iterator[Check]:
    """A check for each finding in `notes` that both the drive and the twin have."""
    for name, note in notes.items():
        measured, twin = results.number(name), conclusion.findings.get(name)
        if measured and twin is not None and isinstance(twin.value, float):
            cell = Cell((), name, measured, unit=results.findings[name].unit)
            yield Check(results.experiment, cell, twin.value, note)


def _is_small(results: Measurement) -> bool:
    drive_mib = results.parameters.get("drive_mib")
    return drive_mib is not None and drive_mib * 2**20 <= SPARE_CHECK_MAX


def _apply_solution(profile: str, space: SearchSpace, solution: Solution, source: str) -> str:
    """The profile with the numbers that the fit changed; all others keep their source."""
    text = candidate_profile(profile, space, solution, source)
    for choice, value in zip(space.choices, solution.choices, strict=True):
        if value == get_value(profile, choice.key):
            text = restore_value(text, profile, choice.key)
    for scale, log_factor in zip(space.scales, solution.log_factors, strict=True):
        if abs(log_factor) < UNCHANGED:
            text = restore_value(text, profile, scale.key)
    return text


def _with_units(start: str, text: str, space: SearchSpace, estimate: Estimate) -> Estimate:
    key, low, high = estimate.key, estimate.low, estimate.high
    scale = next((scale for scale in space.scales if scale.key == key), None)
    if scale is not None:
        low, high = (get_value(scale.apply(start, factor), key) for factor in (low, high))
    return Estimate(
        key, get_value(text, key), low, high, estimate.determined, get_value(start, key)
    )

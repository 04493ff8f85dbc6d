"""Least squares: the best factors for one combination of choices.

The cost of a candidate is the sum of squares of log(twin / drive), in standard deviations, plus the
prior's penalty (`parameters`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ssdlab.errors import TargetError
from ssdlab.fit.direct_estimates import enlarge_buffer
from ssdlab.fit.objective import Effort, Objective
from ssdlab.fit.parameters import SearchSpace, scales_of, within_overheads
from ssdlab.fit.variables import mean_of
from ssdlab.profiles.toml_edit import get_value, set_values, values_only

Floats = npt.NDArray[np.float64]
Start = tuple[tuple[Any, ...], Floats]
"""Choices, and the logarithms of the factors to start with."""
Progress = Callable[[int, int], None]
"""Called with the number of finished combinations, and the total number."""
STEP: Final = 0.05
"""Step in log(factor) for derivatives; large, because a twin transfers whole pages."""
FTOL: Final = 1e-3
"""With several objectives, the search stops when the relative change of the cost is smaller."""
TRIALS: Final = 4
"""Points that are tried for each of the derivatives, which cost a twin for each factor."""
OUTLIER: Final = 3.0
"""Standard deviations from where on an error counts less."""
MISSING_RESIDUAL: Final = 3.0
"""Error of log(twin / drive) assumed for a value that the candidate twin does not have."""

FASTER: Final = (("slc.read", "flash.read"), ("slc.program", "flash.program"))
"""The first time is hardly longer than the second: otherwise a search may exchange the two."""
FASTER_SIGMA: Final = 0.1
"""Standard deviation of the logarithm of a ratio above 1."""


class _EnoughError(Exception):
    """As many derivatives as a search may take have been computed; it has come to `moved`."""

    def __init__(self, moved: Floats) -> None:
        super().__init__("enough derivatives")
        self.moved = moved


@dataclass(frozen=True, eq=False)
class Solution:
    """The logarithms of the best factors for one combination of choices, with errors.

    Equal only to itself: arrays do not compare as a whole.

    `sigma` has their standard deviations. `excess` is chi squared per degree of freedom, but
    at least 1.
    """

    choices: tuple[Any, ...]
    log_factors: Floats
    sigma: Floats
    cost: float
    excess: float = 1.0
    jacobian: Floats | None = None
    reach: Floats | None = None
    """How far each logarithm may be lower and higher (2 rows), where that was measured."""


@dataclass(frozen=True)
class _Point:
    """A point of a search, with the derivatives there."""

    moved: Floats
    residuals: Floats
    derivatives: Floats
    is_measured: bool = True

    def updated(self, moved: Floats, residuals: Floats) -> _Point:
        """The next point; its derivatives explain the step to it (Broyden's update).

        Measured ones would cost a twin for each factor, and are needed at every second point only.
        """
        step = moved - self.moved
        error = residuals - self.residuals - self.derivatives @ step
        derivatives = self.derivatives + np.outer(error, step) / (step @ step)
        return _Point(moved.copy(), residuals, derivatives, is_measured=False)


def candidate_profile(profile: str, space: SearchSpace, solution: Solution, source: str) -> str:
    """The profile's text with a solution applied, whose numbers become `fitted`."""
    return set_values(profile, _changes(profile, space, solution), source)


def _changes(profile: str, space: SearchSpace, solution: Solution) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for choice, value in zip(space.choices, solution.choices, strict=True):
        changes |= choice.changes(profile, value)
    for scale, log_factor in zip(space.scales, solution.log_factors, strict=True):
        shape = changes.get(scale.base)
        changes |= scale.changes(profile, float(np.exp(log_factor)), shape)
    return within_overheads(profile, changes)


@dataclass(frozen=True)
class Task:
    """A combination of choices whose factors are to be fitted, with their start values."""

    profile: str
    objectives: Sequence[Objective]
    space: SearchSpace
    start: Solution
    penalty: float
    rounds: int
    effort: Effort
    jacobian: Floats | None = None
    """If given, only rough steps with these derivatives are made."""


class Solver:
    """Solves combinations of choices, and reports how many."""

    def __init__(self, task: Task, progress: Progress) -> None:
        """With the profile and the space of a task."""
        self.task, self.progress, self.done = task, progress, 0

    def solve(
        self,
        starts: Sequence[Start],
        objectives: Sequence[Objective],
        rounds: int,
        effort: Effort = Effort.FINE,
        jacobian: Floats | None = None,
    ) -> list[Solution]:
        """Solves each combination from its start values; those that give no twin are left out."""
        shared = replace(self.task, objectives=objectives, rounds=rounds, effort=effort)
        shared = replace(shared, jacobian=jacobian)
        tasks = [
            replace(
                shared,
                start=Solution(choices, start, start * 0.0, 0.0),
                penalty=self.task.space.penalty(choices),
            )
            for choices, start in starts
        ]

        def report(done: int) -> None:
            self.progress(self.done + done, self.done + max(len(tasks), done) + 1)

        solutions = solve_all(tasks, report)
        self.done += len(tasks)
        return solutions


def solve_all(tasks: list[Task], progress: Callable[[int], None]) -> list[Solution]:
    """The solutions of all tasks that give a valid twin; `progress` gets the number done."""
    solutions: list[Solution] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(_solve, task) for task in tasks]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                if (solution := future.result()) is not None:
                    solutions.append(solution)
                progress(done)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return solutions


def residuals_of(task: Task) -> Callable[[Floats], Floats]:
    """The errors of a twin with these logarithms of the factors, in standard deviations.

    Those of the data come first, then one for each pair of times in `FASTER`, then those of the
    prior.
    """
    space, choices = task.space, task.start.choices
    prior_sigma = np.array([scale.prior_sigma for scale in space.scales])

    @lru_cache(maxsize=2)
    def data_residuals(point: bytes) -> Floats:
        solution = Solution(choices, np.frombuffer(point), prior_sigma, 0.0)
        changes = _changes(task.profile, space, solution)
        text = enlarge_buffer(values_only(task.profile, changes))
        parts = [_residuals(objective, text, task.effort) for objective in task.objectives]
        return np.concatenate([*parts, _slower_cache(text)])

    def residuals(log_factors: Floats) -> Floats:
        return np.concatenate([data_residuals(log_factors.tobytes()), log_factors / prior_sigma])

    return residuals


def _slower_cache(text: str) -> Floats:
    """How much longer an SLC cache takes than other flash, by `FASTER`, in standard deviations."""
    logs = []
    for cached, other in FASTER:
        ratio = mean_of(text, cached) / mean_of(text, other) if get_value(text, cached) else 1.0
        logs.append(max(0.0, np.log(ratio)))
    return np.array(logs) / FASTER_SIGMA


def _solve(task: Task) -> Solution | None:
    """The best factors for the task's choices; None if these choices give no valid twin."""
    from scipy.optimize import least_squares

    choices, at_point = task.start.choices, residuals_of(task)
    low, high = task.space.bounds()
    start = np.clip(task.start.log_factors, low + 1e-6, high - 1e-6)

    # Relative to the start: only from zero does least_squares limit its first step to length 1.
    def residuals(moved: Floats) -> Floats:
        return at_point(start + moved)

    if task.jacobian is not None:
        try:
            return _step(task, residuals, low - start, high - start, task.jacobian)
        except TargetError:
            return None

    derived: list[Floats] = []
    last: list[_Point] = []

    def jacobian(moved: Floats) -> Floats:
        here = residuals(moved)
        if last and last[0].is_measured:
            last[:] = [last[0].updated(moved, here)]
            return last[0].derivatives
        if len(derived) == task.rounds:
            raise _EnoughError(moved)
        derivatives = _derivatives(task, residuals, moved)
        derived.append(derivatives)
        last[:] = [_Point(moved.copy(), here, derivatives)]
        return derivatives

    try:
        if task.rounds == 1:  # the cost at the start, without a search
            at_start = residuals(np.zeros(len(start)))
            cost = float(at_start @ at_start) + task.penalty
            return Solution(choices, start, start * 0.0, cost)
        try:
            moved = least_squares(
                residuals,
                np.zeros(len(start)),
                jacobian,
                bounds=(low - start, high - start),
                max_nfev=TRIALS * task.rounds,
                ftol=FTOL if len(task.objectives) > 1 else 1e-8,
            ).x
        except _EnoughError as enough:
            moved = enough.moved
        at = residuals(moved)
    except TargetError:
        return None
    derivatives = derived[-1]  # of this point, or of the one before the last step
    sigma = np.sqrt(np.diag(np.linalg.inv(derivatives.T @ derivatives)))
    data = at[: -len(moved) - len(FASTER)]
    excess = max(1.0, float(data @ data) / max(1, len(data) - len(moved)))
    cost = float(at @ at) + task.penalty
    return Solution(choices, start + moved, sigma, cost, excess, derivatives)


def _derivatives(task: Task, residuals: Callable[[Floats], Floats], at: Floats) -> Floats:
    """The derivatives of the residuals by each factor.

    Of a factor on which none of the results depends, only that of the prior, without a twin.
    """
    here, scales = residuals(at), task.space.scales
    keys = scales_of(objective.experiment for objective in task.objectives)
    derivatives = np.zeros((len(here), len(scales)))
    derivatives[len(here) - len(scales) :] = np.diag([1 / scale.prior_sigma for scale in scales])
    shown = [n for n, scale in enumerate(scales) if scale.key in keys]
    points = [at + STEP * axis for axis in np.eye(len(at))[shown]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for n, there in zip(shown, pool.map(residuals, points), strict=True):
            derivatives[:, n] = (there - here) / STEP
    return derivatives


def _step(
    task: Task, residuals: Callable[[Floats], Floats], low: Floats, high: Floats, jacobian: Floats
) -> Solution:
    """The best of a few Gauss-Newton steps with the derivatives of another combination.

    Without any (`rounds` is 0), the cost is the one that a step may reach if it is small.
    """
    moved = np.zeros(len(low))
    at = residuals(moved)
    inverse = np.linalg.pinv(jacobian)
    if task.rounds == 0:
        at = at - jacobian @ (inverse @ at)
    best, least = moved, float(at @ at)
    for _ in range(task.rounds):
        moved = np.clip(best - inverse @ at, low, high)
        there = residuals(moved)
        if not float(there @ there) < least:
            break
        best, at, least = moved, there, float(there @ there)
    sigma = np.sqrt(np.diag(inverse @ inverse.T))
    start = task.start
    return Solution(start.choices, start.log_factors + best, sigma, least + task.penalty)


def cost_on(objectives: Sequence[Objective], text: str) -> float:
    """The cost of a profile without the prior's penalty; infinite if it makes no twin."""
    try:
        parts = [_residuals(objective, text, Effort.FINE) for objective in objectives]
    except TargetError:
        return float("inf")
    return float(sum(part @ part for part in parts))


def _residuals(objective: Objective, text: str, effort: Effort) -> Floats:
    """log(twin / drive) of each value, in standard deviations.

    Except for the few times of an ageing row, their squares grow linearly beyond `OUTLIER`: a value
    that depends on what no candidate has must not decide about all numbers (the loss "soft L1").
    """
    logs: Floats = np.log(objective.simulate(text, effort) / objective.measured)
    limit = MISSING_RESIDUAL
    errors: Floats = np.nan_to_num(logs, nan=limit, posinf=limit, neginf=-limit) / objective.sigma
    if objective.experiment == "aging":
        return errors
    return robust(errors)


def robust(errors: Floats) -> Floats:
    """Errors in standard deviations, whose squares grow linearly beyond `OUTLIER`."""
    squares = 2 * OUTLIER**2 * (np.sqrt(1 + (errors / OUTLIER) ** 2) - 1)
    limited: Floats = np.sign(errors) * np.sqrt(squares)
    return limited

"""The search: fits the factors by least squares for each combination of choices, on all cores.

The cost of a candidate is the sum of squares of log(twin / drive), in standard deviations, plus the
prior's penalty (`parameters`). Interval bounds are where the log of the profile likelihood falls by
1.92: exactly for choices; for factors, estimated from the curvature at the optimum.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ssdlab.errors import TargetError, UsageError
from ssdlab.fit.objective import Effort, Objective
from ssdlab.fit.parameters import Estimate, SearchSpace

Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]
"""Called with the number of finished combinations, and the total number."""
STEP: Final = 0.05
"""Step in log(factor) for derivatives; large, because a twin transfers whole pages."""
ROUGH_ROUNDS: Final = 2
FINE_ROUNDS: Final = 6
"""Least-squares iterations: rough for all combinations, fine for the promising ones."""
REFINED_MOST: Final = 2
"""Number of combinations refined if only some objectives discriminate between choices."""
DISCRIMINATING: Final = ("aging", "split")
"""Experiments whose results depend on the choices."""
FTOL: Final = 1e-3
"""With several objectives, the search stops when the relative change of the cost is smaller."""
POOR_FIT: Final = 4.0
"""Above this chi squared per degree of freedom, no candidate twin explains the results."""
MISSING_RESIDUAL: Final = 3.0
"""Error of log(twin / drive) assumed for a value that the candidate twin does not have."""
PROMISING_COST: Final = 12.0
"""Combinations within this cost of the best are refined."""
CHI2_95: Final = 3.84
"""95 % quantile of chi squared with one degree of freedom."""
DETERMINED_SHARE: Final = 0.7
"""A factor is determined if its interval is at most this fraction as wide as the prior's."""


@dataclass(frozen=True)
class Solution:
    """The logarithms of the best factors for one combination of choices, with errors.

    `sigma` has their standard deviations. `excess` is chi squared per degree of freedom, but
    at least 1.
    """

    choices: tuple[Any, ...]
    log_factors: Floats
    sigma: Floats
    cost: float
    excess: float = 1.0


def candidate_profile(
    profile: str, space: SearchSpace, solution: Solution, source: str = ""
) -> str:
    """The profile's text with a solution applied; with a source, its numbers become `fitted`."""
    for choice, value in zip(space.choices, solution.choices, strict=True):
        profile = choice.apply(profile, value, source)
    for scale, log_factor in zip(space.scales, solution.log_factors, strict=True):
        profile = scale.apply(profile, float(np.exp(log_factor)), source)
    return profile


@dataclass(frozen=True)
class _Task:
    """A combination of choices whose factors are to be fitted, with their start values."""

    profile: str
    objectives: Sequence[Objective]
    space: SearchSpace
    start: Solution
    penalty: float
    rounds: int
    effort: Effort


def search(
    profile: str,
    objectives: Sequence[Objective],
    space: SearchSpace,
    progress: Progress,
) -> list[Solution]:
    """Solutions whose choices are about as good as the best combination, sorted by cost.

    If only some objectives discriminate between choices, these objectives select the promising
    combinations; all objectives together then rank them.

    Raises:
        UsageError: no combination gives a valid twin.
    """
    zeros = np.zeros(len(space.scales))
    penalties = dict(space.combinations())
    prior = Solution(min(penalties, key=lambda choices: penalties[choices]), zeros, zeros, 0.0)
    task = _Task(profile, objectives, space, prior, 0.0, FINE_ROUNDS, Effort.FINE)
    rough = sorted(_solve_roughly(task, progress), key=lambda solution: solution.cost)
    _require_solution(rough)
    if _discriminating(objectives) is objectives:
        cost_limit = rough[0].cost + PROMISING_COST
        promising = [solution for solution in rough if solution.cost <= cost_limit]
    else:  # the other objectives may rank them differently
        promising = rough[:REFINED_MOST]
    tasks = [
        replace(task, start=solution, penalty=penalties[solution.choices]) for solution in promising
    ]
    refined = _solve_all(tasks, lambda done: progress(len(tasks) + done, 2 * len(tasks)))
    _require_solution(refined)
    return sorted(refined, key=lambda solution: solution.cost)


def _require_solution(solutions: list[Solution]) -> None:
    if not solutions:
        raise UsageError("no candidate makes a twin; run `ssdlab twin check` on the start profile")


def _discriminating(objectives: Sequence[Objective]) -> Sequence[Objective]:
    """The objectives that depend on the choices; all of them if none or all do."""
    subset = [one for one in objectives if one.experiment in DISCRIMINATING]
    return subset if 0 < len(subset) < len(objectives) else objectives


def _solve_roughly(task: _Task, progress: Progress) -> list[Solution]:
    """A rough solution of every combination, with its cost in the discriminating objectives.

    If other objectives determine the factors independently of the choices, the factors are fitted
    once for all combinations.
    """
    combinations = list(task.space.combinations())
    objectives = _discriminating(task.objectives)
    start, rounds = task.start.log_factors, ROUGH_ROUNDS
    if objectives is not task.objectives and len(combinations) > REFINED_MOST:
        others = [one for one in task.objectives if one.experiment not in DISCRIMINATING]
        solution = _solve(replace(task, objectives=others))
        start, rounds = (start if solution is None else solution.log_factors), 1
    rough = replace(task, objectives=objectives, rounds=rounds, effort=Effort.ROUGH)
    tasks = [
        replace(rough, start=Solution(choices, start, start * 0.0, 0.0), penalty=penalty)
        for choices, penalty in combinations
    ]
    return _solve_all(tasks, lambda done: progress(done, 2 * len(tasks)))


def _solve_all(tasks: list[_Task], progress: Callable[[int], None]) -> list[Solution]:
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


def _solve(task: _Task) -> Solution | None:
    """The best factors for the task's choices; None if these choices give no valid twin."""
    from scipy.optimize import least_squares

    space, choices = task.space, task.start.choices
    prior_sigma = np.array([scale.prior_sigma for scale in space.scales])

    @lru_cache(maxsize=2)
    def data_residuals(point: bytes) -> Floats:
        log_factors = np.frombuffer(point)
        solution = Solution(choices, log_factors, prior_sigma, 0.0)
        text = candidate_profile(task.profile, space, solution)
        parts = [_residuals(objective, text, task.effort) for objective in task.objectives]
        return np.concatenate([np.empty(0), *parts])

    low, high = (np.log([getattr(s, end) for s in space.scales]) for end in ("low", "high"))
    start = np.clip(task.start.log_factors, low + 1e-6, high - 1e-6)

    # Relative to the start: only from zero does least_squares limit its first step to length 1.
    def residuals(moved: Floats) -> Floats:
        log_factors = start + moved
        return np.concatenate([data_residuals(log_factors.tobytes()), log_factors / prior_sigma])

    def jacobian(moved: Floats) -> Floats:
        here = residuals(moved)
        points = [moved + STEP * axis for axis in np.eye(len(moved))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            there = list(pool.map(residuals, points))
        return np.column_stack([(shifted - here) / STEP for shifted in there])

    try:
        if task.rounds == 1:  # the cost at the start, without a search
            at_start = residuals(np.zeros(len(start)))
            cost = float(at_start @ at_start) + task.penalty
            return Solution(choices, start, start * 0.0, cost)
        best = least_squares(
            residuals,
            np.zeros(len(start)),
            jacobian,
            bounds=(low - start, high - start),
            max_nfev=task.rounds,
            ftol=FTOL if len(task.objectives) > 1 else 1e-8,
        )
    except TargetError:
        return None
    sigma = np.sqrt(np.diag(np.linalg.inv(best.jac.T @ best.jac)))
    data = best.fun[: -len(best.x)]
    excess = max(1.0, float(data @ data) / max(1, len(data) - len(best.x)))
    return Solution(choices, start + best.x, sigma, 2.0 * float(best.cost) + task.penalty, excess)


def _residuals(objective: Objective, text: str, effort: Effort) -> Floats:
    """log(twin / drive) of each value, in standard deviations."""
    logs: Floats = np.log(objective.simulate(text, effort) / objective.measured)
    limit = MISSING_RESIDUAL
    return np.nan_to_num(logs, nan=limit, posinf=limit, neginf=-limit) / objective.sigma


def estimates(space: SearchSpace, solutions: list[Solution]) -> Iterator[Estimate]:
    """Each parameter's value and interval; for a `Scale`, the factors on the start profile.

    All intervals widen if the results scatter more than assumed, or if no candidate fits them.
    """
    best = solutions[0]
    drop = CHI2_95 * best.excess
    near = [solution for solution in solutions if solution.cost <= best.cost + drop]
    for n, choice in enumerate(space.choices):
        values = [value for value in choice.values if value in {s.choices[n] for s in near}]
        if best.excess > POOR_FIT:
            values = list(choice.values)
        determined = len(values) < max(2, len(choice.values) - 1)
        yield Estimate(choice.key, best.choices[n], values[0], values[-1], determined)
    for n, scale in enumerate(space.scales):
        widths = [np.sqrt(drop - (s.cost - best.cost)) * s.sigma[n] for s in near]
        low = min(s.log_factors[n] - width for s, width in zip(near, widths, strict=True))
        high = max(s.log_factors[n] + width for s, width in zip(near, widths, strict=True))
        prior_width = 2 * np.sqrt(CHI2_95) * scale.prior_sigma
        determined = bool(high - low <= DETERMINED_SHARE * prior_width)
        low, high = max(low, np.log(scale.low)), min(high, np.log(scale.high))
        value, low, high = (float(np.exp(x)) for x in (best.log_factors[n], low, high))
        yield Estimate(scale.key, value, low, high, determined)

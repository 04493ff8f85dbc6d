"""The search: for each combination of choices the factors by least squares; all cores at work.

The cost of a candidate is the sum of squares of log(twin / drive) over its standard deviation, plus
that of what is unusual (`freedom`). Bounds are where the profile likelihood falls by 1.92: exact
over the choices, by the curvature at the optimum over the factors.
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
from ssdlab.fit.objective import FINE as CLOSE
from ssdlab.fit.objective import ROUGH as LOOSE
from ssdlab.fit.objective import Exam
from ssdlab.fit.parameters import Freedom

Floats = npt.NDArray[np.float64]
Listener = Callable[[int, int], None]
"""Called with combinations done, and all of them."""
STEP: Final = 0.05
"""Of a factor's logarithm, for slopes: a twin is deterministic, but moves in steps of a page."""
ROUGH: Final = 2
FINE: Final = 6
"""Rounds of least squares: for all combinations, and for those that may be the best."""
CLOSELY: Final = 2
"""So many combinations at most are looked at closely where there are other exams too."""
TELLING: Final = ("aging", "split")
"""The experiments that tell choices apart."""
ENOUGH: Final = 1e-3
"""A round that changes the cost of many exams by less, as a share, is the last."""
LOST: Final = 4.0
"""With more of chi squared for a degree of freedom no twin explains the results, so no choice."""
MISSED: Final = 3.0
"""Counts as the logarithm of the error where a candidate has no answer."""
PROMISING: Final = 12.0
"""Of the cost, above that of the best: combinations that are looked at closely."""
DROP: Final = 3.84
"""Of the cost, at the bounds of a 95 % interval: chi squared of one degree."""
TOLD: Final = 0.7
"""A factor is determined if its interval is at most this share of what was thought before."""


@dataclass(frozen=True)
class Solved:
    """The best factors (logarithms) for one combination of choices, and how sharp they are."""

    choices: tuple[Any, ...]
    factors: Floats
    spread: Floats
    cost: float
    excess: float = 1.0
    """Squares of the residuals for each degree of freedom, at least one."""


@dataclass(frozen=True)
class Bounds:
    """A parameter's value with its 95 % interval; `told` is whether the results determine it."""

    key: str
    value: Any
    low: Any
    high: Any
    told: bool


def candidate(profile: str, freedom: Freedom, solved: Solved, source: str = "") -> str:
    """The profile's text of a solution; with a source the numbers are marked as fitted."""
    for choice, value in zip(freedom.choices, solved.choices, strict=True):
        profile = choice.apply(profile, value, source)
    for scale, factor in zip(freedom.scales, solved.factors, strict=True):
        profile = scale.apply(profile, float(np.exp(factor)), source)
    return profile


@dataclass(frozen=True)
class _Task:
    """A combination to be solved: where to start from, how many rounds, how closely asked."""

    profile: str
    exams: Sequence[Exam]
    freedom: Freedom
    begin: Solved
    odd: float
    rounds: int
    effort: int


def search(
    profile: str,
    exams: Sequence[Exam],
    freedom: Freedom,
    told: Listener = lambda _done, _all: None,
) -> list[Solved]:
    """Solutions for all combinations of choices that are near the best, the best first.

    The promising combinations are picked by those exams that tell them apart (portions by an
    ageing row, read-ahead by commands in order), if there are such; then all exams count.

    Raises:
        UsageError: no combination makes a twin.
    """
    none = np.zeros(len(freedom.scales))
    odds = dict(freedom.combinations())
    usual = Solved(min(odds, key=lambda choices: odds[choices]), none, none, 0.0)
    ground = _Task(profile, exams, freedom, usual, 0.0, FINE, CLOSE)
    found = _rough(ground, told)
    _check_some(found)
    least = min(solved.cost for solved in found)
    near = sorted(found, key=lambda solved: solved.cost)
    if _first(exams) is exams:
        near = [solved for solved in near if solved.cost <= least + PROMISING]
    else:  # other exams may see it differently
        near = near[:CLOSELY]
    fine = [replace(ground, begin=solved, odd=odds[solved.choices]) for solved in near]
    best = _solve_all(fine, lambda done: told(len(fine) + done, 2 * len(fine)))
    _check_some(best)
    return sorted(best, key=lambda solved: solved.cost)


def _check_some(found: list[Solved]) -> None:
    if not found:
        raise UsageError("no candidate makes a twin; `ssdlab twin check` the profile to start from")


def _first(exams: Sequence[Exam]) -> Sequence[Exam]:
    """Those that tell choices apart; all where there are none, or nothing else."""
    telling = [exam for exam in exams if exam.experiment in TELLING]
    return telling if 0 < len(telling) < len(exams) else exams


def _rough(ground: _Task, told: Listener) -> list[Solved]:
    """Each combination with its cost by the exams that tell choices apart.

    Where other exams know the factors whatever the choices are, these are solved once for all.
    """
    combinations = list(ground.freedom.combinations())
    first = _first(ground.exams)
    begin, rounds = ground.begin.factors, ROUGH
    if first is not ground.exams and len(combinations) > CLOSELY:
        others = [exam for exam in ground.exams if exam.experiment not in TELLING]
        solved = _solve(replace(ground, exams=others))
        begin, rounds = (begin if solved is None else solved.factors), 1
    rough = replace(ground, exams=first, rounds=rounds, effort=LOOSE)
    tasks = [
        replace(rough, begin=Solved(choices, begin, begin * 0.0, 0.0), odd=odd)
        for choices, odd in combinations
    ]
    return _solve_all(tasks, lambda done: told(done, 2 * len(tasks)))


def _solve_all(tasks: list[_Task], told: Callable[[int], None]) -> list[Solved]:
    found: list[Solved] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(_solve, task) for task in tasks]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                found += [] if (solved := future.result()) is None else [solved]
                told(done)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return found


def _solve(task: _Task) -> Solved | None:
    from scipy.optimize import least_squares

    freedom, choices = task.freedom, task.begin.choices
    usual = np.array([scale.spread for scale in freedom.scales])

    @lru_cache(maxsize=2)
    def answered(place: bytes) -> Floats:
        factors = np.frombuffer(place)
        text = candidate(task.profile, freedom, Solved(choices, factors, usual, 0.0))
        return np.concatenate(
            [np.empty(0), *(_off(exam, text, task.effort) for exam in task.exams)]
        )

    low, high = (np.log([getattr(s, end) for s in freedom.scales]) for end in ("low", "high"))
    start = np.clip(task.begin.factors, low + 1e-6, high - 1e-6)

    # Moved from the start: the first step is of length one only where it begins at zero.
    def residuals(moved: Floats) -> Floats:
        factors = start + moved
        return np.concatenate([answered(factors.tobytes()), factors / usual])

    def slopes(moved: Floats) -> Floats:
        here = residuals(moved)
        points = [moved + STEP * axis for axis in np.eye(len(moved))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            there = list(pool.map(residuals, points))
        return np.column_stack([(each - here) / STEP for each in there])

    if task.rounds == 1:
        return _judged(task, residuals, start)
    try:
        best = least_squares(
            residuals,
            np.zeros(len(start)),
            slopes,
            bounds=(low - start, high - start),
            max_nfev=task.rounds,
            ftol=ENOUGH if len(task.exams) > 1 else 1e-8,
        )
    except TargetError:
        return None  # these choices and this drive's other numbers do not go together
    spread = np.sqrt(np.diag(np.linalg.inv(best.jac.T @ best.jac)))
    off = best.fun[: -len(best.x)]
    excess = max(1.0, float(off @ off) / max(1, len(off) - len(best.x)))
    return Solved(choices, start + best.x, spread, 2.0 * float(best.cost) + task.odd, excess)


def _judged(task: _Task, residuals: Callable[[Floats], Floats], factors: Floats) -> Solved | None:
    """The cost of a combination with given factors, without any search."""
    try:
        off = residuals(np.zeros(len(factors)))
    except TargetError:
        return None
    return Solved(task.begin.choices, factors, factors * 0.0, float(off @ off) + task.odd)


def _off(exam: Exam, text: str, effort: int) -> Floats:
    """Residuals of an exam: logarithms of twin over drive, in standard deviations."""
    off: Floats = np.log(exam.answers(text, effort) / exam.values)
    return np.nan_to_num(off, nan=MISSED, posinf=MISSED, neginf=-MISSED) / exam.sigma


def bounds(freedom: Freedom, found: list[Solved]) -> Iterator[Bounds]:
    """Each parameter's value and interval; factors as such, 1 for the profile started from.

    Results that scatter more than was thought, or that no candidate fits, widen all of them.
    """
    best = found[0]
    drop = DROP * best.excess
    near = [solved for solved in found if solved.cost <= best.cost + drop]
    for n, choice in enumerate(freedom.choices):
        values = [value for value in choice.values if value in {s.choices[n] for s in near}]
        if best.excess > LOST:
            values = list(choice.values)
        told = len(values) < max(2, len(choice.values) - 1)
        yield Bounds(choice.key, best.choices[n], values[0], values[-1], told)
    for n, scale in enumerate(freedom.scales):
        widths = [np.sqrt(drop - (s.cost - best.cost)) * s.spread[n] for s in near]
        low = min(s.factors[n] - width for s, width in zip(near, widths, strict=True))
        high = max(s.factors[n] + width for s, width in zip(near, widths, strict=True))
        told = high - low <= TOLD * 2 * np.sqrt(DROP) * scale.spread
        low, high = max(low, np.log(scale.low)), min(high, np.log(scale.high))
        value, least, most = (float(np.exp(each)) for each in (best.factors[n], low, high))
        yield Bounds(scale.key, value, least, most, bool(told))

"""Intervals of the fitted numbers: where the log of the profile likelihood falls by 1.92.

For choices, these are the values whose cost is low enough. For factors, the curvature at the
optimum gives a first bound; then the twin is simulated there, because a number that limits a rate
only on one side (a link that is faster than the channels) has no curvature on the other.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from ssdlab.errors import TargetError
from ssdlab.fit.parameters import (
    CHANNELS,
    DIES,
    DIES_MAX,
    DIES_PER_CHANNEL,
    Estimate,
    SearchSpace,
)
from ssdlab.fit.solving import Floats, Solution, Task, residuals_of
from ssdlab.fit.variables import Scale

CHI2_95: Final = 3.84
"""95 % quantile of chi squared with one degree of freedom."""
POOR_FIT: Final = 2.5
"""Above this chi squared per degree of freedom, no candidate twin explains the results."""
DETERMINED_RATIO: Final = 1.25
"""A factor is determined if its upper bound is at most this times its lower bound."""
BETTER: Final = 0.5
"""A point whose cost is lower by this belongs to another optimum."""
_FLAT: Final = 0.5
"""A bound where the cost rises by less than this share of the drop is moved outward."""
_DOUBLINGS: Final = 5
_AT_LIMIT: Final = 1.001
"""A factor this near to its limit has reached it."""
_FAR: Final = math.log(2)
"""A factor this far away is tried, too: a rate may have a limit there that explains it as well. If
it does, the factor may be even further away."""


def drop_of(best: Solution) -> float:
    """How much the cost may rise within the interval.

    All intervals widen if the results scatter more than assumed, or if no candidate fits them.
    """
    return CHI2_95 * best.excess


def measured_reach(task: Task, best: Solution) -> Solution:
    """The solution with the reach of each factor; or a better point, without a reach."""
    if best.jacobian is None:
        return best
    walk = _Walk.from_solution(replace(task, start=best), best)
    ends = [(n, sign) for sign in (-1, 1) for n in range(len(best.log_factors))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reached = list(pool.map(lambda end: walk.reach(*end), ends))
    nearest = min((one for one in reached), key=lambda one: one.cost)
    if nearest.cost < float(walk.at_start @ walk.at_start) - BETTER:
        return replace(best, log_factors=nearest.point, cost=nearest.cost + task.penalty)
    return replace(best, reach=np.reshape([one.length for one in reached], (2, -1)))


@dataclass(frozen=True)
class _Reached:
    """How far a factor may move, and the cheapest point on the way."""

    length: float
    cost: float
    point: Floats


@dataclass(frozen=True)
class _Moved:
    """A point with one factor moved, and its costs: with and without the prior of that factor."""

    cost: float
    cost_without_prior: float
    point: Floats

    @classmethod
    def from_residuals(cls, residuals: Floats, point: Floats, n: int) -> Self:
        """The costs of a point with factor `n` moved; the prior's residuals are the last ones."""
        cost, prior = float(residuals @ residuals), residuals[len(residuals) - len(point) + n]
        return cls(cost, cost - float(prior) ** 2, point)


@dataclass(frozen=True)
class _Walk:
    """Moves single factors away from the optimum."""

    residuals: Callable[[Floats], Floats]
    best: Solution
    bounds: tuple[Floats, Floats]
    together: Floats
    """For each factor: by how much the others move with it to compensate, near the optimum."""
    at_start: Floats
    """The residuals of the best point."""

    @classmethod
    def from_solution(cls, task: Task, best: Solution) -> Self:
        """The walk from the best point of a task."""
        assert best.jacobian is not None
        covariance = np.linalg.pinv(best.jacobian.T @ best.jacobian)
        residuals = residuals_of(task)
        at = residuals(best.log_factors)
        together = covariance / np.diag(covariance)[:, np.newaxis]
        return cls(residuals, best, task.space.bounds(), together, at)

    def reach(self, n: int, sign: int) -> _Reached:
        """The distance of factor `n` where the cost has risen by the drop, or its bound.

        Others may compensate, as the curvature says or not at all. The prior of the factor itself
        does not count: the interval is what the results allow.
        """
        at, (low, high) = self.best.log_factors, self.bounds
        room = float(high[n] - at[n] if sign > 0 else at[n] - low[n])
        drop = drop_of(self.best)
        length = float(np.sqrt(drop) * self.best.sigma[n])
        tried = [_Moved.from_residuals(self.at_start, at, n)]
        least = tried[0].cost_without_prior
        for _ in range(_DOUBLINGS):
            if length >= room:
                break
            here = [self._moved(n, at + sign * length * path) for path in self._paths(n)]
            tried += here
            if min(one.cost_without_prior for one in here) > least + _FLAT * drop:
                break
            length *= 2
        for far in (_FAR, 2 * _FAR, 4 * _FAR, room):
            if length < far <= room:
                tried.append(self._moved(n, at + sign * far * self._paths(n)[1]))
                if not tried[-1].cost_without_prior < least + drop:
                    break
                length = far
        best = min(tried, key=lambda one: one.cost)
        return _Reached(min(length, room), best.cost, best.point)

    def _paths(self, n: int) -> tuple[Floats, Floats]:
        return self.together[n], np.eye(len(self.together))[n]

    def _moved(self, n: int, log_factors: Floats) -> _Moved:
        point = np.clip(log_factors, *self.bounds)
        try:
            at = self.residuals(point)
        except TargetError:  # no such twin
            return _Moved(np.inf, np.inf, point)
        return _Moved.from_residuals(at, point, n)


def possible(space: SearchSpace, best: Solution, solutions: Sequence[Solution]) -> list[Solution]:
    """The solutions that the results do not exclude.

    The prior chooses between them, but excludes none: it knows nothing of this drive.
    """
    limit = best.cost - space.penalty(best.choices) + drop_of(best)
    return [one for one in solutions if one.cost - space.penalty(one.choices) <= limit]


def estimates(space: SearchSpace, solutions: Sequence[Solution]) -> Iterator[Estimate]:
    """Each parameter's value and interval; for a `Scale`, the factors on the start profile.

    If no candidate fits the results, nothing that was searched for is determined.
    """
    best, drop = solutions[0], drop_of(solutions[0])
    is_poor = best.excess > POOR_FIT
    not_excluded = possible(space, best, solutions)
    for n, choice in enumerate(space.choices):
        values = [each for each in choice.values if each in {s.choices[n] for s in not_excluded}]
        if is_poor:
            values = list(choice.values)
        low, high = choice.bounds(values)
        yield Estimate(choice.key, best.choices[n], low, high, low == high)
    yield from _searched_dies(space, not_excluded, is_poor=is_poor)
    near = [solution for solution in solutions if solution.cost <= best.cost + drop]
    factors = list(_factors(space, near, drop, is_poor=is_poor))
    yield from (_beyond_ratio(scale, factors) for scale in space.scales)


def _factors(
    space: SearchSpace, near: Sequence[Solution], drop: float, *, is_poor: bool
) -> Iterator[Estimate]:
    """The factor of each `Scale`, within its bounds; the best solution is the first of `near`."""
    best = near[0]
    least, most = space.bounds()
    for n, scale in enumerate(space.scales):
        shares = [np.sqrt(1 - (one.cost - best.cost) / drop) for one in near]
        below, above = _reach(best)[:, n]
        low = min(s.log_factors[n] - share * below for s, share in zip(near, shares, strict=True))
        high = max(s.log_factors[n] + share * above for s, share in zip(near, shares, strict=True))
        low, high = max(low, least[n]), min(high, most[n])
        determined = bool(high - low <= np.log(DETERMINED_RATIO)) and not is_poor
        value, low, high = (float(np.exp(x)) for x in (best.log_factors[n], low, high))
        yield Estimate(scale.key, value, low, high, determined)


def _beyond_ratio(scale: Scale, factors: Sequence[Estimate]) -> Estimate:
    """The estimate of the factor.

    If a ratio to another number reaches a limit, its own number may be farther away, as far as that
    of the other one.
    """
    found = {one.key: one for one in factors}
    one, other = found[scale.key], found.get(scale.of)
    if other is None:
        return one
    low = one.low * (other.low / other.value if one.low <= scale.low * _AT_LIMIT else 1.0)
    high = one.high * (other.high / other.value if one.high * _AT_LIMIT >= scale.high else 1.0)
    return replace(
        one, low=low, high=high, determined=one.determined and high <= DETERMINED_RATIO * low
    )


def _searched_dies(
    space: SearchSpace, near: Sequence[Solution], *, is_poor: bool
) -> Iterator[Estimate]:
    """The dies of all channels, if both numbers were searched for; the best of `near` is first."""
    places = {choice.key: n for n, choice in enumerate(space.choices)}
    if not {CHANNELS, DIES_PER_CHANNEL} <= places.keys():
        return
    choice = space.choices[places[DIES_PER_CHANNEL]]
    pairs = [(s.choices[places[CHANNELS]], s.choices[places[DIES_PER_CHANNEL]]) for s in near]
    bounds = [[channels * end for end in choice.bounds((each,))] for channels, each in pairs]
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    low, high = (1, DIES_MAX) if is_poor else (low, high)
    yield Estimate(DIES, pairs[0][0] * pairs[0][1], low, high, low == high)


def _reach(best: Solution) -> Floats:
    """How far each factor may be lower and higher: as measured, or by the curvature."""
    if best.reach is not None:
        return best.reach
    return np.tile(np.sqrt(drop_of(best)) * best.sigma, (2, 1))

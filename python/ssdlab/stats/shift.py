"""Shifts: how many times one set of numbers is another, with bounds and a chance of error.

Every function answers the same question in its own way, on logarithms: by which factor is the
numerator more than the denominator? `p` is the chance of an estimate so far out, or further,
though the true factor lies within 1 / margin to margin; the bounds hold the factor in 95 % of
cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssdlab.stats.interval import LogDifference, log_difference, student_quantile

FEWEST_PAIRS: Final = 6
"""Five pairs that all lean to one side are chance in one case of sixteen."""
_TAIL: Final = 0.025


class Shift(NamedTuple):
    """A factor, its 95 % bounds, and the chance that it is within the margin all the same."""

    ratio: float
    low: float
    high: float
    p: float


def of_pairs(
    numerator: Sequence[float], denominator: Sequence[float], margin: float = 1.0
) -> Shift | None:
    """Of pairs that were measured in turns: by the signed ranks of the pairs' logarithms.

    The median of all means of two pairs' ratios (Hodges and Lehmann, Annals of Mathematical
    Statistics 1963), its bounds from the exact distribution of the signed ranks (F. Wilcoxon,
    Biometrics 1945). Where chance chose who of a pair came first, equal sides exceed the bounds in
    5 % of cases whatever the noise is like: it need be neither normal nor independent in time.
    None for fewer than `FEWEST_PAIRS`.
    """
    n = len(numerator)
    assert n == len(denominator), "each has its partner"
    if n < FEWEST_PAIRS:
        return None
    d = np.log(np.asarray(numerator, dtype=np.float64) / np.asarray(denominator, np.float64))
    rows, columns = np.triu_indices(n)
    means = np.sort((d[rows] + d[columns]) / 2)
    below = _signed_rank_below(n)
    left_out = int(np.searchsorted(below, _TAIL, side="right"))  # sums that chance rarely gives
    middle, edge = float(np.median(means)), math.log(margin)
    against = np.sum(means <= edge) if middle > 0 else np.sum(means >= -edge)
    p = min(1.0, 2 * float(below[int(against)]))
    bounds = (float(np.exp(means[left_out - 1])), float(np.exp(means[-left_out])))
    return Shift(math.exp(middle), *bounds, p)


def of_repeats(
    numerator: Sequence[float], denominator: Sequence[float], margin: float = 1.0
) -> Shift | None:
    """Of independent repeats, runs above all: Welch's t of the logarithms.

    Where one side has a single repeat, that is taken to scatter as the other side's do (three at
    least). None for fewer, and where nothing scatters.
    """
    found = log_difference(numerator, denominator) or _one_against_many(numerator, denominator)
    return None if found is None else of_difference(found, margin)


def of_paired_repeats(
    numerator: Sequence[float], denominator: Sequence[float], margin: float = 1.0
) -> Shift | None:
    """Of pairs, too few for their ranks: Student's t of the pairs' logarithms. At least two."""
    n = len(numerator)
    assert n == len(denominator), "each has its partner"
    if n < 2:
        return None
    d = [math.log(above / below) for above, below in zip(numerator, denominator, strict=True)]
    mean = math.fsum(d) / n
    square = math.fsum((x - mean) ** 2 for x in d) / (n - 1) / n
    if square < 1e-24:
        return None
    return of_difference(LogDifference(mean, math.sqrt(square), n - 1), margin)


def of_bounds(
    ratio: float, low: float, high: float, scatter: float = 0.0, margin: float = 1.0
) -> Shift:
    """Of a factor whose 95 % bounds are known; `scatter` is one more error of its logarithm.

    The errors add as their squares do, on each side of its own.
    """
    normal = student_quantile(1 - _TAIL, math.inf)
    down = math.hypot(math.log(ratio / low), normal * scatter)
    up = math.hypot(math.log(high / ratio), normal * scatter)
    inward = down if ratio > 1 else up
    p = _two_sided(abs(math.log(ratio)), inward / normal, math.inf, margin)
    return Shift(ratio, ratio * math.exp(-down), ratio * math.exp(up), p)


def of_difference(found: LogDifference, margin: float = 1.0) -> Shift:
    """Of a mean difference of logarithms with its error."""
    wide = student_quantile(1 - _TAIL, found.freedom) * found.error
    low, high = math.exp(found.mean - wide), math.exp(found.mean + wide)
    p = _two_sided(abs(found.mean), found.error, found.freedom, margin)
    return Shift(math.exp(found.mean), low, high, p)


def holm(chances: Sequence[float]) -> list[float]:
    """Chances of error, adjusted for there being several: S. Holm, Scand. J. Statistics 1979.

    Where those at or below 5 % are believed, not one is wrong in 95 % of cases, however they
    depend on one another.
    """
    order = sorted(range(len(chances)), key=lambda at: chances[at])
    adjusted, least = [1.0] * len(chances), 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, (len(chances) - rank) * chances[at]))
        adjusted[at] = least
    return adjusted


def _two_sided(distance: float, error: float, freedom: float, margin: float) -> float:
    from scipy.special import stdtr

    beyond = distance - math.log(margin)
    if beyond <= 0 or error <= 0:
        return 1.0 if beyond <= 0 else 0.0
    return min(1.0, 2 * float(stdtr(freedom, -beyond / error)))


def _one_against_many(
    numerator: Sequence[float], denominator: Sequence[float]
) -> LogDifference | None:
    sets = [[math.log(value) for value in values] for values in (numerator, denominator)]
    one, many = sorted(sets, key=len)
    if len(one) != 1 or len(many) < 3:
        return None
    mean = math.fsum(many) / len(many)
    variance = math.fsum((x - mean) ** 2 for x in many) / (len(many) - 1)
    if variance < 1e-24:
        return None
    above, below = (math.fsum(logs) / len(logs) for logs in sets)
    error = math.sqrt(variance * (1 + 1 / len(many)))
    return LogDifference(above - below, error, len(many) - 1)


def _signed_rank_below(n: int) -> NDArray[np.float64]:
    """The chance of a sum of signed ranks of at most 0, 1, 2 ... n (n + 1) / 2, of n pairs."""
    chance = np.zeros(n * (n + 1) // 2 + 1)
    chance[0] = 1.0
    for rank in range(1, n + 1):
        chance[rank:] = (chance[rank:] + chance[:-rank]) / 2
        chance[:rank] /= 2
    below: NDArray[np.float64] = np.cumsum(chance)
    return below

"""Ratio of two sets of measurements with a 95 % interval and a p-value.

Each function estimates numerator / denominator on logarithms, by another method. The null
hypothesis is that the true ratio is between 1 / margin and margin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssdlab.stats.interval import LogDifference, log_difference, student_quantile

FEWEST_PAIRS: Final = 6
"""With five pairs, the smallest possible p-value is 1/16."""
_TAIL: Final = 0.025


class Shift(NamedTuple):
    """A ratio, its 95 % interval and its p-value."""

    ratio: float
    low: float
    high: float
    p: float


def from_pairs(
    numerator: Sequence[float], denominator: Sequence[float], margin: float = 1.0
) -> Shift | None:
    """The ratio from pairs measured in turns, by the signed ranks of their log ratios.

    The median of the Walsh averages (Hodges and Lehmann, Annals of Mathematical Statistics 1963),
    with an interval from the exact distribution of signed ranks (F. Wilcoxon, Biometrics 1945). If
    the order within each pair was random, the error rate is 5 % for any noise: it need not be
    normal or independent in time. None for fewer than `FEWEST_PAIRS`.
    """
    n = len(numerator)
    assert n == len(denominator), "pairs need sets of equal length"
    if n < FEWEST_PAIRS:
        return None
    d = np.log(np.asarray(numerator, dtype=np.float64) / np.asarray(denominator, np.float64))
    rows, columns = np.triu_indices(n)
    means = np.sort((d[rows] + d[columns]) / 2)
    below = _signed_rank_below(n)
    excluded = int(np.searchsorted(below, _TAIL, side="right"))
    middle, edge = float(np.median(means)), math.log(margin)
    against = np.sum(means <= edge) if middle > 0 else np.sum(means >= -edge)
    p = min(1.0, 2 * float(below[int(against)]))
    bounds = (float(np.exp(means[excluded - 1])), float(np.exp(means[-excluded])))
    return Shift(math.exp(middle), *bounds, p)


def from_repeats(
    numerator: Sequence[float], denominator: Sequence[float], margin: float = 1.0
) -> Shift | None:
    """The ratio from independent repeats, such as runs, by Welch's t-test of the logarithms.

    A single repeat on one side is assumed to have the variance of the other side, which then needs
    at least three. None with fewer repeats, or if the repeats do not vary.
    """
    difference = log_difference(numerator, denominator) or _one_against_many(numerator, denominator)
    return None if difference is None else from_difference(difference, margin)


def from_paired_repeats(
    numerator: Sequence[float], denominator: Sequence[float], margin: float = 1.0
) -> Shift | None:
    """The ratio from two or more pairs by the t-test of log ratios, if too few for `from_pairs`."""
    n = len(numerator)
    assert n == len(denominator), "pairs need sets of equal length"
    if n < 2:
        return None
    d = [math.log(above / below) for above, below in zip(numerator, denominator, strict=True)]
    mean = math.fsum(d) / n
    square = math.fsum((x - mean) ** 2 for x in d) / (n - 1) / n
    if square < 1e-24:
        return None
    return from_difference(LogDifference(mean, math.sqrt(square), n - 1), margin)


def from_bounds(
    ratio: float, low: float, high: float, scatter: float = 0.0, margin: float = 1.0
) -> Shift:
    """A ratio with a known 95 % interval; `scatter` is an additional error of its logarithm.

    The errors are added in quadrature, separately on each side.
    """
    normal = student_quantile(1 - _TAIL, math.inf)
    down = math.hypot(math.log(ratio / low), normal * scatter)
    up = math.hypot(math.log(high / ratio), normal * scatter)
    inward = down if ratio > 1 else up
    p = _two_sided(abs(math.log(ratio)), inward / normal, math.inf, margin)
    return Shift(ratio, ratio * math.exp(-down), ratio * math.exp(up), p)


def from_difference(difference: LogDifference, margin: float = 1.0) -> Shift:
    """The ratio from a difference of mean logarithms."""
    mean, error, freedom = difference
    width = student_quantile(1 - _TAIL, freedom) * error
    p = _two_sided(abs(mean), error, freedom, margin)
    return Shift(math.exp(mean), math.exp(mean - width), math.exp(mean + width), p)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for multiple tests (S. Holm, Scand. J. Statistics 1979).

    Controls the family-wise error rate for any dependence between the tests.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, smallest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        smallest = max(smallest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = smallest
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
    """Cumulative distribution of the signed-rank sum of n pairs, for 0 to n (n + 1) / 2."""
    chance = np.zeros(n * (n + 1) // 2 + 1)
    chance[0] = 1.0
    for rank in range(1, n + 1):
        chance[rank:] = (chance[rank:] + chance[:-rank]) / 2
        chance[:rank] /= 2
    below: NDArray[np.float64] = np.cumsum(chance)
    return below

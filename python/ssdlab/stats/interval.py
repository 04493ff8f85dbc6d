"""Intervals: what a few repeats say about a ratio, and a series about its mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class LogDifference(NamedTuple):
    """A mean difference of logarithms, its standard error, and that one's degrees of freedom."""

    mean: float
    error: float
    freedom: float


def ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Bounds of the ratio of two positive quantities, each measured several times.

    Of the ratio of geometric means, by `log_difference`; None where that is.
    """
    found = log_difference(numerator, denominator)
    if found is None:
        return None
    margin = student_quantile(0.5 + confidence / 2, found.freedom) * found.error
    return math.exp(found.mean - margin), math.exp(found.mean + margin)


def log_difference(
    numerator: Sequence[float], denominator: Sequence[float]
) -> LogDifference | None:
    """The difference of mean logarithms with Welch's error (B. L. Welch, Biometrika 1947).

    None where one of them has fewer than two repeats, and where no repeat differs from another:
    exact repeats (a twin's) say nothing about an error.
    """
    if min(len(numerator), len(denominator)) < 2:
        return None
    means, errors, freedoms = [], [], []
    for values in (numerator, denominator):
        logs = [math.log(value) for value in values]
        mean = math.fsum(logs) / len(logs)
        square = math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1) / len(logs)
        means.append(mean)
        errors.append(square)
        freedoms.append(len(logs) - 1)
    error = sum(errors)
    if error < 1e-24:  # rounding of equal logarithms, far below any clock's resolution
        return None
    freedom = error**2 / sum(e**2 / f for e, f in zip(errors, freedoms, strict=True))
    return LogDifference(means[0] - means[1], math.sqrt(error), freedom)


def median_ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Bounds of the ratio of two positive quantities whose repeats have wild outliers.

    Of all ratios of one repeat to another in order, those at the ends of what chance would leave
    (L. E. Moses, in Walker and Lev, Statistical Inference 1953; by the rank sum's normal
    approximation): no assumption about how repeats scatter. None where so few repeats support no
    such bounds (three and three do not, four and four do), and where none differs from another.
    """
    n, m = len(numerator), len(denominator)
    if min(n, m) == 0 or len({*numerator}) == len({*denominator}) == 1:
        return None
    ratios = np.sort(np.divide.outer(np.asarray(numerator), np.asarray(denominator)).ravel())
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    left_out = math.floor(n * m / 2 - _normal_quantile(0.5 + confidence / 2) * deviation)
    if left_out < 1:
        return None
    return float(ratios[left_out - 1]), float(ratios[-left_out])


def mean_interval(
    series: Sequence[float] | NDArray[np.float64], block: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Bounds of the long-run mean of a positive series whose neighbours are correlated.

    The moving-block bootstrap draws blocks of `block` neighbours until they are as long as the
    series. The variance of the mean of such draws needs no drawing: it is that of the means of all
    overlapping blocks, times block / n (Kuensch, Annals of Statistics 1989), and here block / (n -
    block), which is free of bias for independent numbers. The bounds are Student's on the
    logarithm, with 1.5 (n / block - 1) degrees of freedom (overlapping batch means: Meketon and
    Schmeiser, Winter Simulation Conference 1984). Correlation must end within a block. At least
    two blocks; equal numbers give bounds equal to them.
    """
    x = np.asarray(series, dtype=np.float64)
    assert block >= 1, f"a block of {block}"
    assert len(x) >= 2 * block, f"{len(x)} numbers are fewer than two blocks of {block}"
    assert (x > 0).all(), "a positive series"
    mean = float(x.mean())
    means = np.lib.stride_tricks.sliding_window_view(x, block).mean(axis=1)
    error = math.sqrt(float(np.mean((means / mean - 1) ** 2)) * block / (len(x) - block))
    margin = student_quantile(0.5 + confidence / 2, 1.5 * (len(x) / block - 1)) * error
    return mean * math.exp(-margin), mean * math.exp(margin)


def block_length(series: Sequence[float] | NDArray[np.float64]) -> int:
    """How long the blocks of `mean_interval` should be: past the end of the correlation.

    The first lag from which five autocorrelations in a row are no more than chance would leave
    (D. N. Politis and H. White, Econometric Reviews 2004, there as the window's half), twice; at
    least the cube root of the length, at most a tenth of it.
    """
    x = np.asarray(series, dtype=np.float64)
    n, y = len(x), x - x.mean()
    power = float(y @ y)
    longest = max(1, n // 10)
    if not power:
        return 1
    chance, quiet, lag = 2 * math.sqrt(math.log10(n) / n), 0, 0
    while quiet < 5 and lag < longest:
        lag += 1
        quiet = quiet + 1 if abs(float(y[lag:] @ y[:-lag])) / power < chance else 0
    ends = lag - quiet if quiet == 5 else longest
    return int(min(longest, max(2 * ends, round(n ** (1 / 3)), 1)))


def student_quantile(probability: float, freedom: float) -> float:
    """Student's t below which a value lies with this probability; degrees need not be whole."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def _normal_quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))

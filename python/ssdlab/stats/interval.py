"""Confidence intervals of the ratio of two sets of repeats, and of the mean of a series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class LogDifference(NamedTuple):
    """A difference of mean logarithms, its standard error and degrees of freedom."""

    mean: float
    error: float
    freedom: float


def ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the ratio of geometric means of two positive quantities, from repeats of each.

    None if `log_difference` is None.
    """
    difference = log_difference(numerator, denominator)
    if difference is None:
        return None
    margin = student_quantile(0.5 + confidence / 2, difference.freedom) * difference.error
    return math.exp(difference.mean - margin), math.exp(difference.mean + margin)


def log_difference(
    numerator: Sequence[float], denominator: Sequence[float]
) -> LogDifference | None:
    """The difference of mean logarithms with Welch's error (B. L. Welch, Biometrika 1947).

    None if either has fewer than two repeats, or if neither varies, as with a twin: then the error
    is unknown.
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
    if error < 1e-24:  # rounding of equal logarithms
        return None
    freedom = error**2 / sum(e**2 / f for e, f in zip(errors, freedoms, strict=True))
    return LogDifference(means[0] - means[1], math.sqrt(error), freedom)


def median_ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the ratio of two positive quantities whose repeats have outliers.

    Order statistics of all pairwise ratios (L. E. Moses, in Walker and Lev, Statistical Inference
    1953; normal approximation of the rank sum). Assumes no distribution. None with too few repeats
    (3 and 3 are too few, 4 and 4 are enough), or if all repeats are equal.
    """
    n, m = len(numerator), len(denominator)
    if min(n, m) == 0 or len({*numerator}) == len({*denominator}) == 1:
        return None
    ratios = np.sort(np.divide.outer(np.asarray(numerator), np.asarray(denominator)).ravel())
    deviation = math.sqrt(n * m * (n + m + 1) / 12)
    excluded = math.floor(n * m / 2 - _normal_quantile(0.5 + confidence / 2) * deviation)
    if excluded < 1:
        return None
    return float(ratios[excluded - 1]), float(ratios[-excluded])


def mean_interval(
    series: Sequence[float] | NDArray[np.float64], block: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of the long-run mean of a positive series with autocorrelation.

    The variance of the mean is that of the means of all overlapping blocks of `block` numbers,
    times block / n, as in the moving-block bootstrap (Kuensch, Annals of Statistics 1989); here
    times block / (n - block), which is unbiased for independent numbers. The interval is Student's
    on the logarithm, with 1.5 (n / block - 1) degrees of freedom (overlapping batch means: Meketon
    and Schmeiser, Winter Simulation Conference 1984). Correlation must end within a block, and the
    series must have at least two blocks. Equal numbers give an interval of width 0.
    """
    x = np.asarray(series, dtype=np.float64)
    assert block >= 1, f"a block of {block}"
    assert len(x) >= 2 * block, f"{len(x)} numbers are fewer than two blocks of {block}"
    assert (x > 0).all(), "the series must be positive"
    mean = float(x.mean())
    means = np.lib.stride_tricks.sliding_window_view(x, block).mean(axis=1)
    error = math.sqrt(float(np.mean((means / mean - 1) ** 2)) * block / (len(x) - block))
    margin = student_quantile(0.5 + confidence / 2, 1.5 * (len(x) / block - 1)) * error
    return mean * math.exp(-margin), mean * math.exp(margin)


def block_length(series: Sequence[float] | NDArray[np.float64]) -> int:
    """The block length for `mean_interval`: longer than the correlation of the series.

    Twice the first lag from which five consecutive autocorrelations are not significant
    (D. N. Politis and H. White, Econometric Reviews 2004); at least the cube root of the length, at
    most a tenth of it.
    """
    x = np.asarray(series, dtype=np.float64)
    n, y = len(x), x - x.mean()
    power = float(y @ y)
    longest = max(1, n // 10)
    if not power:
        return 1
    threshold, quiet, lag = 2 * math.sqrt(math.log10(n) / n), 0, 0
    while quiet < 5 and lag < longest:
        lag += 1
        quiet = quiet + 1 if abs(float(y[lag:] @ y[:-lag])) / power < threshold else 0
    end = lag - quiet if quiet == 5 else longest
    return int(min(longest, max(2 * end, round(n ** (1 / 3)), 1)))


def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t with `freedom` degrees of freedom, which may be fractional."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def _normal_quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))

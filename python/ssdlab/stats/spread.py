"""Spread of repeats, and robust ratios of two sets of repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# 1 / third quartile of the standard normal distribution: scales the MAD to sigma.
_NORMAL: Final = 1.482602218505602
FEWEST_REPEATS: Final = 5
_RESAMPLES: Final = 1999


class Ratio(NamedTuple):
    """A ratio and its interval."""

    value: float
    low: float
    high: float


class Deviation(NamedTuple):
    """A mean, the mean absolute deviation, and the deviation in percent of the mean."""

    mean: float
    error: float
    percent: float


def mean_deviation(values: Sequence[float] | Numbers) -> Deviation:
    """Mean and mean absolute deviation, as benchmark tables print them.

    For three runs the deviation is about 0.65 standard deviations; it is not a confidence interval.
    Needs at least one value; the mean must be positive.
    """
    x = _column(values)
    mean = float(x.mean())
    assert mean > 0, f"the mean is {mean}, but must be positive"
    error = float(np.abs(x - mean).mean())
    return Deviation(mean, error, 100 * error / mean)


def mad(values: Sequence[float] | Numbers) -> float:
    """Median absolute deviation from the median, times 1.4826.

    Equals sigma for normally distributed values. Up to half of the values may be outliers (Hampel,
    JASA 1974). Needs at least one value.
    """
    x = _column(values)
    return _NORMAL * float(np.median(np.abs(x - np.median(x))))


def cv(values: Sequence[float] | Numbers) -> float:
    """Coefficient of variation: standard deviation (n - 1) / mean.

    Needs at least two values; the mean must be positive.
    """
    x = _column(values)
    assert len(x) >= 2, "the standard deviation needs two values"
    mean = float(x.mean())
    assert mean > 0, f"the mean is {mean}, but must be positive"
    return float(x.std(ddof=1)) / mean


def robust_cv(values: Sequence[float] | Numbers) -> float:
    """`mad` / median, a coefficient of variation without outliers; the median must be positive."""
    x = _column(values)
    median = float(np.median(x))
    assert median > 0, f"the median is {median}, but must be positive"
    return mad(x) / median


def hodges_lehmann(
    numerator: Sequence[float] | Numbers, denominator: Sequence[float] | Numbers
) -> float:
    """The median of all pairwise ratios; all values must be positive.

    On logarithms this is the shift of Hodges and Lehmann (Annals of Mathematical Statistics 1963).
    """
    logs = _log_pairs(np.log(_positive(numerator)), np.log(_positive(denominator)))
    return float(np.exp(np.median(logs)))


def hodges_lehmann_ratio(
    numerator: Sequence[float] | Numbers,
    denominator: Sequence[float] | Numbers,
    confidence: float = 0.95,
    *,
    seed: int = 0,
) -> Ratio | None:
    """`hodges_lehmann` with a percentile bootstrap interval on logarithms; both sets are resampled.

    None if either set has fewer than `FEWEST_REPEATS`. The coverage is about 90 % for 5 against 5
    repeats and 94 % for 10 against 10. Repeats must be independent: runs, not intervals of one run.
    """
    above, below = np.log(_positive(numerator)), np.log(_positive(denominator))
    if min(len(above), len(below)) < FEWEST_REPEATS:
        return None
    generator = np.random.default_rng(seed)
    resampled = zip(
        generator.choice(above, (_RESAMPLES, len(above))),
        generator.choice(below, (_RESAMPLES, len(below))),
        strict=True,
    )
    shifts = [float(np.median(_log_pairs(up, down))) for up, down in resampled]
    tail = (1 - confidence) / 2
    low, high = np.exp(np.quantile(shifts, [tail, 1 - tail]))
    return Ratio(hodges_lehmann(numerator, denominator), float(low), float(high))


def _log_pairs(above: Numbers, below: Numbers) -> Numbers:
    return np.subtract.outer(above, below).ravel()


def _positive(values: Sequence[float] | Numbers) -> Numbers:
    x = _column(values)
    assert (x > 0).all(), "a ratio needs positive values"
    return x


def _column(values: Sequence[float] | Numbers) -> Numbers:
    x = np.asarray(values, dtype=np.float64)
    assert x.ndim == 1, f"{x.ndim} dimensions: a column has one"
    assert len(x) >= 1, "at least one value is needed"
    assert np.isfinite(x).all(), "values must be finite"
    return x

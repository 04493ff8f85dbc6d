"""Spread: how far repeats lie apart, and the ratio of two sets of them, outliers or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# 1 / the third quartile of the standard normal: makes the MAD of normal numbers their sigma.
_NORMAL: Final = 1.482602218505602
FEWEST_REPEATS: Final = 5
_RESAMPLES: Final = 1999


class Ratio(NamedTuple):
    """A ratio with the bounds of its interval."""

    value: float
    low: float
    high: float


class Deviation(NamedTuple):
    """A mean, the mean absolute deviation from it, and that in per cent of the mean."""

    mean: float
    error: float
    percent: float


def mean_deviation(values: Sequence[float] | Numbers) -> Deviation:
    """Mean and mean absolute deviation from it, as tables of benchmarks print them.

    Of three runs it is about 0.65 standard deviations, and no interval of anything. At least one
    value; the mean is above zero.
    """
    x = _column(values)
    mean = float(x.mean())
    assert mean > 0, f"relative to a mean of {mean}"
    error = float(np.abs(x - mean).mean())
    return Deviation(mean, error, 100 * error / mean)


def mad(values: Sequence[float] | Numbers) -> float:
    """Median absolute deviation from the median, times 1.4826: sigma for normal numbers.

    Half of the values may be anything before it breaks down (Hampel, JASA 1974). At least one.
    """
    x = _column(values)
    return _NORMAL * float(np.median(np.abs(x - np.median(x))))


def cv(values: Sequence[float] | Numbers) -> float:
    """Coefficient of variation: standard deviation (n - 1) over the mean, of at least two.

    The mean is above zero.
    """
    x = _column(values)
    assert len(x) >= 2, "one value has no spread"
    mean = float(x.mean())
    assert mean > 0, f"relative to a mean of {mean}"
    return float(x.std(ddof=1)) / mean


def robust_cv(values: Sequence[float] | Numbers) -> float:
    """`mad` over the median, which is above zero: the cv without its outliers."""
    x = _column(values)
    median = float(np.median(x))
    assert median > 0, f"relative to a median of {median}"
    return mad(x) / median


def hodges_lehmann(
    numerator: Sequence[float] | Numbers, denominator: Sequence[float] | Numbers
) -> float:
    """The median of all ratios of a numerator to a denominator; all values are above zero.

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
    """`hodges_lehmann` with its bootstrap interval: both sets resampled, percentiles of the log.

    None where one has fewer than `FEWEST_REPEATS`: a resample of fewer is too often the same value
    over again. At 5 against 5 the bounds hold the truth in about 90 % of cases, at 10 in 94 %.
    The repeats must be independent of one another: runs, not the intervals of one run.
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
    assert (x > 0).all(), "a ratio is one of positive values"
    return x


def _column(values: Sequence[float] | Numbers) -> Numbers:
    x = np.asarray(values, dtype=np.float64)
    assert x.ndim == 1, f"a column has one axis: {x.ndim}"
    assert len(x) >= 1, "nothing has no spread"
    assert np.isfinite(x).all(), "values are finite"
    return x

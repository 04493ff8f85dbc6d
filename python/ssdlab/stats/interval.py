"""Intervals: what a few repeats say about a ratio, and a series about its mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = 0.95
) -> tuple[float, float] | None:
    """Bounds of the ratio of two positive quantities, each measured several times.

    Welch's t interval of the difference of mean logarithms (B. L. Welch, Biometrika 1947), so
    of the ratio of geometric means. None where one of them has fewer than two repeats, and where
    no repeat differs from another: exact repeats (a twin's) say nothing about an error.
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
    difference, error = means[0] - means[1], sum(errors)
    if error < 1e-24:  # rounding of equal logarithms, far below any clock's resolution
        return None
    freedom = error**2 / sum(e**2 / f for e, f in zip(errors, freedoms, strict=True))
    margin = student_quantile(0.5 + confidence / 2, freedom) * math.sqrt(error)
    return math.exp(difference - margin), math.exp(difference + margin)


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


def student_quantile(probability: float, freedom: float) -> float:
    """Student's t below which a value lies with this probability; degrees need not be whole."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))

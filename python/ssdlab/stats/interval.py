"""Intervals: what a few repeats say about a ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence


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
    margin = _student_quantile(0.5 + confidence / 2, freedom) * math.sqrt(error)
    return math.exp(difference - margin), math.exp(difference + margin)


def _student_quantile(probability: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))

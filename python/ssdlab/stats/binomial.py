"""Confidence bounds of a failure rate from a number of failures and trials."""

from __future__ import annotations

import math


def proportion_bounds(failures: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided bounds of a proportion (C. J. Clopper, E. S. Pearson, Biometrika 1934)."""
    _check(failures, trials, confidence)
    tail = (1 - confidence) / 2
    return _lower(failures, trials, tail), _upper(failures, trials, tail)


def proportion_upper_bound(failures: int, trials: int, confidence: float = 0.95) -> float:
    """The exact one-sided upper bound of a proportion; 1 if `trials` is 0.

    For 0 failures it is 1 - (1 - confidence) ** (1 / trials), at 95 % about 3 / trials (rule of
    three).
    """
    _check(failures, trials, confidence)
    return _upper(failures, trials, 1 - confidence)


def trials_needed(proportion: float, confidence: float = 0.95) -> int:
    """Trials without a failure that make `proportion` the upper bound."""
    assert 0 < proportion < 1, f"a proportion of {proportion}"
    return math.ceil(math.log(1 - confidence) / math.log1p(-proportion))


def _lower(failures: int, trials: int, tail: float) -> float:
    from scipy.special import betaincinv

    return 0.0 if failures == 0 else float(betaincinv(failures, trials - failures + 1, tail))


def _upper(failures: int, trials: int, tail: float) -> float:
    from scipy.special import betaincinv

    if failures == trials:
        return 1.0
    return float(betaincinv(failures + 1, trials - failures, 1 - tail))


def _check(failures: int, trials: int, confidence: float) -> None:
    assert 0 <= failures <= trials, f"{failures} failures in {trials} trials"
    assert 0 < confidence < 1, f"a confidence of {confidence}"

"""Main effects: how much of a result's variance each parameter explains (Sobol's first order).

The share is the variance of the means at a parameter's levels over that of all runs (I. M. Sobol,
Mathematical Modelling and Computational Experiments 1993), less the part expected by chance
(epsilon squared: T. L. Kelley, Proc. Nat. Acad. Sciences 1935). Logarithms are used because effects
on rates are factors. A parameter with many values is divided into five bins of equal count.
Interactions between parameters are in no share: they, and chance, are what is missing to 100 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LEVELS_MAX: Final = 12
"""A numeric parameter with more values than this is divided into bins."""
BINS: Final = 5
RESAMPLES: Final = 400
RUNS_MIN: Final = 6

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Effect:
    """A parameter's share of a result's variance, with its 95 % interval.

    `levels` are the parameter's values, or the medians of its bins, each with the geometric mean of
    the result there.
    """

    number: str
    key: str
    share: float
    low: float
    high: float
    levels: tuple[tuple[Any, float], ...]


def effects(
    rows: Sequence[Mapping[str, Any]], keys: Mapping[str, bool], numbers: Sequence[str]
) -> list[Effect]:
    """The effect of each key (True: numeric) on each result, from the rows of finished runs.

    A result is skipped if it is constant, or missing or not positive in some row.
    """
    if len(rows) < RUNS_MIN:
        return []
    points = np.array([row["point"] for row in rows])
    found = []
    for number in numbers:
        values = [row[number] for row in rows]
        if not all(value is not None and value > 0 for value in values):
            continue
        y = np.log(np.asarray(values, dtype=np.float64))
        if y.std() < 1e-9:
            continue
        for key, numeric in keys.items():
            labels, level = _levels([row[key] for row in rows], numeric=numeric)
            if len(labels) > 1:
                share, (low, high) = _share(y, level), _interval(y, level, points)
                means = [float(np.exp(y[level == at].mean())) for at in range(len(labels))]
                bounds = min(low, share), max(high, share)
                pairs = tuple(zip(labels, means, strict=True))
                found.append(Effect(number, key, share, *bounds, pairs))
    return found


def _levels(values: Sequence[Any], *, numeric: bool) -> tuple[list[Any], Indices]:
    """The levels' labels, and the index of each value's level."""
    distinct = sorted(set(values))
    if not numeric or len(distinct) <= LEVELS_MAX:
        return distinct, np.array([distinct.index(value) for value in values])
    x = np.asarray(values, dtype=np.float64)
    level = np.argsort(np.argsort(x, kind="stable"), kind="stable") * BINS // len(x)
    return [float(np.median(x[level == at])) for at in range(BINS)], level


def _share(y: Floats, level: Indices) -> float:
    """Epsilon squared."""
    total = float(np.sum((y - y.mean()) ** 2))
    counts = np.bincount(level)
    means = np.bincount(level, y) / np.maximum(counts, 1)
    within = float(np.sum((y - means[level]) ** 2))
    groups = int(np.count_nonzero(counts))
    if total <= 0 or len(y) <= groups:
        return 0.0
    chance = (groups - 1) * within / (len(y) - groups)
    return max(0.0, (total - within - chance) / total)


def _interval(y: Floats, level: Indices, points: Indices) -> tuple[float, float]:
    """95 % bootstrap interval over points, each with all its repeats; the seed is fixed."""
    generator = np.random.default_rng(0)
    distinct = np.unique(points)
    members = [np.flatnonzero(points == point) for point in distinct]
    shares = []
    for _ in range(RESAMPLES):
        chosen = generator.integers(len(distinct), size=len(distinct))
        rows = np.concatenate([members[at] for at in chosen])
        shares.append(_share(y[rows], level[rows]))
    low, high = np.quantile(shares, [0.025, 0.975])
    return float(low), float(high)

"""How much of each number each parameter decides: main effects, as Sobol's first-order shares.

The share is the variance of the means at a parameter's levels over that of all runs (I. M. Sobol,
Mathematical Modelling and Computational Experiments 1993), less what chance would give those means
(epsilon squared: T. L. Kelley, Proc. Nat. Acad. Sciences 1935), on logarithms, for what is done to
a rate is a factor. A parameter of many values counts by five bins of equally many. What several
parameters do only together is in no share: what is missing to 100 % is that, and chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LEVELS_MOST: Final = 12
BINS: Final = 5
RESAMPLES: Final = 400
FEWEST: Final = 6

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Effect:
    """A parameter's share of a number's variance with its 95 % interval, and means by level.

    `levels` are the parameter's values, or the middles of its bins, with the number's geometric
    mean there.
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
    """The effects of all keys (True: a number) on all numbers that vary; rows of runs done.

    None of a number that some row does not have above zero.
    """
    if len(rows) < FEWEST:
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
                found.append(_effect((number, key), (y, level, points), labels))
    return found


def _effect(
    named: tuple[str, str], sample: tuple[Numbers, Places, Places], labels: Sequence[Any]
) -> Effect:
    y, level, points = sample
    low, high = _bounds(y, level, points)
    share = _share(y, level)
    means = [float(np.exp(y[level == at].mean())) for at in range(len(labels))]
    shown = tuple(zip(labels, means, strict=True))
    return Effect(*named, share, min(low, share), max(high, share), shown)


def _levels(values: Sequence[Any], *, numeric: bool) -> tuple[list[Any], Places]:
    distinct = sorted(set(values))
    if not numeric or len(distinct) <= LEVELS_MOST:
        return distinct, np.array([distinct.index(value) for value in values])
    x = np.asarray(values, dtype=np.float64)
    level = np.argsort(np.argsort(x, kind="stable"), kind="stable") * BINS // len(x)
    return [float(np.median(x[level == at])) for at in range(BINS)], level


def _share(y: Numbers, level: Places) -> float:
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


def _bounds(y: Numbers, level: Places, points: Places) -> tuple[float, float]:
    """By resampling points, each with all of its repeats; the seed is fixed."""
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

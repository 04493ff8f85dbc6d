"""Change points: whether and where the level of a short, noisy, correlated series changes.

*Whether* is decided by the self-normalised CUSUM of Shao and Zhang (JASA 2010). In a window of m
points split after the k-th, with S the cumulative sum of deviations from the window's mean,

    G(k) = m S(k)^2 / (L(k) + R(k))

where L and R are the sums of squares of the cumulative sums in the two parts, each minus its own
straight line. The scale of the noise and, in long series, its autocorrelation cancel, so no
variance is estimated across a step. In short series the autocorrelation does not cancel fully, so
the p-value is taken from the same statistic of simulated AR(1) noise of the same length. Its lag-1
correlation is estimated from differences: a step affects only the one difference across it.

Windows are the whole series, overlapping halves, quarters and eighths (seeded binary segmentation:
Kovacs, Li, Buehlmann, Munk, Biometrika 2023), so that one change does not hide another. Of the
significant windows the narrowest is used first (Baranowski, Chen, Fryzlewicz, JRSS B 2019).
*Where* is the least-squares split between the neighbouring change points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssdlab.stats.interval import student_quantile

Numbers = NDArray[np.float64]

FEWEST_POINTS: Final = 30
_MIN_WIDTH: Final = 24  # points; in narrower windows the tail of G is too heavy
_WIDTHS: Final = 4  # whole, halves, quarters, eighths
_NULL_SERIES: Final = 1999  # p-values down to 1 in 2000
_NULL_SEED: Final = 20100  # fixed, so that a p-value depends on the series only
_RHO_STEP: Final = 0.05
_RHO_MAX: Final = 0.95
# Relative rounding error: a twin's constant rates differ only in the last bits.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class ChangePoint:
    """One change of level.

    `at` is the index of the first point of the new level. `before` and `after` are the means since
    the previous and until the next change point; `step` is their difference, `low` to `high` its
    interval for this location. `p_value` is corrected for the choice among all windows.
    """

    at: int
    before: float
    after: float
    step: float
    low: float
    high: float
    p_value: float


class _Window(NamedTuple):
    start: int
    stop: int
    p_value: float


def change_points(
    series: Sequence[float] | Numbers, significance: float = 0.01, confidence: float = 0.95
) -> tuple[ChangePoint, ...]:
    """The significant changes of level of a series, in order.

    `series` has at least `FEWEST_POINTS` finite numbers at equal distances (in bytes or seconds).
    Changes closer than an eighth of the series (or 24 points) are merged. A linear trend is not a
    change: its G is 30 for any slope, below the 1 % level for any length.
    """
    x = np.asarray(series, dtype=np.float64)
    assert x.ndim == 1, f"{x.ndim} dimensions: a series has one"
    assert len(x) >= FEWEST_POINTS, f"{len(x)} points: {FEWEST_POINTS} are needed"
    assert np.isfinite(x).all(), "a series must be finite"
    spread = float(np.ptp(x))
    if spread <= _ROUNDING * float(np.abs(x).max()):
        return ()
    scaled = (x - x.mean()) / spread
    rho = lag1_correlation(scaled)
    windows = _narrowest_first(_significant(scaled, rho, significance))
    return _describe(x, _locate(scaled, windows), rho, confidence)


def lag1_correlation(series: Numbers) -> float:
    """Lag-1 correlation of the noise around a piecewise constant level, from 0 to 0.95.

    For AR(1) the mean square of x[t+2] - x[t] is (1 + rho) times that of x[t+1] - x[t]. The largest
    fifth of both is omitted, which removes a few steps, dips and outliers. One standard error of
    the estimate, about 1 / sqrt(n), is added, since underestimating the correlation causes false
    alarms. Negative correlation counts as 0.
    """
    one, two = (_trimmed_square(series[lag:] - series[:-lag]) for lag in (1, 2))
    if one <= (_ROUNDING * float(np.ptp(series))) ** 2:
        return 0.0
    return min(max(two / one - 1 + 1 / math.sqrt(len(series)), 0.0), _RHO_MAX)


def _trimmed_square(differences: Numbers) -> float:
    return float(np.sort(differences**2)[: math.ceil(0.8 * len(differences))].mean())


def _significant(x: Numbers, rho: float, significance: float) -> list[_Window]:
    widths = _widths(len(x))
    null = _null_maxima(len(x), math.ceil(rho / _RHO_STEP - 1e-9))
    windows = []
    for width, maxima in zip(widths, null, strict=True):
        for start in _starts(len(x), width):
            statistic = _max_g(x[None, start : start + width])[0]
            exceeded = len(maxima) - int(np.searchsorted(maxima, statistic))
            # Bonferroni over the widths; the table already allows for all windows of one width.
            p_value = min(1.0, len(widths) * (1 + exceeded) / (1 + len(maxima)))
            if p_value <= significance:
                windows.append(_Window(start, start + width, p_value))
    return windows


def _widths(count: int) -> list[int]:
    halved = [count >> depth for depth in range(_WIDTHS)]
    return [width for width in halved if width >= _MIN_WIDTH or width == count]


def _starts(count: int, width: int) -> list[int]:
    """Starts of windows that overlap by half; the last one ends with the series."""
    steps = max(1, round(2 * (count - width) / width)) if width < count else 0
    return [round(step * (count - width) / max(1, steps)) for step in range(steps + 1)]


def _max_g(rows: Numbers) -> Numbers:
    """The largest G(k) of each row; each part has at least four points and a tenth of all."""
    width = rows.shape[1]
    margin = max(4, width // 10)
    centred = rows - rows.mean(axis=1, keepdims=True)
    sums = np.cumsum(centred, axis=1)
    left = _bridge_squares(sums)
    right = _bridge_squares(np.cumsum(centred[:, ::-1], axis=1))[:, ::-1]
    # left[:, k-1] is for the first k points, right[:, k] for the others.
    within = left[:, :-1] + right[:, 1:]
    ratio = width * sums[:, :-1] ** 2 / np.maximum(within, _ROUNDING**2)
    return np.asarray(ratio[:, margin - 1 : width - margin].max(axis=1))


def _bridge_squares(sums: Numbers) -> Numbers:
    """For each k: the sum over t <= k of (S(t) - S(k) t/k)^2, from cumulative sums."""
    t = np.arange(1.0, sums.shape[1] + 1)
    slope = sums / t
    squares = np.cumsum(sums**2, axis=1) - 2 * slope * np.cumsum(t * sums, axis=1)
    return np.asarray(np.maximum(squares + slope**2 * np.cumsum(t**2), 0.0))


@lru_cache(maxsize=64)
def _null_maxima(count: int, rho_steps: int) -> tuple[Numbers, ...]:
    """For each width, the sorted maxima of G over its windows, for AR(1) noise without change."""
    noise = ar1_noise(np.random.default_rng(_NULL_SEED), (_NULL_SERIES, count), rho_steps / 20)
    return tuple(
        np.sort(
            np.max(
                [_max_g(noise[:, start : start + width]) for start in _starts(count, width)],
                axis=0,
            )
        )
        for width in _widths(count)
    )


def ar1_noise(generator: np.random.Generator, shape: tuple[int, int], rho: float) -> Numbers:
    """Rows of stationary Gaussian AR(1) noise of unit variance: x[t] = rho x[t-1] + e[t]."""
    noise = generator.standard_normal(shape)
    innovation = math.sqrt(1 - rho**2)
    for t in range(1, shape[1]):
        noise[:, t] = rho * noise[:, t - 1] + innovation * noise[:, t]
    return noise


def _narrowest_first(windows: list[_Window]) -> list[_Window]:
    """Disjoint windows, each the narrowest significant window of its change."""
    kept: list[_Window] = []
    for window in sorted(windows, key=lambda w: (w.stop - w.start, w.p_value, w.start)):
        if all(window.stop <= other.start or other.stop <= window.start for other in kept):
            kept.append(window)
    return sorted(kept, key=lambda w: w.start)


def _locate(x: Numbers, windows: list[_Window]) -> list[tuple[int, float]]:
    """Location and p-value of each change: first within its window, then between its neighbours."""
    edges = [0, *(w.start + _best_split(x[w.start : w.stop]) for w in windows), len(x)]
    for number in range(1, len(edges) - 1):
        start, stop = edges[number - 1], edges[number + 1]
        edges[number] = start + _best_split(x[start:stop])
    return [(at, w.p_value) for at, w in zip(edges[1:-1], windows, strict=True)]


def _best_split(x: Numbers) -> int:
    """The number of points before the least-squares split; at least two on each side."""
    k = np.arange(1, len(x))
    sums = np.cumsum(x - x.mean())[:-1]
    gain = sums**2 / (k * (len(x) - k))
    return 2 + int(np.argmax(gain[1:-1]))


def _describe(
    x: Numbers, locations: list[tuple[int, float]], rho: float, confidence: float
) -> tuple[ChangePoint, ...]:
    if not locations:
        return ()
    edges = [0, *(at for at, _ in locations), len(x)]
    parts = [x[start:stop] for start, stop in pairwise(edges)]
    freedom = max(1.0, sum(map(len, parts)) * (1 - rho) / (1 + rho) - len(parts))
    margin = student_quantile(0.5 + confidence / 2, freedom)
    return tuple(_changes(parts, locations, rho, margin))


def _changes(
    parts: list[Numbers], locations: list[tuple[int, float]], rho: float, margin: float
) -> Iterator[ChangePoint]:
    """Each change with the interval of its step.

    n points of AR(1) noise count as n (1 - rho) / (1 + rho) independent ones, which gives the
    variance of their mean to first order.
    """
    independent = (1 - rho) / (1 + rho)
    squares = [float(np.sum((part - part.mean()) ** 2)) for part in parts]
    counts = [max(1.0, len(part) * independent) for part in parts]
    for number, (at, p_value) in enumerate(locations):
        left, right = number, number + 1
        points = len(parts[left]) + len(parts[right])
        variance = (squares[left] + squares[right]) / max(1.0, points * independent - 2)
        variance *= independent  # the squares were summed over all points
        error = math.sqrt(variance * (1 / counts[left] + 1 / counts[right]))
        before, after = float(parts[left].mean()), float(parts[right].mean())
        step = after - before
        yield ChangePoint(
            at, before, after, step, step - margin * error, step + margin * error, p_value
        )

"""Quantiles of a histogram: the value, its interval, and how many samples it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

# More samples than this must lie beyond a quantile. With eleven, their number scatters by 30 %.
_BEYOND: Final = 10


class Bounds(NamedTuple):
    """The interval of a quantile; None where no sample bounds it."""

    low: float | None
    high: float | None


class Percentiles(NamedTuple):
    """The percentiles that are told of a latency; None where too few samples support one."""

    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None  # 99.9 %
    p9999: float | None  # 99.99 %


_SHARES: Final = (0.5, 0.9, 0.99, 0.999, 0.9999)


def percentiles(
    values: Sequence[float] | NDArray[np.float64], counts: Sequence[int] | NDArray[np.int64]
) -> Percentiles:
    """The percentiles of a histogram, as `quantile` takes it or without any sample.

    A percentile beyond which there are not more than ten samples is None, not the largest value:
    see `quantile_supported`. In the unit of the values.
    """
    count = int(np.sum(counts, dtype=np.int64))
    return Percentiles(
        *(
            quantile(values, counts, share) if quantile_supported(count, share) else None
            for share in _SHARES
        )
    )


def quantile(
    values: Sequence[float] | NDArray[np.float64],
    counts: Sequence[int] | NDArray[np.int64],
    q: float,
) -> float:
    """The least value that at least the share `q` of all samples does not exceed.

    `values` ascend, `counts[i]` samples have the value `values[i]` (in an HDR histogram the upper
    end of a bucket: three digits, so up to 0.1 % too high). This is the nearest-rank definition, a
    value that was measured; q from 0 (the least) to 1 (the largest). At least one sample.
    """
    total = np.cumsum(_checked(values, counts))
    return _at_rank(values, total, _rank(int(total[-1]), q))


def quantile_supported(count: int, q: float) -> bool:
    """Whether `count` samples say something of this quantile: more than ten lie beyond it.

    Beyond is above for q of a half or more, else below: p99.99 takes 110 000 samples.
    """
    assert count >= 0, f"{count} samples"
    if not count:
        return False
    rank = _rank(count, q)
    return min(count - rank, rank - 1) > _BEYOND if 0 < q < 1 else True


def samples_needed(q: float) -> int:
    """The least count from which `quantile_supported` holds, for q between 0 and 1."""
    assert 0 < q < 1, f"an extreme ({q}) is supported by any sample"
    share = Fraction(repr(float(q)))
    # count - ceil(q count) and ceil(q count) - 1 grow with count, by steps of one.
    above = math.ceil((_BEYOND + 1) / (1 - share))
    below = math.floor((_BEYOND + 1) / share) + 1
    return max(above, below)


def quantile_interval(
    values: Sequence[float] | NDArray[np.float64],
    counts: Sequence[int] | NDArray[np.int64],
    q: float,
    confidence: float = 0.95,
) -> Bounds:
    """Bounds of the quantile of what the samples are drawn from, by order statistics.

    How many of n samples lie below the true quantile is binomial (n, q), whatever the distribution
    (W. R. Thompson, Annals of Mathematical Statistics 1936). A bound is None where n is too small
    for one. It holds for independent samples: of one run, whose requests wait for one another, the
    truth lies farther off; compare runs for that.
    """
    from scipy.stats import binom

    assert 0 < q < 1, f"an extreme ({q}) has no interval"
    total = np.cumsum(_checked(values, counts))
    count, tail = int(total[-1]), (1 - confidence) / 2
    low, high = int(binom.ppf(tail, count, q)), int(binom.ppf(1 - tail, count, q)) + 1
    return Bounds(
        _at_rank(values, total, low) if low >= 1 else None,
        _at_rank(values, total, high) if high <= count else None,
    )


def _checked(
    values: Sequence[float] | NDArray[np.float64], counts: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.int64]:
    amounts = np.asarray(counts, dtype=np.int64)
    assert len(values) == len(amounts), "a count for each value"
    assert (np.diff(np.asarray(values)) > 0).all(), "values ascend"
    assert (amounts >= 0).all(), "counts are not negative"
    assert amounts.sum() > 0, "no samples have no quantile"
    return amounts


def _at_rank(
    values: Sequence[float] | NDArray[np.float64], total: NDArray[np.int64], rank: int
) -> float:
    return float(values[int(np.searchsorted(total, rank))])


def _rank(count: int, q: float) -> int:
    """The sample, from 1, that is the quantile. Exact: as floats 0.9999 x 110000 is off by one."""
    assert 0 <= q <= 1, f"a share of {q}"
    return max(1, math.ceil(Fraction(repr(float(q))) * count))

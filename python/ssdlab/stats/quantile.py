"""Quantiles of a histogram, and the number of samples that they need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

# More samples than this must lie beyond a quantile. If 11 do, that number varies by 30 %.
_BEYOND: Final = 10


class Percentiles(NamedTuple):
    """The reported latency percentiles; None with too few samples."""

    p50: float | None
    p90: float | None
    p99: float | None
    p999: float | None  # 99.9 %
    p9999: float | None  # 99.99 %


_SHARES: Final = (0.5, 0.9, 0.99, 0.999, 0.9999)


def percentiles(
    values: Sequence[float] | NDArray[np.float64], counts: Sequence[int] | NDArray[np.int64]
) -> Percentiles:
    """The percentiles of a histogram (see `quantile`; may be empty), in the unit of the values.

    A percentile with ten or fewer samples beyond it is None (`quantile_supported`).
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
    """The quantile `q` by nearest rank: the smallest value with a fraction >= q of samples <= it.

    `counts[i]` samples have the value `values[i]`; `values` ascend. In an HDR histogram a value is
    the upper bound of a bucket with three digits, so up to 0.1 % too high. `q` is from 0 (the
    smallest value) to 1 (the largest). At least one sample.
    """
    total = np.cumsum(_check_counts(values, counts))
    return _at_rank(values, total, _rank(int(total[-1]), q))


def quantile_supported(count: int, q: float) -> bool:
    """Whether `count` samples are enough for this quantile: more than ten on each side of it.

    p99.99 needs 110 000 samples. The minimum (0) and maximum (1) need one.
    """
    assert count >= 0, f"{count} samples"
    if not count:
        return False
    rank = _rank(count, q)
    return min(count - rank, rank - 1) > _BEYOND if 0 < q < 1 else True


def samples_needed(q: float) -> int:
    """The smallest count for which `quantile_supported` is true, for q between 0 and 1."""
    assert 0 < q < 1, f"q = {q}: the minimum and maximum need one sample"
    share = Fraction(repr(float(q)))
    # count - ceil(q count) and ceil(q count) - 1 grow with count, in steps of one.
    above = math.ceil((_BEYOND + 1) / (1 - share))
    below = math.floor((_BEYOND + 1) / share) + 1
    return max(above, below)


def _check_counts(
    values: Sequence[float] | NDArray[np.float64], counts: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.int64]:
    amounts = np.asarray(counts, dtype=np.int64)
    assert len(values) == len(amounts), "values and counts must have equal lengths"
    assert (np.diff(np.asarray(values)) > 0).all(), "values must ascend"
    assert (amounts >= 0).all(), "counts must not be negative"
    assert amounts.sum() > 0, "a quantile needs at least one sample"
    return amounts


def _at_rank(
    values: Sequence[float] | NDArray[np.float64], total: NDArray[np.int64], rank: int
) -> float:
    return float(values[int(np.searchsorted(total, rank))])


def _rank(count: int, q: float) -> int:
    """The rank, from 1, of the quantile. Exact: in floats, 0.9999 x 110000 is off by one."""
    assert 0 <= q <= 1, f"q = {q}"
    return max(1, math.ceil(Fraction(repr(float(q))) * count))

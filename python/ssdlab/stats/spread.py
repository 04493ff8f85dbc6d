"""Mean and spread of repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


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


def _column(values: Sequence[float] | Numbers) -> Numbers:
    x = np.asarray(values, dtype=np.float64)
    assert x.ndim == 1, f"{x.ndim} dimensions: a column has one"
    assert len(x) >= 1, "at least one value is needed"
    assert np.isfinite(x).all(), "values must be finite"
    return x

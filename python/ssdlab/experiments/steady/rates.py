"""Rates of a curve: between two positions, where it has settled, and the fastest one."""

from __future__ import annotations

from typing import Final

import numpy as np

from ssdlab.stats.rate_drops import last_drop
from ssdlab.stats.steady import Progress

SAME: Final = 1.2
"""Rates or sizes that differ by a smaller factor count as the same."""
FACTORS: Final = (2, 4, 8)
"""Larger random writes in steady state, as multiples of the rounds' block size."""
_SLICES: Final = 20
_HALVINGS: Final = 14
_SETTLED: Final = (0.15, 0.05)  # of a gauge
_FALLING: Final = 0.7


def same(one: float, other: float, factor: float = SAME) -> bool:
    """Whether two positive numbers differ by a factor below `factor`."""
    return other > 0 and 1 / factor < one / other < factor


def rate_between(curve: Progress, start: float, stop: float) -> float:
    """The mean rate between two positions."""
    return (stop - start) / float(curve.between(start, stop, 1)[0])


def settled(curve: Progress) -> float:
    """The fastest rate of some length after the last fall in the first half.

    If the rate keeps falling, the drive chooses victims at random and begins to collect new data:
    then a shorter length shows what is left of the first rate.
    """
    if not curve.written:
        return 0.0
    drop = last_drop(curve, curve.written / 2)
    start = 0.02 * curve.written if drop is None else 1.1 * drop.at
    long, short = (
        [
            rate_between(curve, float(at), float(at) + share * curve.written)
            for at in np.arange(start, (0.9 - share) * curve.written, share / 4 * curve.written)
        ]
        for share in _SETTLED
    )
    return max(short) if min(long) < _FALLING * max(long) else max(long)


def fastest_of(curve: Progress) -> float:
    """The fastest rate of a curve: from its start on, or in a twentieth of it but the last."""
    if not curve.written:
        return 0.0
    slices = curve.between(0.0, curve.written, _SLICES)[:-1]
    starts = [curve.written / 2**power for power in range(1, _HALVINGS)]
    rates = [start / float(curve.between(0.0, start, 1)[0] + curve.first_s) for start in starts]
    return float(max(*rates, curve.written / _SLICES / float(slices.min())))

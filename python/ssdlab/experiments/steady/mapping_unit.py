"""The mapping unit, by what random writes of one, two, four and eight blocks cost.

A block smaller than the unit takes up a whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.experiments.steady.rates import rate_between
from ssdlab.stats.steady import Progress

UNIT: Final = (
    "the rates of large writes, of writes in order and of writes at random do not show how many "
    "mapping units a write takes up"
)
"""Why something is not known if the mapping unit is not."""
UNITS: Final = (1, 2, 4, 8, 16)
"""Mapping unit / block size, if the unit is larger."""
TWICE: Final = 1.7
"""Gain of a block of twice the size, at least, within a mapping unit."""
_ONCE: Final = 1.3  # the same beyond it, at most
_FILLED: Final = 0.2  # of larger writes: from there on their rate counts
_GAIN: Final = 0.35
_COST: Final = 0.4
"""Standard deviations of the binary logarithms of a gain and of a cost, on random drives."""
_MOST: Final = 0.8  # of such a deviation: one gauge alone does not decide
_CLEAR: Final = 3.0  # by this much less chi-squared than the next one
_LOOKUPS: Final = np.geomspace(0.05, 40.0, 61)
"""The cost of a look-up in a map in flash / that of programming a block, in steady state."""


def rate_of_larger(curve: Progress) -> float:
    """The rate of random writes of larger blocks, once they follow others of their size."""
    return rate_between(curve, _FILLED * curve.written, curve.written)


def unit_by_size(steady: float, curves: Sequence[Progress]) -> int | None:
    """Mapping unit / block size, by the rates of random writes in steady state; None if unclear.

    `steady` is the rate in blocks, `curves` are those of 2, 4 and 8 times the size. In bytes, a
    block of twice the size is twice as fast up to the mapping unit, and about as fast from there
    on. What costs as much for each request, as a map does, makes all larger blocks faster.
    """
    if not steady or not all(curve.written for curve in curves):
        return None
    rates = [steady, *map(rate_of_larger, curves)]
    gains = [larger / smaller for smaller, larger in pairwise(rates)]
    for doubled in range(len(gains)):
        within, beyond = gains[:doubled], gains[doubled:]
        if all(gain > TWICE for gain in within) and all(gain < _ONCE for gain in beyond):
            return UNITS[doubled]
    return None


def likeliest_unit(
    rates: Sequence[float], costs: Sequence[float], large: int, *, misses_map: bool
) -> int | None:
    """Mapping unit / block size that explains all these rates; None if another one does, too.

    `rates` are those of random writes of 1, 2, 4 and 8 blocks in steady state. `costs` holds, for
    each of `UNITS`, what a byte of the first costs relative to random writes of `large` blocks. A
    request costs programs of whole units, and if the map misses, a look-up of any duration.
    """
    gains = np.log2(rates[1:]) - np.log2(rates[:-1])
    lookups = np.concatenate(([0.0], _LOOKUPS)) if misses_map else np.zeros(1)
    found = []
    for unit, cost in zip(UNITS, np.log2(costs), strict=True):
        of_size = [
            np.log2((lookups + max(unit, blocks)) / blocks) for blocks in (1, 2, 4, 8, large)
        ]
        squares = np.square(_deviation(cost - of_size[0] + of_size[-1], _COST))
        for gain, (smaller, larger) in zip(gains, pairwise(of_size[:-1]), strict=True):
            squares += np.square(_deviation(gain - smaller + larger, _GAIN))
        found.append((float(squares.min()), unit))
    (least, unit), (second, _), *_ = sorted(found)
    return unit if second - least > _CLEAR else None


def _deviation(value: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    return np.clip(value, -_MOST, _MOST) / sigma

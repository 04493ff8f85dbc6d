"""The mapping unit, by what writes of one, two, four and eight blocks cost.

A block smaller than the unit takes up a whole one. Written in order, it does not, if the drive
merges writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.experiments.steady.rates import rate_between
from ssdlab.stats.steady import Progress

UNIT: Final = (
    "the rates of writes of several sizes do not show how many mapping units a write takes up"
)
"""Why something is not known if the mapping unit is not."""
UNITS: Final = (1, 2, 4, 8, 16)
"""Mapping unit / block size, if the unit is larger."""
_SIZES: Final = (1, 2, 4, 8)
_FILLED: Final = 0.2  # of larger writes: from there on their rate counts
_PARTS: Final = 8  # of the rest, whose rates show how uncertain the mean one is
_SCATTER: Final = 0.7  # of the standard error by these: a slow part may follow a fast one
_STEADY: Final = 0.03
_GAIN: Final = 0.15
_COST: Final = 0.3
_ORDERED: Final = 0.15
"""Standard deviations of the binary logarithms of the steady rate, of a gain in rate if the
parts are equal, of a cost at random and of one in order, on random drives."""
_MOST: Final = 3.0  # of these deviations: one rate alone does not decide
_CLEAR: Final = 3.0  # by this much less chi-squared than the next one
_LOOKUPS: Final = np.geomspace(0.05, 40.0, 61)
"""The cost of a look-up in a map in flash / that of programming a block, in steady state."""
_REST: Final = (0.0, 0.25, 0.5, 1.0)
"""The cost of reading the rest of a unit / that of programming a unit."""


def likeliest_unit(
    steady: float,
    curves: Sequence[Progress],
    costs: Sequence[float],
    ordered: float | None,
    large: int,
    *,
    misses_map: bool,
) -> int | None:
    """Mapping unit / block size that explains all these rates; None if another one does, too.

    `steady` is the rate of random writes of one block, `curves` are those of 2, 4 and 8. `costs`
    holds, for each of `UNITS`, what a byte of the first costs relative to random writes of `large`
    blocks. `ordered` is what a byte of writes of one block in order costs relative to large ones;
    None if link or host may limit them. A request costs programs of whole units; a read, if it is a
    part of one; and if the map misses, a look-up of any duration.
    """
    rates = np.log2([steady, *map(_rate, curves)])
    errors = np.square([_STEADY, *map(_error, curves)])
    sigmas = [_COST, *np.sqrt(_GAIN**2 + errors[1:] + errors[:-1])]
    lookups = np.concatenate(([0.0], _LOOKUPS)) if misses_map else np.zeros(1)
    found = []
    for unit, cost in zip(UNITS, np.log2(costs), strict=True):
        least = math.inf
        for rest in _REST:
            of_size = [np.log2(each) for each in _costs(unit, rest, large, lookups)]
            measured = (cost, *np.diff(rates))
            expected = (of_size[0] - of_size[-1], *(a - b for a, b in pairwise(of_size[:-1])))
            squares = sum(map(_square, measured, expected, sigmas))
            least = min(least, float(np.min(squares)))
        if ordered is not None:
            merged, whole = (
                _square(math.log2(ordered), log, _ORDERED) for log in (0.0, math.log2(unit))
            )
            least += min(merged, whole)
        found.append((least, unit))
    (least, unit), (second, _), *_ = sorted(found)
    return unit if second - least > _CLEAR else None


def _square(measured: float, expected: NDArray[np.float64] | float, sigma: float) -> Any:
    """The square of a deviation in standard deviations, at most that of `_MOST`."""
    return np.square(np.clip((measured - expected) / sigma, -_MOST, _MOST))


def _costs(
    unit: int, rest: float, large: int, lookups: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """What a block costs in writes of each of `_SIZES` and of `large` blocks."""
    for blocks in (*_SIZES, large):
        reads = rest * unit if blocks < unit else 0.0
        yield (lookups + max(unit, blocks) + reads) / blocks


def _rate(curve: Progress) -> float:
    """The rate of random writes of larger blocks, once they follow others of their size."""
    return rate_between(curve, _FILLED * curve.written, curve.written)


def _error(curve: Progress) -> float:
    """The standard error of the binary logarithm of that rate."""
    seconds = curve.between(_FILLED * curve.written, curve.written, _PARTS)
    return _SCATTER * float(np.std(np.log2(seconds))) / math.sqrt(_PARTS)

"""Synthetic write traces of a drive, to test the steady-state rule.

All are of one drive: 400 GB in scope, 28 GB spare, 22 GB cache, 500 MB/s at first. The numbers are
round, so that they are easy to check: 450 GB are written in 900 s. A trace has the bytes written in
each second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Level = Callable[[float, float], float]

GB: Final = 10**9
MB: Final = 10**6
SCOPE, SPARE, CACHE = 400 * GB, 28 * GB, 22 * GB
FAST: Final = 500.0 * MB  # bytes/s of the fresh drive
HOUR: Final = 3600
DURATION: Final = 6 * HOUR


def trace(level: Level, noise: float = 0.05, seconds: int = DURATION, seed: int = 7) -> Numbers:
    """Bytes in each second at the rate `level(seconds, bytes)` of what has passed, plus noise.

    `noise` is the relative standard deviation of white noise; rates stay above 5 % of the level.
    """
    factors = 1 + noise * np.random.default_rng(seed).standard_normal(seconds)
    amounts, written = np.empty(seconds), 0.0
    for second, factor in enumerate(np.maximum(factors, 0.05)):
        amounts[second] = level(float(second), written) * factor
        written += amounts[second]
    return amounts


def steady(_second: float, _written: float) -> float:
    """A constant rate."""
    return FAST


def drift(second: float, _written: float) -> float:
    """Halves every hour without settling."""
    return FAST * float(0.5 ** (second / HOUR))


def cliff(second: float, _written: float) -> float:
    """A plateau of 900 s, then a drop to a fifth within minutes."""
    late = max(0.0, second - 900)
    return FAST * (0.2 + 0.8 * float(np.exp(-late / 60)))


def settling(_second: float, written: float) -> float:
    """Decays exponentially to a fifth; the constant is 300 GB written."""
    return FAST * (0.2 + 0.8 * float(np.exp(-written / (300 * GB))))


def valley(_second: float, written: float) -> float:
    """Falls for 1600 GB, recovers as fast, and then stays at its first rate."""
    return FAST * (0.8 + 0.2 * min(1.0, abs(written - 1600 * GB) / (1600 * GB)))


def sawtooth(period: float) -> Level:
    """Falls linearly to a half and jumps back, every `period` bytes written."""
    return lambda _second, written: FAST * (1 - written % period / period / 2)


def dips(second: float, _written: float) -> float:
    """One second in ten at 30 %."""
    return FAST * (0.3 if second % 10 == 9 else 1.0)


def two_levels(period: float) -> Level:
    """Alternates between the full and half the rate; a cycle is `period` bytes."""
    return lambda _second, written: FAST * (1.0 if written % period < period / 2 else 0.5)


def stopped_by_seconds(amounts: Sequence[float] | Numbers, window: int = 60) -> float | None:
    """The rate (bytes/s) of the first five time windows within SNIA's bounds; None if none are.

    `window` is in seconds.
    """
    count = len(amounts) // window
    rates = np.asarray(amounts)[: count * window].reshape(count, window).mean(axis=1)
    for stop in range(5, count + 1):
        five = rates[stop - 5 : stop]
        slope = abs(float(np.polyfit(np.arange(5), five, 1)[0])) * 4
        if np.ptp(five) <= 0.20 * five.mean() and slope <= 0.10 * five.mean():
            return float(five.mean())
    return None

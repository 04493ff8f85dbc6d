"""Made-up traces of a drive under a write load: what the rule of steadiness is held against.

All are of one drive: 400 GB in scope, 28 GB spare, 22 GB of cache, 500 MB/s at first. The figures
are round so that a reader can check them in the head: 450 GB are written in 900 s. Each is a
column of bytes, one number a second.
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
FAST: Final = 500.0 * MB  # bytes a second, before anything has happened
HOUR: Final = 3600
DURATION: Final = 6 * HOUR


def trace(level: Level, noise: float = 0.05, seconds: int = DURATION, seed: int = 7) -> Numbers:
    """Bytes in each second at `level(seconds so far, bytes so far)`, with white noise.

    `noise` is its standard deviation relative to the level; a twentieth of the level is the least.
    """
    factors = 1 + noise * np.random.default_rng(seed).standard_normal(seconds)
    amounts, written = np.empty(seconds), 0.0
    for second, factor in enumerate(np.maximum(factors, 0.05)):
        amounts[second] = level(float(second), written) * factor
        written += amounts[second]
    return amounts


def steady(_second: float, _written: float) -> float:
    """One level from the first byte on."""
    return FAST


def drift(second: float, _written: float) -> float:
    """Halves every hour and never settles."""
    return FAST * float(0.5 ** (second / HOUR))


def cliff(second: float, _written: float) -> float:
    """A plateau of 900 s, then, within a few minutes, a fifth of it."""
    late = max(0.0, second - 900)
    return FAST * (0.2 + 0.8 * float(np.exp(-late / 60)))


def settling(_second: float, written: float) -> float:
    """Comes down to a fifth by an exponential of the bytes written, 300 GB long."""
    return FAST * (0.2 + 0.8 * float(np.exp(-written / (300 * GB))))


def sawtooth(period: float) -> Level:
    """Falls to a half along a line in the bytes written, and jumps back, every `period` bytes."""
    return lambda _second, written: FAST * (1 - written % period / period / 2)


def dips(second: float, _written: float) -> float:
    """One second in ten at 30 %."""
    return FAST * (0.3 if second % 10 == 9 else 1.0)


def two_levels(period: float) -> Level:
    """All and a half of the speed take turns; both together are `period` bytes."""
    return lambda _second, written: FAST * (1.0 if written % period < period / 2 else 0.5)


def stopped_by_seconds(amounts: Sequence[float] | Numbers, window: int = 60) -> float | None:
    """What a rule by seconds reports: the first five windows with SNIA's bounds; None if none.

    `window` is in seconds; the answer in bytes a second.
    """
    count = len(amounts) // window
    rates = np.asarray(amounts)[: count * window].reshape(count, window).mean(axis=1)
    for stop in range(5, count + 1):
        five = rates[stop - 5 : stop]
        slope = abs(float(np.polyfit(np.arange(5), five, 1)[0])) * 4
        if np.ptp(five) <= 0.20 * five.mean() and slope <= 0.10 * five.mean():
            return float(five.mean())
    return None

"""Steady state: whether a drive under a write load has reached it, and its rate there.

Progress is measured in bytes written, since the state of a drive (cache, spare area, garbage
collection) depends on them and not on time. The conditions:

1. The window, the last five rounds of `round_bytes` each, begins after `floor_bytes`.
2. Excursion: the rates of its rounds differ by at most 20 % of their mean.
3. Slope: their least-squares line changes by at most 10 % of the mean from first to last.
4. Drift: the line through the last half of all bytes written changes by at most 4 % of the mean.
   This detects a slow decline that ends in a collapse later.
5. Change: levels between change points in that half, if any, differ by at most 5 % of the mean.
6. Turns: the rate of the window is within 5 % of that of the half. This detects levels that
   alternate too fast for condition 5 to separate, but last at least five rounds.
7. Bend: the parabola through the half bends by at most 5 % of the mean. This detects a rate that
   fell too far and is about to recover: its line is level.

Conditions 2 and 3 are those of the SNIA Performance Test Specification. If the window is longer
than the last half, the window is used. docs/models/steadiness.md shows a trace for each
condition, and the limits of any such rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.stats.changepoint import change_points
from ssdlab.stats.interval import mean_interval

Numbers = NDArray[np.float64]

WINDOW: Final = 5  # rounds
FLASH_ROUNDS: Final = 13
"""Rounds in which all flash is written, if the load writes a small region of a drive."""
EXCURSION: Final = 0.20
SLOPE: Final = 0.10
DRIFT: Final = 0.04
MATERIAL: Final = 0.05  # of the mean: the smallest relevant difference of levels
# The last half is cut into as many points as its intervals allow. There are only three choices,
# since each needs a table of p-values.
_POINTS: Final = (128, 64, 32)
_PARTS: Final = 8  # per round, for the interval of the mean


@dataclass(frozen=True)
class Rule:
    """Bytes written in each round, and bytes written before the first window."""

    round_bytes: int
    floor_bytes: int

    def __post_init__(self) -> None:
        """Checks the sizes; with `floor_bytes` 0 an initial plateau may pass as steady state."""
        assert self.round_bytes > 0, f"round_bytes is {self.round_bytes}"
        assert self.floor_bytes >= 0, f"floor_bytes is {self.floor_bytes}"

    @classmethod
    def of_drive(cls, scope: int, spare: int, cache: int) -> Rule:
        """The rule for `scope` (the region that the load writes), spare area and cache, in bytes.

        Writing as many bytes as all three together fills every flash block. The floor is twice
        that, so that the first pass is not in the last half. A window of five rounds rewrites the
        scope once, so that garbage collection has reached all of it.
        """
        return cls(max(1, scope // WINDOW), 2 * (scope + spare + cache))


@dataclass(frozen=True)
class Failure:
    """A violated condition: code for scripts, value, limit, sentence."""

    code: str  # rounds, floor, excursion, slope, resolution, drift, bend, change, turns
    value: float
    limit: float
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """Whether the state is steady, and the rates of the last five rounds (None if fewer).

    Rates are in bytes per second. `mean` is the window's bytes / seconds, which includes stalls;
    `low` to `high` is its 95 % interval; `cv` is the coefficient of variation of the rounds' rates.
    `from_round` is the first round of the window, from 0; None if not steady.
    """

    rounds: int
    from_round: int | None
    mean: float | None
    low: float | None
    high: float | None
    cv: float | None
    failures: tuple[Failure, ...]

    @property
    def steady(self) -> bool:
        """Whether all conditions hold."""
        return not self.failures

    def __str__(self) -> str:
        """One line: "steady from round 9", or "not attained: ..." with the violated conditions."""
        if self.steady:
            return f"steady from round {self.from_round}"
        return "not attained: " + "; ".join(failure.sentence for failure in self.failures)


class Progress:
    """Bytes written over time: cumulative sums of intervals, with linear interpolation."""

    def __init__(
        self, seconds: Sequence[float] | Numbers, written: Sequence[float] | Numbers
    ) -> None:
        """Takes the length of each interval in seconds (> 0) and the bytes written in it.

        The bytes of an interval may be 0 (a stall). Both columns have the same length.
        """
        lengths = np.asarray(seconds, dtype=np.float64)
        amounts = np.asarray(written, dtype=np.float64)
        assert lengths.shape == amounts.shape, "columns must have equal lengths"
        assert lengths.ndim == 1, f"{lengths.ndim} dimensions: a column has one"
        assert (lengths > 0).all(), "intervals must be longer than 0 s"
        assert (amounts >= 0).all(), "bytes must not be negative"
        self._seconds = np.concatenate(([0.0], np.cumsum(lengths)))
        self._bytes = np.concatenate(([0.0], np.cumsum(amounts)))

    @property
    def written(self) -> float:
        """Total bytes of all intervals."""
        return float(self._bytes[-1])

    @property
    def first_s(self) -> float:
        """Seconds of the first interval: the first bytes may have come later by as much."""
        return float(self._seconds[1]) if len(self._seconds) > 1 else 0.0

    def between(self, start: float, stop: float, parts: int) -> Numbers:
        """Seconds to write each of `parts` equal parts of the bytes from `start` to `stop`."""
        marks = np.linspace(start, stop, parts + 1)
        return np.diff(np.interp(marks, self._bytes, self._seconds))

    def intervals_between(self, start: float, stop: float) -> int:
        """The number of nonempty intervals that end between these bytes: the resolution there."""
        ends = np.unique(self._bytes[1:])
        return int(np.count_nonzero((ends > start) & (ends <= stop)))

    def coarse(self, interval_s: float) -> Progress:
        """The same progress in intervals of at least `interval_s`."""
        steps = np.floor(self._seconds[1:] / interval_s)
        last = np.append(np.diff(steps) > 0, True)  # of the intervals that end in the same step
        ends = np.flatnonzero(last) + 1
        return Progress(
            np.diff(self._seconds[ends], prepend=0.0), np.diff(self._bytes[ends], prepend=0.0)
        )

    def behind(self, rate: float, lag: float, start: float) -> float:
        """The bytes, `start` or more, at which `rate` would have written `lag` bytes more."""
        late = (rate * self._seconds > self._bytes + lag) & (self._bytes >= start)
        return float(self._bytes[np.argmax(late)]) if late.any() else self.written

    def first_stop(self, start: float, stop: float, least_s: float) -> float | None:
        """Bytes written before the first stop that is twice as long as all time before it.

        Only stops of `least_s` or more after more than `start` and at most `stop` bytes count. Each
        interval must end where the next bytes are written.
        """
        begun, written, lengths = self._seconds[:-1], self._bytes[1:], np.diff(self._seconds)
        long = (lengths > np.maximum(least_s, 2 * begun)) & (written > start) & (written <= stop)
        return float(written[np.argmax(long)]) if long.any() else None


def rounds_of(progress: Progress, round_bytes: int) -> Numbers:
    """Seconds of each complete round; intervals across a boundary are split in proportion."""
    complete = int(progress.written // round_bytes)
    return progress.between(0.0, float(complete * round_bytes), complete) if complete else _NONE


_NONE: Final = np.empty(0)


def evaluate(progress: Progress, rule: Rule) -> Verdict:
    """The verdict on all bytes written so far, without an incomplete last round.

    Intervals should be at most an eighth of a round. With fewer than 32 in the last half, change
    points cannot be detected, and the state counts as not attained.
    """
    seconds = rounds_of(progress, rule.round_bytes)
    count = len(seconds)
    if count < WINDOW:
        sentence = f"{count} rounds were measured, {WINDOW} are needed"
        few = Failure("rounds", count, WINDOW, sentence)
        return Verdict(count, None, None, None, None, None, (few,))
    rates = rule.round_bytes / seconds[-WINDOW:]
    start, stop = (float(n * rule.round_bytes) for n in (count - WINDOW, count))
    mean = (stop - start) / float(seconds[-WINDOW:].sum())
    failures = (
        *_floor(start, rule.floor_bytes),
        *_snia(rates),
        *_history(progress, start, mean),
    )
    parts = progress.between(start, stop, WINDOW * _PARTS)
    slowest, fastest = mean_interval(parts, _PARTS)[::-1]
    low, high = ((stop - start) / len(parts) / bound for bound in (slowest, fastest))
    cv = float(rates.std(ddof=1) / rates.mean())
    return Verdict(count, None if failures else count - WINDOW, mean, low, high, cv, failures)


def first_steady(
    seconds: Sequence[float] | Numbers, written: Sequence[float] | Numbers, rule: Rule
) -> Verdict:
    """The first steady verdict of a run, at which it would stop; else the last verdict."""
    monitor = SteadyMonitor(rule)
    verdict = monitor.verdict()
    for length, amount in zip(seconds, written, strict=True):
        if monitor.add(length, amount):
            verdict = monitor.verdict()
            if verdict.steady:
                break
    return verdict


class SteadyMonitor:
    """Evaluates a running load: add intervals, and get the verdict after each round."""

    def __init__(self, rule: Rule) -> None:
        """Starts without intervals."""
        self._rule = rule
        self._seconds: list[float] = []
        self._bytes: list[float] = []
        self._written = 0.0

    def add(self, seconds: float, written: float) -> bool:
        """Adds an interval with `written` bytes; returns whether it completes a round."""
        before = self._written // self._rule.round_bytes
        self._seconds.append(seconds)
        self._bytes.append(written)
        self._written += written
        return self._written // self._rule.round_bytes > before

    def verdict(self) -> Verdict:
        """The verdict on all intervals so far."""
        return evaluate(Progress(self._seconds, self._bytes), self._rule)


def _floor(start: float, floor: int) -> Iterator[Failure]:
    if start < floor:
        sentence = (
            f"the last {WINDOW} rounds begin after {_gigabytes(start)}, "
            f"but must begin after {_gigabytes(floor)}"
        )
        yield Failure("floor", start, floor, sentence)


def _snia(rates: Numbers) -> Iterator[Failure]:
    mean = float(rates.mean())
    excursion = float(np.ptp(rates)) / mean
    if excursion > EXCURSION:
        sentence = f"the last {WINDOW} rounds differ by {excursion:.1%} of their mean"
        yield Failure("excursion", excursion, EXCURSION, f"{sentence} (limit {EXCURSION:.0%})")
    slope = _line(rates)
    if slope > SLOPE:
        sentence = f"their linear fit changes by {slope:.1%} of the mean (limit {SLOPE:.0%})"
        yield Failure("slope", slope, SLOPE, sentence)


def _line(rates: Numbers) -> float:
    """Change of the least-squares line from first to last, relative to the mean."""
    t = np.arange(len(rates)) - (len(rates) - 1) / 2
    gradient = float(t @ rates) / float(t @ t)
    return abs(gradient) * (len(rates) - 1) / float(rates.mean())


def _bend(rates: Numbers) -> float:
    """The ends of the least-squares parabola less its middle, relative to the mean.

    A line does not bend: the parabola is fitted by the second Legendre polynomial.
    """
    x = np.linspace(-1.0, 1.0, len(rates))
    parabola = (3 * x**2 - 1) / 2
    parabola -= parabola.mean()
    return 1.5 * float(parabola @ rates) / float(parabola @ parabola) / float(rates.mean())


def _history(progress: Progress, window_start: float, mean: float) -> Iterator[Failure]:
    """The violations of conditions 4 to 7."""
    stop = progress.written
    start = min(stop / 2, window_start)
    intervals = progress.intervals_between(start, stop)
    points = next((n for n in _POINTS if n <= intervals), None)
    if points is None:
        sentence = f"the last half has {intervals} intervals: change points need {_POINTS[-1]}"
        yield Failure("resolution", intervals, _POINTS[-1], sentence)
        return
    size = (stop - start) / points
    rates = size / progress.between(start, stop, points)
    drift = _line(rates)
    if drift > DRIFT:
        sentence = f"the linear fit of the last half changes by {drift:.1%} of the mean"
        yield Failure("drift", drift, DRIFT, f"{sentence} (limit {DRIFT:.0%})")
    bend = _bend(rates)
    if abs(bend) > MATERIAL:
        place = "lower" if bend > 0 else "higher"
        sentence = (
            f"in the middle of the last half the rate was {abs(bend):.1%} {place} than at its ends"
        )
        yield Failure("bend", abs(bend), MATERIAL, f"{sentence} (limit {MATERIAL:.0%})")
    yield from _change(rates, start, size)
    deviation = mean / ((stop - start) / progress.between(start, stop, 1)[0]) - 1
    if abs(deviation) > MATERIAL:
        sentence = f"the last {WINDOW} rounds differ from the last half by {deviation:+.1%}"
        yield Failure("turns", abs(deviation), MATERIAL, f"{sentence} (limit {MATERIAL:.0%})")


def _change(rates: Numbers, start: float, size: float) -> Iterator[Failure]:
    changes = change_points(rates)
    levels = [change.before for change in changes] + [change.after for change in changes[-1:]]
    span = (max(levels) - min(levels)) / float(rates.mean()) if levels else 0.0
    if span > MATERIAL:
        largest = max(changes, key=lambda change: abs(change.step))
        sentence = (
            f"in the last half the rate changed by {largest.step / largest.before:+.0%} "
            f"after {_gigabytes(start + largest.at * size)} (p = {largest.p_value:.2g})"
        )
        yield Failure("change", span, MATERIAL, sentence)


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.4g} GB"

"""Steadiness: has a drive under a write load come to its lasting speed, and what is that speed?

Time is counted in bytes written, for what changes inside a drive (cache, spare, collection)
changes with them; by seconds, the faster a drive is the less of it a rule sees. The rule:

1. The window, the last five rounds of `round_bytes` each, begins after `floor_bytes`.
2. Excursion: the rounds' rates differ by at most 20 % of their mean.
3. Slope: their least-squares line changes by at most 10 % of the mean from first to last.
4. Drift: the line through the last half of everything written changes by at most 10 % too.
5. Change: levels between change points in that half, if any, differ by at most 5 % of the mean.
   (A line that changes by 10 % has halves that differ by 5 %.)
6. Turns: the window's rate is within 5 % of the half's. This is for levels that take turns so fast
   that 5 sees noise, and so slowly that five rounds lie in one.

2 and 3 are those of the SNIA Performance Test Specification. Where the window is longer than the
last half, the window is looked at. Which trace needs which condition, and what no rule can know:
docs/models/steadiness.md.
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
EXCURSION: Final = 0.20
SLOPE: Final = 0.10
MATERIAL: Final = 0.05  # of the mean, between levels
# Points that the last half is cut into, as many as its intervals allow: few sizes, so that the
# tables of p-values are made once.
_POINTS: Final = (128, 64, 32)
_PARTS: Final = 8  # of a round, for the interval of the mean


@dataclass(frozen=True)
class Rule:
    """What a verdict needs to know of the drive: bytes in a round, and bytes before any window."""

    round_bytes: int
    floor_bytes: int

    def __post_init__(self) -> None:
        """A round has bytes; the floor may be none (and then nothing guards a first plateau)."""
        assert self.round_bytes > 0, f"a round of {self.round_bytes} bytes"
        assert self.floor_bytes >= 0, f"a floor of {self.floor_bytes} bytes"

    @classmethod
    def of_drive(cls, scope: int, spare: int, cache: int) -> Rule:
        """The rule for bytes in scope (what the load writes to), spare area and write cache.

        By the time all three are written once, each flash block has been filled; the floor is
        twice that, so that the first pass is outside of the last half. A window of five rounds
        rewrites the scope once: collection has been everywhere in it.
        """
        return cls(max(1, scope // WINDOW), 2 * (scope + spare + cache))


@dataclass(frozen=True)
class Failure:
    """A condition that does not hold: a word for scripts, its number and limit, a sentence."""

    code: str  # rounds, floor, excursion, slope, resolution, drift, change, turns
    value: float
    limit: float
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """Steady or not, and the numbers of the last five rounds (None while there are fewer).

    Rates are bytes a second. `mean` is the window's bytes over its seconds, so a stall counts with
    all its time; `low` to `high` is its 95 % interval; `cv` is that of the rounds' rates.
    `from_round` is the number, from 0, of the first round of the window, None if not steady.
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
        """Whether every condition holds."""
        return not self.failures

    def __str__(self) -> str:
        """One line: "steady from round 9" or "not attained: ..." with what fails."""
        if self.steady:
            return f"steady from round {self.from_round}"
        return "not attained: " + "; ".join(failure.sentence for failure in self.failures)


class Progress:
    """Bytes written against seconds: running sums of intervals, straight lines in between."""

    def __init__(
        self, seconds: Sequence[float] | Numbers, written: Sequence[float] | Numbers
    ) -> None:
        """From equally long columns: length of each interval in seconds, and bytes written in it.

        An interval lasts more than no time; it may be without bytes (a stall).
        """
        lengths = np.asarray(seconds, dtype=np.float64)
        amounts = np.asarray(written, dtype=np.float64)
        assert lengths.shape == amounts.shape, "two columns of one length"
        assert lengths.ndim == 1, f"a column has one axis: {lengths.ndim}"
        assert (lengths > 0).all(), "an interval lasts more than no time"
        assert (amounts >= 0).all(), "bytes are not unwritten"
        self._seconds = np.concatenate(([0.0], np.cumsum(lengths)))
        self._bytes = np.concatenate(([0.0], np.cumsum(amounts)))

    @property
    def written(self) -> float:
        """Bytes, all intervals together."""
        return float(self._bytes[-1])

    def between(self, start: float, stop: float, parts: int) -> Numbers:
        """Seconds that each of `parts` equal shares of the bytes from `start` to `stop` took."""
        marks = np.linspace(start, stop, parts + 1)
        return np.diff(np.interp(marks, self._bytes, self._seconds))

    def intervals_between(self, start: float, stop: float) -> int:
        """How many intervals with bytes end inside these bytes: how fine they can be cut."""
        ends = np.unique(self._bytes[1:])
        return int(np.count_nonzero((ends > start) & (ends <= stop)))


def rounds_of(progress: Progress, round_bytes: int) -> Numbers:
    """Seconds of each complete round; an interval across an end is shared by its bytes."""
    complete = int(progress.written // round_bytes)
    return progress.between(0.0, float(complete * round_bytes), complete) if complete else _NONE


_NONE: Final = np.empty(0)


def judge(progress: Progress, rule: Rule) -> Verdict:
    """The verdict on everything written so far; an incomplete last round is in no window.

    For intervals of at most an eighth of a round; with fewer than 32 in the last half no change
    point can be looked for, and the state is not attained.
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
    """The verdict with which a run would have stopped; that on all of it if it would not have."""
    watch = Watch(rule)
    verdict = watch.verdict()
    for length, amount in zip(seconds, written, strict=True):
        if watch.add(length, amount):
            verdict = watch.verdict()
            if verdict.steady:
                break
    return verdict


class Watch:
    """Steadiness while measuring: add intervals; after each round ask for the verdict."""

    def __init__(self, rule: Rule) -> None:
        """Nothing written yet."""
        self._rule = rule
        self._seconds: list[float] = []
        self._bytes: list[float] = []
        self._written = 0.0

    def add(self, seconds: float, written: float) -> bool:
        """Adds an interval of that length with so many bytes; whether a round is now complete."""
        before = self._written // self._rule.round_bytes
        self._seconds.append(seconds)
        self._bytes.append(written)
        self._written += written
        return self._written // self._rule.round_bytes > before

    def verdict(self) -> Verdict:
        """The verdict on everything added so far."""
        return judge(Progress(self._seconds, self._bytes), self._rule)


def _floor(start: float, floor: int) -> Iterator[Failure]:
    if start < floor:
        sentence = (
            f"the last {WINDOW} rounds begin after {_gigabytes(start)}, "
            f"the first that count after {_gigabytes(floor)}"
        )
        yield Failure("floor", start, floor, sentence)


def _snia(rates: Numbers) -> Iterator[Failure]:
    mean = float(rates.mean())
    excursion = float(np.ptp(rates)) / mean
    if excursion > EXCURSION:
        sentence = f"the last {WINDOW} rounds differ by {excursion:.1%} of their mean"
        yield Failure("excursion", excursion, EXCURSION, f"{sentence}, allowed are {EXCURSION:.0%}")
    slope = _line(rates)
    if slope > SLOPE:
        sentence = f"their line changes by {slope:.1%} of the mean, allowed are {SLOPE:.0%}"
        yield Failure("slope", slope, SLOPE, sentence)


def _line(rates: Numbers) -> float:
    """Change of the least-squares line from the first to the last rate, relative to the mean."""
    t = np.arange(len(rates)) - (len(rates) - 1) / 2
    gradient = float(t @ rates) / float(t @ t)
    return abs(gradient) * (len(rates) - 1) / float(rates.mean())


def _history(progress: Progress, window_start: float, mean: float) -> Iterator[Failure]:
    """Conditions 4 to 6."""
    stop = progress.written
    start = min(stop / 2, window_start)
    intervals = progress.intervals_between(start, stop)
    points = next((n for n in _POINTS if n <= intervals), None)
    if points is None:
        sentence = f"{intervals} intervals in the last half are too few to look for change points"
        yield Failure("resolution", intervals, _POINTS[-1], f"{sentence}: {_POINTS[-1]} are needed")
        return
    share = (stop - start) / points
    rates = share / progress.between(start, stop, points)
    drift = _line(rates)
    if drift > SLOPE:
        sentence = f"the line through the last half changes by {drift:.1%} of the mean"
        yield Failure("drift", drift, SLOPE, f"{sentence}, allowed are {SLOPE:.0%}")
    yield from _change(rates, start, share)
    apart = mean / ((stop - start) / progress.between(start, stop, 1)[0]) - 1
    if abs(apart) > MATERIAL:
        sentence = (
            f"the last {WINDOW} rounds are {apart:+.1%} off the last half of what was written"
        )
        yield Failure("turns", abs(apart), MATERIAL, f"{sentence}, allowed are {MATERIAL:.0%}")


def _change(rates: Numbers, start: float, share: float) -> Iterator[Failure]:
    changes = change_points(rates)
    levels = [change.before for change in changes] + [change.after for change in changes[-1:]]
    span = (max(levels) - min(levels)) / float(rates.mean()) if levels else 0.0
    if span > MATERIAL:
        largest = max(changes, key=lambda change: abs(change.step))
        sentence = (
            f"in the last half the rate changed by {largest.step / largest.before:+.0%} "
            f"after {_gigabytes(start + largest.at * share)} (p = {largest.p_value:.2g})"
        )
        yield Failure("change", span, MATERIAL, sentence)


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.4g} GB"

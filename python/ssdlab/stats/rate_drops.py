"""Rate drops: after how many bytes the rate of a write load drops to a new, lower level.

That happens when a drive's buffer, SLC cache or spare area is full. In the curve of seconds over
bytes a constant rate is a straight line, and a drop is a kink, located at the intersection of two
lines, which is more precise than the intervals. A temporary dip is not a drop, nor is a burst after
an idle time: after a drop the rate stays below all earlier rates (by running medians).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ssdlab.stats.steady import Progress

Numbers = NDArray[np.float64]

MIN_FACTOR: Final = 1.25
"""A decrease of the rate by a smaller factor is not a drop."""
STEEP_FACTOR: Final = 1.4
"""When a buffer or cache is full, the rate decreases by at least this factor."""
GENTLE_FACTOR: Final = 1.08
"""If no drop is steep, a full buffer may still show as one by this factor."""
_GENTLE_FROM: Final = 2 << 20  # bytes: the ramp of a queue of 16 requests of 128 KiB
_SLICES: Final = 400  # equal parts of the bytes
_MEDIAN: Final = 5  # slices in the running median
_WIDTH: Final = 6  # slices within which a drop happens
_MIN_INTERVALS: Final = 3  # between two drops, since an interval across a kink has a mixed rate
_MIN_GAP: Final = 3  # slices between the candidates of two drops
_SAMPLES: Final = 20  # slices on each side of a drop, to compare the rates
_QUANTILE: Final = 0.8  # this fraction before a drop is faster than the same fraction after it
_LONG: Final = 10.0
"""Times the bytes before a drop: slices that long have several of the bursts in which a drive
collects."""
_CANDIDATES: Final = 201  # positions of a kink that are fitted
_NO_BEND: Final = 1e-20  # sum of squares, of a line from 0 to 1: a kink outside the points
_COARSE_S: Final = 0.001
_COARSE_MIN: Final = 20  # such intervals before a drop are enough
_SAME: Final = 2.0  # drops whose positions differ by less than this factor are the same
_ZOOM: Final = 4.0
_ZOOMS: Final = 6


@dataclass(frozen=True)
class RateDrop:
    """A drop after `at` bytes, from `before` to `after` bytes per second.

    `low` to `high` is the interval of `at`. `ahead` is the number of bytes that a faster buffer
    took before the rate settled at `before` (written = ahead + before x seconds). `seconds` is the
    time of the drop.
    """

    at: float
    low: float
    high: float
    before: float
    after: float
    ahead: float
    seconds: float

    @property
    def buffered(self) -> float:
        """Bytes written beyond what the lower rate drained in that time: the buffer's size."""
        return max(0.0, self.at - self.after * self.seconds)

    def is_as_fast(self, other: RateDrop) -> bool:
        """Whether the rate before this drop is at least that before the other.

        If it is lower, this is a drop between lower rates: it does not show the same limit.
        """
        return self.before * MIN_FACTOR > other.before


def rate_after(drops: Iterable[tuple[Progress, RateDrop]]) -> float | None:
    """The mean rate after the drop in each of these curves; None without one."""
    rest = [
        (curve.written - drop.at, curve.between(drop.at, curve.written, 1)[0])
        for curve, drop in drops
        if drop.at < curve.written
    ]
    return sum(amount for amount, _ in rest) / float(sum(s for _, s in rest)) if rest else None


def bytes_as_fast(curve: Progress, drops: Iterable[RateDrop | None], first: RateDrop) -> float:
    """Bytes of a write at the rate of another one before its drop `first`.

    They end at a drop of this write, unless that is a stall, after which the rate rises again. A
    write that is slow from the start has no drop: then they end where the running median falls, and
    are no more than the time of all bytes allows, if the others take as long as after `first`.
    """
    fast = [
        drop.at for drop in drops if drop and drop.is_as_fast(first) and not _is_stall(curve, drop)
    ]
    if fast:
        return max(fast)
    each = curve.written / _SLICES
    seconds = curve.between(0.0, curve.written, _SLICES)
    factor = first.before / first.after
    is_slow = _running_median(seconds) * first.before > min(MIN_FACTOR, factor**0.5) * each
    slow = np.flatnonzero(sliding_window_view(is_slow, _WIDTH).all(axis=1))
    until = float(slow[0] * each) if len(slow) else curve.written
    if factor >= MIN_FACTOR:
        saved_s = curve.written / first.after - float(seconds.sum())
        until = min(until, saved_s / (1 / first.after - 1 / first.before))
    return max(0.0, until)


def _is_stall(curve: Progress, drop: RateDrop) -> bool:
    """Whether the rate rises again after a drop."""
    after = rate_after([(curve, drop)])
    return after is not None and after > STEEP_FACTOR * drop.after


def rate_drops(
    progress: Progress,
    stop: float | None = None,
    factor: float = MIN_FACTOR,
    *,
    in_bursts: bool = False,
) -> tuple[RateDrop, ...]:
    """The drops within the first `stop` bytes, in order; empty if too little was written.

    `in_bursts`: the drive may take bursts at full speed and stop between them.
    """
    stop = progress.written if stop is None else min(stop, progress.written)
    if stop <= 0 or progress.intervals_between(0.0, stop) < 4 * _WIDTH:
        return ()
    marks = np.linspace(0.0, stop, _SLICES + 1)
    seconds = np.concatenate(([0.0], np.cumsum(progress.between(0.0, stop, _SLICES))))
    drops: list[int] = []
    for slice_number in _candidates(np.diff(seconds), factor):
        level = (float(marks[drops[-1]]) if drops else 0.0, float(marks[slice_number]))
        is_resolved = not drops or progress.intervals_between(*level) >= _MIN_INTERVALS
        if is_resolved and _is_slower_after(progress, *level, in_bursts=in_bursts):
            drops.append(slice_number)
    edges = [0, *drops, _SLICES]
    result = []
    for number in range(1, len(edges) - 1):
        around = slice(edges[number - 1], min(edges[number + 1], 2 * edges[number] + _WIDTH) + 1)
        result.append(_fit_drop(marks[around], seconds[around], marks[edges[number]]))
    return tuple(result)


def _candidates(cost: Numbers, factor: float) -> list[int]:
    """Slices where the running median of the cost per byte rises above all earlier medians."""
    smooth = _running_median(cost)
    highest = np.maximum.accumulate(smooth)
    ahead = np.median(sliding_window_view(smooth, _WIDTH), axis=1)[2:-1]
    rises = 2 + np.flatnonzero(ahead >= factor * highest[1 : 1 + len(ahead)])
    is_first = np.diff(rises, prepend=-_MIN_GAP) >= _MIN_GAP
    return [_steepest(smooth, int(at)) for at in rises[is_first]]


def _is_slower_after(progress: Progress, start: float, at: float, *, in_bursts: bool) -> bool:
    """Whether most slices after `at` are slower than most of those from `start` to `at`.

    Noise also has drops, but the faster slices after such a drop are as fast as the slower slices
    before it.
    """
    edge = (at - start) / _SAMPLES
    if min(progress.written, 2 * at - start) <= at + 2 * edge:
        return False
    before = progress.between(start, at - edge, _SAMPLES) / (at - edge - start)
    slowest = float(np.quantile(before, _QUANTILE))

    def is_slower_until(stop: float) -> bool:
        stop = min(progress.written, stop)
        after = progress.between(at + edge, stop, _SAMPLES) / (stop - at - edge)
        return slowest < float(np.quantile(after, 1 - _QUANTILE))

    if is_slower_until(2 * at - start):
        return True
    return in_bursts and is_slower_until(at + _LONG * (at - start))


def _running_median(cost: Numbers) -> Numbers:
    padded = np.pad(cost, _MEDIAN // 2, mode="edge")
    return np.median(sliding_window_view(padded, _MEDIAN), axis=1)


def _steepest(smooth: Numbers, at: int) -> int:
    """The slice near the candidate `at` with the largest rise before it."""
    start, stop = max(1, at - 2), min(len(smooth) - 1, at + _WIDTH)
    steps = np.diff(np.log(smooth[start - 1 : stop]))
    return start + int(np.argmax(steps))


def _fit_drop(marks: Numbers, seconds: Numbers, near: float) -> RateDrop:
    """Fits the kink of the curve around `near`; the level before it begins at the first mark."""
    start, size = float(marks[0]), float(marks[1] - marks[0])  # size: bytes of a slice
    level = marks >= start + min(3 * size, (near - start) / 3)  # skips a burst at the start
    x, t = marks[level], seconds[level]
    reach = max(3 * size, (near - float(x[0])) / 4)
    within = x <= near + max(2 * _WIDTH * size, (near - float(x[0])) / 2)
    kinks = np.linspace(max(float(x[0]), near - reach), near + reach, _CANDIDATES)
    errors = _residuals(x[within], t[within], kinks)
    best = int(np.argmin(errors))
    # The 95 % region of one least-squares parameter, for independent errors.
    freedom = max(1, int(np.count_nonzero(within)) - 4)
    region = kinks[errors <= errors[best] * (1 + 3.84 / freedom)]
    at = float(kinks[best])
    before, after = x <= at - size, (x >= at + size) & within
    slope, offset = _fit_line(x, t, before)
    return RateDrop(
        at=at,
        low=min(float(region[0]), at - size),
        high=max(float(region[-1]), at + size),
        before=1 / slope,
        after=1 / _fit_line(x, t, after)[0],
        ahead=max(0.0, -offset / slope),
        seconds=float(np.interp(at, marks, seconds)),
    )


def _residuals(x: Numbers, t: Numbers, kinks: Numbers) -> Numbers:
    """The residual sum of squares of two lines that meet at a kink, for each of the kinks."""
    scaled = (x - x.mean()) / (np.ptp(x) or 1.0)
    line, _ = np.linalg.qr(np.stack((np.ones_like(x), scaled), axis=1))
    # What is left of the second line's bend, and of the times, after a fit of one line.
    bends = np.maximum(0.0, x - kinks[:, np.newaxis]) / (np.ptp(x) or 1.0)
    bends -= bends @ line @ line.T
    times = t - line @ (line.T @ t)
    power = np.sum(bends**2, axis=1)
    slopes = np.divide(bends @ times, power, out=np.zeros_like(power), where=power > _NO_BEND)
    residuals: Numbers = np.sum((times - slopes[:, np.newaxis] * bends) ** 2, axis=1)
    return residuals


def _fit_line(x: Numbers, t: Numbers, selected: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset of the least-squares line; with all points if fewer than 2 are selected."""
    used = selected if np.count_nonzero(selected) >= 2 else np.ones_like(selected)
    slope, offset = np.polyfit(x[used], t[used], 1)
    return max(float(slope), 1e-15), float(offset)


def last_drop(
    progress: Progress,
    stop: float | None = None,
    steep: float = STEEP_FACTOR,
    least: float = 0.0,
    *,
    in_bursts: bool = False,
) -> RateDrop | None:
    """The last drop by a factor of `steep` or more between `least` and `stop` bytes, or None.

    If it is among the first slices, the search is repeated on fewer bytes at a higher resolution.
    Intervals of a millisecond are tried first, because flash takes data in bursts.
    """
    drops = _search(
        progress, stop, partial(_last_drop, steep=steep, least=least, in_bursts=in_bursts)
    )
    return max(drops, key=lambda drop: drop.at, default=None)


def first_drop(
    progress: Progress, stop: float, least: float = 0.0, *, in_bursts: bool = False
) -> RateDrop | None:
    """The first drop by `STEEP_FACTOR` or more between `least` and `stop` bytes.

    It is found at the highest resolution that shows it.
    """
    search = partial(_first_drop, least=least, in_bursts=in_bursts)
    return min(_search(progress, stop, search), key=lambda drop: drop.at, default=None)


def _search(
    progress: Progress,
    stop: float | None,
    search: Callable[[Progress, float | None], RateDrop | None],
) -> list[RateDrop]:
    """The drops found in intervals of a millisecond and in the finest ones.

    If both are the same, the one of the finest intervals counts only where a millisecond is coarse.
    """
    if not progress.written:
        return []
    smooth = progress.coarse(_COARSE_S)
    coarse, fine = search(smooth, stop), search(progress, stop)
    if coarse is None or fine is None:
        return [drop for drop in (coarse, fine) if drop is not None]
    if not 1 / _SAME < coarse.at / fine.at < _SAME:
        return [coarse, fine]
    return [coarse if smooth.intervals_between(0.0, coarse.at) >= _COARSE_MIN else fine]


def _last_drop(
    progress: Progress, stop: float | None, steep: float, least: float, *, in_bursts: bool
) -> RateDrop | None:
    stop, drop = progress.written if stop is None else min(stop, progress.written), None
    for _ in range(_ZOOMS):
        found = _steep_drops(progress, stop, steep, in_bursts=in_bursts)
        if found and found[-1].at >= least:
            drop = found[-1]
            break
        stop /= _ZOOM
    if drop is None or drop.at > stop / _ZOOM:
        return drop
    finer = _steep_drops(progress, _ZOOM * drop.at, steep, in_bursts=in_bursts)
    same = [each for each in finer if drop.low <= each.at <= drop.high]
    if same:
        return same[-1]
    width = _WIDTH * stop / _SLICES  # two drops closer than that may have looked like one
    merged = [each for each in finer if abs(each.at - drop.at) <= width]
    is_between = bool(merged) and merged[0].at < drop.at < merged[-1].at
    return merged[-1] if is_between else drop


def _first_drop(
    progress: Progress, stop: float | None, least: float, *, in_bursts: bool
) -> RateDrop | None:
    drop, stop = None, progress.written if stop is None else stop
    for _ in range(_ZOOMS):
        drops = _steep_drops(progress, stop, STEEP_FACTOR, in_bursts=in_bursts)
        steep = [drop for drop in drops if drop.at >= least]
        if steep:
            drop = steep[0]
        elif drop is not None:
            break
        stop /= _ZOOM
    return drop


def _steep_drops(
    progress: Progress, stop: float, steep: float, *, in_bursts: bool
) -> list[RateDrop]:
    drops = rate_drops(progress, stop, min(MIN_FACTOR, steep), in_bursts=in_bursts)
    return [drop for drop in drops if drop.before >= steep * drop.after]


def steepness(progress: Progress, least: float) -> float:
    """The least factor of this drive's drops from `least` bytes on: gentle if none is steep.

    A gentle drop counts only if the rate after it lasts to the end, and not among the first
    requests.
    """
    if last_drop(progress, least=least) is None:
        drop = last_drop(progress, steep=GENTLE_FACTOR)
        if drop is not None and drop.at > _GENTLE_FROM:
            part = progress.written / _SAMPLES
            end = part / float(progress.between(progress.written - part, progress.written, 1)[0])
            if end * GENTLE_FACTOR > drop.after:
                return GENTLE_FACTOR
    return STEEP_FACTOR

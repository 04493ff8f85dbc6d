"""Falls: where, in bytes written, a write load's rate falls to a level that it never had before.

A drive's buffer, its SLC cache and its spare area each end so: a level, a kink, a lower level. The
curve of seconds against bytes is used, in which a level is a straight line, so that the place of a
kink is that of two lines' intersection and finer than any interval. A dip that ends, and a burst
between two jobs, are no falls: what follows a fall is slower than all that came before it, but for
single shares (running medians).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.stats.steady import Progress

Numbers = NDArray[np.float64]

LEAST: Final = 1.25
"""A rate that falls by less than this factor has not fallen: wear of a level is no kink."""
STEEP: Final = 1.4
"""By this factor it falls where something is full that is worth a name."""
_SHARES: Final = 400  # of the bytes looked at
_MEDIAN: Final = 5  # shares of the running median
_SHARP: Final = 6  # shares within which a fall happens
_INTERVALS: Final = 3  # between two falls: one that is cut through by a kink has a rate of its own
_APART: Final = 3  # shares from the last sight of a fall to the first of another
_SAMPLES: Final = 20  # shares on either side of a place
_MOST: Final = 0.8  # of the shares before a fall are faster than as many behind it
_PLACES: Final = 201  # candidates of a kink in each of two passes
_ZOOM: Final = 4.0
_ZOOMS: Final = 6


@dataclass(frozen=True)
class Fall:
    """One fall: after `at` bytes, from `before` to `after` bytes a second.

    `low` to `high` bound the place: with the kink there the two lines fit as well as a share of
    the bytes can tell. `ahead` is how many bytes were taken before the level's own line begins:
    what a buffer took on top (written = ahead + before x seconds). `seconds` went by until the
    fall.
    """

    at: float
    low: float
    high: float
    before: float
    after: float
    ahead: float
    seconds: float

    @property
    def held(self) -> float:
        """Bytes that were taken beyond what the lower rate moved on meanwhile: a buffer's size."""
        return max(0.0, self.at - self.after * self.seconds)


def falls(progress: Progress, stop: float | None = None) -> tuple[Fall, ...]:
    """The falls within the first `stop` bytes, in order; none where too little was written."""
    stop = progress.written if stop is None else min(stop, progress.written)
    if stop <= 0 or progress.intervals_between(0.0, stop) < 4 * _SHARP:
        return ()
    marks = np.linspace(0.0, stop, _SHARES + 1)
    seconds = np.concatenate(([0.0], np.cumsum(progress.between(0.0, stop, _SHARES))))
    places: list[int] = []
    for place in _places(np.diff(seconds)):
        level = (float(marks[places[-1]]) if places else 0.0, float(marks[place]))
        apart = not places or progress.intervals_between(*level) >= _INTERVALS
        if apart and _parted(progress, *level):
            places.append(place)
    edges = [0, *places, _SHARES]
    found = []
    for number in range(1, len(edges) - 1):
        around = slice(edges[number - 1], min(edges[number + 1], 2 * edges[number] + _SHARP) + 1)
        found.append(_fall(marks[around], seconds[around], marks[edges[number]]))
    return tuple(found)


def _places(cost: Numbers) -> list[int]:
    """Shares at which the running median leaves all that came before it behind."""
    smooth = _running_median(cost)
    highest = np.maximum.accumulate(smooth)
    places: list[int] = []
    seen = -_APART
    for at in range(2, len(cost) - _SHARP):
        risen = float(np.median(smooth[at : at + _SHARP]))
        if risen < LEAST * highest[at - 1]:
            continue
        if at - seen >= _APART:
            places.append(at)
        seen = at
    return [_steepest(smooth, at) for at in places]


def _parted(progress: Progress, start: float, place: float) -> bool:
    """Whether what follows a place is slower than what lies between it and `start`, by and large.

    Noise has falls too, but the faster shares behind one are as fast as the slower ones before it.
    """
    edge = (place - start) / _SAMPLES
    stop = min(progress.written, 2 * place - start)
    if stop <= place + 2 * edge:
        return False
    before = progress.between(start, place - edge, _SAMPLES) / (place - edge - start)
    after = progress.between(place + edge, stop, _SAMPLES) / (stop - place - edge)
    return float(np.quantile(before, _MOST)) < float(np.quantile(after, 1 - _MOST))


def _running_median(cost: Numbers) -> Numbers:
    padded = np.pad(cost, _MEDIAN // 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, _MEDIAN), axis=1)


def _steepest(smooth: Numbers, at: int) -> int:
    """The share, near the first sight of a fall, before which the rise is the largest."""
    start, stop = max(1, at - 2), min(len(smooth) - 1, at + _SHARP)
    steps = np.diff(np.log(smooth[start - 1 : stop]))
    return start + int(np.argmax(steps))


def _fall(marks: Numbers, seconds: Numbers, near: float) -> Fall:
    """The kink of the curve around `near`; the level before it begins with the first mark."""
    start, share = float(marks[0]), float(marks[1] - marks[0])
    level = marks >= start + min(3 * share, (near - start) / 3)  # what a burst bent is left
    x, t = marks[level], seconds[level]
    reach = max(3 * share, (near - float(x[0])) / 4)
    within = x <= near + max(2 * _SHARP * share, (near - float(x[0])) / 2)
    places = np.linspace(max(float(x[0]), near - reach), near + reach, _PLACES)
    errors = np.array([_error(x[within], t[within], float(place)) for place in places])
    best = int(np.argmin(errors))
    # The 95 % region of one parameter of least squares, as if errors were independent.
    freedom = max(1, int(np.count_nonzero(within)) - 4)
    near_best = places[errors <= errors[best] * (1 + 3.84 / freedom)]
    at = float(places[best])
    before, after = x <= at - share, (x >= at + share) & within
    slope, offset = _line(x, t, before)
    return Fall(
        at=at,
        low=min(float(near_best[0]), at - share),
        high=max(float(near_best[-1]), at + share),
        before=1 / slope,
        after=1 / _line(x, t, after)[0],
        ahead=max(0.0, -offset / slope),
        seconds=float(np.interp(at, marks, seconds)),
    )


def _error(x: Numbers, t: Numbers, place: float) -> float:
    """What is left of the squares when two lines that meet at `place` are fitted."""
    columns = np.stack((np.ones_like(x), x - place, np.maximum(0.0, x - place)), axis=1)
    fitted, *_ = np.linalg.lstsq(columns, t, rcond=None)
    return float(np.sum((columns @ fitted - t) ** 2))


def _line(x: Numbers, t: Numbers, chosen: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset of the least-squares line; of all points where too few are chosen."""
    kept = chosen if np.count_nonzero(chosen) >= 2 else np.ones_like(chosen)
    slope, offset = np.polyfit(x[kept], t[kept], 1)
    return max(float(slope), 1e-15), float(offset)


def last_fall(progress: Progress, stop: float | None = None) -> Fall | None:
    """The last fall by `STEEP` or more within the first `stop` bytes, however early; or None.

    One that lies in the first shares of the whole is looked for again in a beginning of it.
    """
    stop, found = progress.written if stop is None else min(stop, progress.written), None
    for _ in range(_ZOOMS):
        steep = _steep(progress, stop)
        if steep:
            found = steep[-1]
            break
        stop /= _ZOOM
    if found is None or found.at > stop / _ZOOM:
        return found
    finer = _steep(progress, _ZOOM * found.at)
    near = [fall for fall in finer if found.low <= fall.at <= found.high]
    return near[-1] if near else found


def first_fall(progress: Progress, stop: float) -> Fall | None:
    """The first fall by `STEEP` or more before `stop`, at the finest look that shows one."""
    found = None
    for _ in range(_ZOOMS):
        steep = _steep(progress, stop)
        if steep:
            found = steep[0]
        elif found is not None:
            break
        stop /= _ZOOM
    return found


def _steep(progress: Progress, stop: float) -> list[Fall]:
    return [fall for fall in falls(progress, stop) if fall.before >= STEEP * fall.after]

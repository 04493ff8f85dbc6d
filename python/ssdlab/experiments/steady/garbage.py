"""The gauge of known garbage: superblocks of which a known share is valid, and what they cost.

The region is written as `STREAMS` parts in turn, a block of each. Then its first part is trimmed
and written again. Each superblock then has seven eighths of its units valid, whichever is the
victim, so that WAF is 8. The cost of such writes relative to that of the rounds shows the rounds'
WAF; the bytes written before they cost that show the hidden flash. If more flash is hidden, the
next parts follow, up to a quarter, a half and three quarters.

If victims are chosen at random, or from a few, also full superblocks are collected. Then the rate
falls while each block is written once, and the share of a victim is not known. If they are chosen
from many, and much flash is hidden, full ones are collected just before all of it has taken data.
If victims are chosen at random, no part is written again: `victims_at_random.py` says what is
measured instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.analysis.evidence import Evidence
from ssdlab.analysis.write_amplification import Bracket
from ssdlab.analysis.write_rounds import progress
from ssdlab.experiments.steady.rates import rate_between, settled
from ssdlab.stats.steady import Progress

STREAMS: Final = 8
AT_RANDOM: Final = "victims are chosen at random, so that the valid share of one is not known"
FROM_FEW: Final = "victims are chosen from a few, so that the valid share of one is not known"
NOT_MEASURED: Final = "the gauges need random writes to a whole drive that can be trimmed"
_CONTRAST: Final = 1.3
_CONTRAST_BY_WAF: Final = 0.4
"""Where collection begins the rate falls by the first factor, at least, which is about the WAF of
the last part; and by this share of WAF: link and host may limit writes without relocation."""
FULL: Final = 1.3  # of a buffer: what is written until it is full
_ALONE: Final = 0.92
"""A lower rate than this share of that without relocation: full superblocks are collected too, or
an SLC cache is folded."""
_ALONE_TO: Final = 0.8  # of the bytes before collection
_NEAR: Final = (_ALONE_TO, 0.95)  # of these bytes: where a drive that chooses from many collects
_ALONE_NEAR: Final = 0.9  # the lowest share of that rate there
_LARGE: Final = 0.5  # share trimmed up to the end of a part, from which on this is checked
_BEGUN: Final = 0.02  # of a part: what cannot be distinguished from none of it
_SWING: Final = 0.035
"""The time of a constant rate differs by less than this share, at any byte of a plateau."""
_SAME_PERIODS: Final = 0.05  # the difference of two rates over whole victims
_CONSTANT_MOST: Final = 4.0  # programs, of drives that do collect
_POINTS: Final = 400
_SPREAD: Final = 0.03  # of that rate
_CHOSEN: Final = (0.85, 0.5)
"""If the rate falls below the first share before any block is written twice, victims are chosen
from a few superblocks; below the second, at random."""
LATE: Final = (0.85, 0.97)  # of the writes of each block
_END: Final = 0.97  # of a part: at its end the drive may wait until its buffer is empty
_PLATEAU: Final = (0.67, _END)  # of the part in which collection begins
_PLATEAU_NEXT: Final = (0.3, _END)  # of the part after it, if it begins late


@dataclass(frozen=True)
class Garbage:
    """What writes cost that collect victims of which the share `1 - trimmed` is valid.

    `rate` is theirs, `alone` that of the same writes without relocation, both in bytes per second;
    `hidden` the bytes that were programmed before.
    """

    trimmed: float
    rate: float
    alone: float
    hidden: Bracket

    @property
    def waf(self) -> float:
        """WAF of these writes."""
        return 1 / self.trimmed

    def waf_at(self, rate: float) -> float:
        """WAF of writes with this rate, if their cost is in proportion to their WAF."""
        return self.waf * self.rate / rate


@dataclass(frozen=True)
class _Lag:
    """The seconds that writes took, and at each of `_POINTS` + 1 positions those above the mean."""

    seconds: float
    late: NDArray[np.float64]


@dataclass(frozen=True)
class _Part:
    """Writes to a part that was trimmed: the share up to its end, bytes before it, and curve."""

    trimmed: float
    start: float
    curve: Progress

    def rate(self, begin: float, end: float) -> float | None:
        """The rate between two shares of the part; None if it is not constant.

        A drive that collects whole victims at once stops for each one. Then the rate is that from
        the end of one stop to the end of another, and the same from start to start.
        """
        lag = self._lag(begin, end)
        width = (end - begin) * self.curve.written
        if np.ptp(lag.late) < _SWING * lag.seconds:
            return width / lag.seconds
        middle = _POINTS // 2
        rates = []
        for pick in (np.argmax, np.argmin):
            first, last = int(pick(lag.late[:middle])), middle + int(pick(lag.late[middle:]))
            seconds = lag.seconds * (last - first) / _POINTS + lag.late[last] - lag.late[first]
            rates.append(width * (last - first) / _POINTS / float(seconds))
        mean = sum(rates) / 2
        return mean if abs(rates[0] - rates[1]) < _SAME_PERIODS * mean else None

    def stop_s(self, begin: float, end: float) -> float:
        """The longest stop between two shares of the part, above what a steady rate would take."""
        return float(np.ptp(self._lag(begin, end).late))

    def _lag(self, begin: float, end: float) -> _Lag:
        seconds = self.curve.between(begin * self.curve.written, end * self.curve.written, _POINTS)
        done = np.concatenate(([0.0], np.cumsum(seconds)))
        return _Lag(float(done[-1]), done - np.linspace(0.0, done[-1], _POINTS + 1))

    def alone_bytes(self, alone: float, collecting: float, buffer: float) -> float:
        """Bytes programmed at the rate `alone`, if the others were at `collecting`.

        The buffer is empty at the start and full at the end.
        """
        stop = _END * self.curve.written
        seconds = float(self.curve.between(0, stop, 1)[0])
        found = ((stop - buffer) / collecting - seconds) / (1 / collecting - 1 / alone)
        return min(self.curve.written, max(0.0, found))


def known_garbage(evidence: Evidence, buffer: float) -> Garbage | str:
    """What the gauge shows of a drive with a write buffer of `buffer` bytes; or why nothing."""
    steps = [step for step in evidence.steps("gauge") if step["case"] == "once"]
    once = progress(evidence, steps)
    if not once.written:
        return NOT_MEASURED
    late = late_rate(once)
    if late < _CHOSEN[1]:
        return AT_RANDOM
    if late < _CHOSEN[0]:
        return FROM_FEW
    parts = _parts(evidence)
    return _found(parts, settled(once), buffer) if parts else NOT_MEASURED


def late_rate(once: Progress) -> float:
    """The rate at the end of `once` / that before any full superblock is collected."""
    return rate_between(once, *(share * once.written for share in LATE)) / settled(once)


def _parts(evidence: Evidence) -> list[_Part]:
    parts, start = list[_Part](), 0.0
    for step in evidence.steps("gauge"):
        if step["case"] == "again":
            curve = progress(evidence, [step])
            parts.append(_Part(step["value"], start, curve))
            start += curve.written
    return parts


def _found(parts: Sequence[_Part], alone: float, buffer: float) -> Garbage | str:
    """What the first part shows in which collection is seen."""
    for number, part in enumerate(parts):
        start, stop = (share * part.curve.written for share in _PLATEAU)
        contrast = max(_CONTRAST, _CONTRAST_BY_WAF / part.trimmed)
        if rate_between(part.curve, start, stop) > alone / contrast:
            continue
        source, rate = part, part.rate(*_PLATEAU)
        if rate is None and number + 1 < len(parts):  # it begins late in this part
            source = parts[number + 1]
            rate = source.rate(*_PLATEAU_NEXT)
        if rate is None:
            return "the rate was not constant while victims of the same share were collected"
        hidden = _hidden(parts[: number + 1], alone, rate / source.trimmed, buffer)
        near = _rate_before(parts, hidden.value, buffer)
        is_sharp = near is None or near > _ALONE_NEAR * alone or part.trimmed < _LARGE
        if not (is_sharp and _is_alone(parts, _ALONE_TO * hidden.value, buffer, alone)):
            return "the rate fell in several steps while trimmed parts were written"
        if _constant(source, rate, parts[parts.index(source) + 1 :]) > _CONSTANT_MOST:
            return "the rate hardly depends on how much of a victim is valid"
        return Garbage(source.trimmed, rate, alone, hidden)
    return "collection did not lower the rate of writes to trimmed parts"


def _constant(part: _Part, rate: float, later: Sequence[_Part]) -> float:
    """The part of a write's cost that is not proportional to its WAF, in programs.

    It is 0 unless the part after this one also collects at a constant rate.
    """
    if not later or (other := later[0].rate(*_PLATEAU_NEXT)) is None:
        return 0.0
    program = (1 / rate - 1 / other) / (1 / part.trimmed - 1 / later[0].trimmed)
    return 0.0 if program <= 0 else 1 / rate / program - 1 / part.trimmed


def _is_alone(parts: Sequence[_Part], stop: float, buffer: float, alone: float) -> bool:
    """Whether the first `stop` bytes were written without relocation."""
    for part in parts:
        start = FULL * buffer
        end = min(_END * part.curve.written, stop - part.start)
        if end > start and rate_between(part.curve, start, end) < _ALONE * alone:
            return False
    return True


def _rate_before(parts: Sequence[_Part], hidden: float, buffer: float) -> float | None:
    """The rate just before `hidden` bytes, without bytes that a buffer may have taken."""
    start, stop = (share * hidden for share in _NEAR)
    width = seconds = 0.0
    for part in parts:
        begin = max(FULL * buffer, start - part.start)
        end = min(_END * part.curve.written, stop - part.start)
        if end > begin:
            width += end - begin
            seconds += float(part.curve.between(begin, end, 1)[0])
    return width / seconds if seconds else None


def _hidden(parts: Sequence[_Part], alone: float, programmed: float, buffer: float) -> Bracket:
    """The bytes that were programmed before collection, which then programs at another rate.

    It begins in the last of these parts, or at the end of the one before. Where that part ends, a
    whole victim may just have been collected, or be due.
    """
    *before, part = parts
    sizes = []
    for factor in (1.0, 1 - _SPREAD, 1 + _SPREAD):
        rate = min(alone / _CONTRAST, factor * programmed * part.trimmed)
        sizes.append(part.alone_bytes(alone, rate, buffer))
    if before and sizes[0] < _BEGUN * part.curve.written:
        # What the buffer held at the end of the part before was programmed after its last write.
        earlier = _hidden(before, alone, programmed, buffer)
        return earlier._replace(high=max(earlier.high, part.start))
    stop = part.stop_s(*_PLATEAU) / (1 / (programmed * part.trimmed) - 1 / alone)
    bounds = max(0.0, min(sizes) - stop), max(sizes) + stop
    return Bracket(*(part.start + size for size in (sizes[0], *bounds)))

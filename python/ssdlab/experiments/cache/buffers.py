"""What is known of the size of a write buffer: intervals from drops, from flushes and from pauses.

The buffer drains while it fills. At a drop in speed it holds the bytes written, less those that
flash had programmed by then: at most the rate after the drop times the time, and less by the pages
that were being programmed. A flush of a full buffer, and a pause that is long enough to empty it,
take as long as flash needs to program what it holds. So each gives an interval.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop, rate_after
from ssdlab.stats.steady import Progress

MIB: Final = 1 << 20
EARLY: Final = 0.5  # an early drop must come before this share of the last drop's position
BUFFER_MAX: Final = 64 * MIB  # write buffers are rarely larger
REQUESTS_MIN: Final = 3  # a first drop after fewer requests is the ramp of the queue
RAMP: Final = 2.1  # a last drop within this many requests is, too
_LAG: Final = 0.05  # of the bytes: a drive that is this far behind its first rate has slowed down
PROGRAM_MAX_S: Final = 0.003
"""The longest usual program time of a page. A shorter pause may free nothing."""
SLC_PROGRAM_MAX_S: Final = 0.00075
"""The same of a page in an SLC cache: with one bit per cell it takes 0.1 to 0.5 ms."""
_STOP_MIN_S: Final = 50e-6
"""A stop that waits for a program lasts two thirds of its time; the fastest flash takes 75 us."""
_RATIO_MAX: Final = 1.5  # of upper and lower bound, for a size that counts as determined
_SURE: Final = 0.85  # of the measured program time, which includes a small write
_NOISE: Final = 0.06  # relative error of the time of one flush
_OVERLAP: Final = 1 / 3  # of the narrowest interval: what agreeing ones have in common, at least
_TOUCHING: Final = 0.02  # the same of reliable ones: with less they contradict each other
_OTHER_WORK: Final = 1.06  # of the drive during a flush: factor of its bounds
_PLATEAU: Final = 1.2  # pauses that free amounts within this factor free the same
_STEADY: Final = 1.15  # pauses that free what flash programs do so within this factor ...
_STEADY_FROM: Final = 4 * MIB  # ... above this size, where requests count little ...
_STEADY_TO: Final = 0.9  # ... up to this share of all ...
_STEADY_MIN: Final = 3  # ... and there are this many
_LINEAR: Final = 1.5  # a pause this much longer than programming takes frees all


@dataclass(frozen=True)
class WritePass:
    """One write of the region; `case` is first, flushed or rested, `rest_s` the idle time before.

    `last_drop` is the drop in speed to the sustained rate, `early_drop` a drop before that, when a
    buffer was full, and `middle_drop` one between them, after which the drive was slow but not at
    its slowest, as when it folds its cache while it takes writes; None if there is no such drop.
    """

    case: str
    rest_s: float | None
    block_bytes: int
    curve: Progress
    last_drop: RateDrop | None
    early_drop: RateDrop | None
    middle_drop: RateDrop | None

    @property
    def drops(self) -> list[RateDrop]:
        """All of the drops."""
        drops = (self.early_drop, self.middle_drop, self.last_drop)
        return [drop for drop in drops if drop is not None]

    @property
    def fast_bytes(self) -> float:
        """Bytes written before the last drop; all of them if the speed did not drop."""
        return self.curve.written if self.last_drop is None else self.last_drop.at

    def margin(self, drop: RateDrop) -> float:
        """By how many bytes the position of a drop is uncertain."""
        return max((drop.high - drop.low) / 2, self.block_bytes / 2)


@dataclass(frozen=True)
class Size:
    """A size between `low` and `high` bytes, and how it was found."""

    low: float
    high: float
    why: str

    @property
    def is_determined(self) -> bool:
        """Whether the bounds are close enough to state a value."""
        return self.high <= _RATIO_MAX * self.low

    def finding(self, what: str) -> Finding:
        """The middle as the value if it is determined; otherwise the bounds only."""
        low, high = max(0.0, self.low / MIB), self.high / MIB
        if self.is_determined:
            return Finding((low + high) / 2, "MiB", low, high, self.why)
        bounds = f"between {low:.4g} and {high:.4g} MiB" if low > 0 else f"at most {high:.4g} MiB"
        return Finding(None, "MiB", low or None, high, f"{what} of {bounds}: {self.why}")


@dataclass(frozen=True)
class Programs:
    """How flash programs while a buffer fills.

    `known_s` is the time of a program if it is known, `longest_s` that time at most. An SLC cache
    may take data at the rate `cached`, in bytes per second.
    """

    known_s: float | None = None
    longest_s: float = PROGRAM_MAX_S
    cached: float = 0.0


_USUAL: Final = Programs()


def buffered(
    write_pass: WritePass,
    drop: RateDrop,
    why: str,
    programs: Programs = _USUAL,
    partial: float = 0.0,
) -> Size:
    """What a buffer held at a drop.

    The lower bound assumes that flash programmed at its full rate from the start, or until the time
    of a program was over, if that is known, nothing; if an SLC cache may have taken data, that it
    did at its rate. The upper bound assumes that all pages that it programs in the longest time
    were in progress, or that nothing was programmed; one more request may be there in part. If the
    drive then stops for longer than it wrote, no page had been programmed, and up to `partial`
    bytes may have been there before, in pages that were partly filled.
    """
    block, curve = write_pass.block_bytes, write_pass.curve
    margin = write_pass.margin(drop)
    fresh = drop.at / 4 / float(curve.between(0.0, drop.at / 4, 1)[0])  # bytes per second
    slow = curve.behind(fresh, max(2 * block, _LAG * drop.at), 0.0)
    stop = curve.first_stop(REQUESTS_MIN * block, slow, _STOP_MIN_S)
    if stop is not None:
        return Size(
            stop, stop + block + partial, f"{why}; then the drive stopped for longer than it wrote"
        )
    in_progress = drop.after * programs.longest_s * (1 + drop.after / drop.before) / 2
    known_s = 0.0 if programs.known_s is None else _SURE * programs.known_s
    not_yet = drop.after * min(drop.seconds, known_s)
    low = max(0.0, drop.buffered + not_yet - margin)
    if programs.cached:
        low = min(low, max(0.0, drop.at - programs.cached * drop.seconds))
    high = min(slow, drop.buffered + in_progress + margin) + block
    if low > high:  # the two contradict each other: the rates vary
        low = 0.0
    return Size(low, high, f"{why}, less what flash had programmed")


def typical(sizes: Sequence[Size]) -> Size:
    """The medians of the bounds of repeated measurements."""
    low, high = (statistics.median(getattr(size, end) for size in sizes) for end in ("low", "high"))
    return Size(low, high, sizes[0].why)


def combined(
    sure: Sequence[Size], flushed: Size | None = None, written: Size | None = None
) -> Size:
    """The size by all intervals, of which one at least is known.

    `flushed` is that of flushes, `written` that of writes after them. An SLC cache may take part in
    these, and relocation of data may delay them. So they only narrow what the `sure` ones leave
    open, or decide where there are none. If a sure size is determined, only both together
    contradict it.
    """
    later = [size for size in (flushed, written) if size is not None]
    base = overlap(sure or later)
    if base is not None and not _is_wide(base, sure or later, _TOUCHING):
        base = None
    both = None if base is None else overlap([base, *later])
    if base is None or (base.is_determined and len(later) == 2 and both is None):
        return contradicting([*sure, *later])
    if base.is_determined:
        later = [] if flushed is None else [flushed]
    return agreed([base, *later]) or base


def contradicting(sizes: Sequence[Size]) -> Size:
    """The range of all intervals, which have nothing in common."""
    low, high = min(size.low for size in sizes), max(size.high for size in sizes)
    return Size(low, high, "drops, flushes and pauses contradict each other; repeat the run")


def overlap(sizes: Sequence[Size]) -> Size | None:
    """What the intervals have in common; None if nothing."""
    low, high = max(size.low for size in sizes), min(size.high for size in sizes)
    narrowest = min(sizes, key=lambda size: size.high / max(1.0, size.low))
    return Size(low, high, narrowest.why) if low <= high else None


def agreed(sizes: Sequence[Size]) -> Size | None:
    """The overlap; None if it is far narrower than each of the intervals.

    Then they have only their ends in common, where the size is unlikely to be.
    """
    common = overlap(sizes)
    if common is None:
        return None
    return common if _is_wide(common, sizes, _OVERLAP) else None


def _is_wide(common: Size, sizes: Sequence[Size], share: float) -> bool:
    """Whether what the intervals have in common is at least this share of the narrowest."""
    return common.high - common.low >= share * min(size.high - size.low for size in sizes)


def flushed_bytes(waits_s: Sequence[float], rate: float, program_s: float) -> Size:
    """What a full buffer holds, if flushes of it take `waits_s` longer than those of an idle drive.

    The pages in progress are partly done already, and the last ones may be padded.
    """
    held, noise = statistics.median(waits_s) * rate, _NOISE / len(waits_s) ** 0.5
    low = (held * (1 - noise) - rate * program_s) / _OTHER_WORK
    high = (held * (1 + noise) + rate * program_s / 2) * _OTHER_WORK
    return Size(max(0.0, low), high, "programmed during a flush of the full buffer")


def _contradicts(
    pauses: Sequence[WritePass], emptied: Sequence[tuple[WritePass, RateDrop]]
) -> bool:
    """Whether other pauses contradict that those in `emptied` emptied the buffer.

    One that was not longer freed more, or many that were not shorter freed less. A single one may:
    garbage collection slows a write, too.
    """
    rests_s = [each.rest_s or 0.0 for each, _ in emptied]
    freed = [drop.buffered for _, drop in emptied]
    others = [
        (each.rest_s or 0.0, each.early_drop.buffered)
        for each in pauses
        if each.early_drop is not None
    ]
    more = any(rest_s <= max(rests_s) and size > _PLATEAU * max(freed) for rest_s, size in others)
    less = sum(rest_s >= min(rests_s) and _PLATEAU * size < min(freed) for rest_s, size in others)
    return more or 2 * less >= len(emptied)


@dataclass(frozen=True)
class Freed:
    """What pauses free that empty the buffer, and the position of the drop after them.

    `is_steady`: shorter pauses freed just what flash programmed in that time. Flash that folds an
    SLC cache frees whole superblocks, and at another rate.
    """

    size: Size
    position: float
    is_steady: bool


def _is_steady(pauses: Sequence[WritePass], rate: float, position: float) -> bool:
    """Whether pauses freed what flash programs, before and during the write after them."""
    ratios = []
    for each in pauses:
        drop, programmed = each.early_drop, rate * (each.rest_s or 0.0)
        expected = 0.0 if drop is None else programmed / (1 - rate / drop.before)
        if drop is not None and _STEADY_FROM < expected < _STEADY_TO * position:
            ratios.append(drop.at / expected)
    return len(ratios) >= _STEADY_MIN and all(1 / _STEADY < each < _STEADY for each in ratios)


def plateau(pauses: Sequence[WritePass], rate: float, cached: float) -> Freed | None:
    """What pauses free that were long enough to empty the buffer.

    A buffer that was not yet empty has room for all that flash programmed during the pause, at
    `rate` or at the lower one of the writes after the pauses. None without pauses of different
    length that freed the same: longer ones made room elsewhere, or all were too short.

    Unless flash frees just what it programs, a pause may also make room in an SLC cache, which then
    takes data at the rate `cached`.
    """
    drops = [(each.curve, each.early_drop) for each in pauses if each.early_drop is not None]
    least = min(rate, rate_after(drops) or rate)
    best: list[tuple[WritePass, RateDrop]] = []
    emptied = [
        (each, each.early_drop)
        for each in pauses
        if each.early_drop is not None
        and (each.rest_s or 0.0) >= PROGRAM_MAX_S
        and least * (each.rest_s or 0.0) > _LINEAR * each.early_drop.buffered
    ]
    for _, first in emptied:
        group = [(each, drop) for each, drop in emptied if 1 <= drop.at / first.at < _PLATEAU]
        rests_s = [each.rest_s or 0.0 for each, _ in group]
        if len(group) > len(best) and max(rests_s) > _LINEAR * min(rests_s):
            best = group
    if not best or _contradicts(pauses, best):
        return None
    why = "freed by pauses, also by longer ones"
    partial = rate * PROGRAM_MAX_S  # a page of each die
    sizes = [buffered(each, drop, why, partial=partial) for each, drop in best]
    places = [drop.at for _, drop in best]
    # Partly filled pages stay in the buffer, more or less of them.
    high = max(size.high for size in sizes) + max(places) - min(places)
    position = statistics.median(places)
    is_steady = _is_steady(pauses, rate, position)
    low = max(size.low for size in sizes)
    if not is_steady:
        low = min(low, max(0.0, *(drop.at - cached * drop.seconds for _, drop in best)))
    return Freed(Size(low, high, why), position, is_steady)

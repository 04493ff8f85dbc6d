"""Divides the bytes before the last drop in speed into write buffer and SLC cache.

The SLC cache keeps its data: its size is the bytes written before the last drop, less the buffer's.

A flush empties most buffers. If a flush after writing is as fast as that of an idle drive, it
empties nothing (capacitors protect the buffer, or the drive ignores flushes). Then pauses of
growing length show what the buffer holds: until it is empty, each frees what flash programs in that
time. An SLC cache that is emptied at once and as fast can hide this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ssdlab.analysis.evidence import Evidence, seconds_of
from ssdlab.experiments.cache.buffers import (
    BUFFER_MAX,
    EARLY,
    MIB,
    PROGRAM_MAX_S,
    REQUESTS_MIN,
    SLC_PROGRAM_MAX_S,
    Freed,
    Programs,
    Size,
    WritePass,
    agreed,
    buffered,
    combined,
    contradicting,
    flushed_bytes,
    overlap,
    plateau,
    typical,
)
from ssdlab.experiments.cache.read_back import read_back_size
from ssdlab.experiments.cache.refill import RECOVERED, buffer_limit, refilled
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import STEEP_FACTOR, RateDrop, rate_after, rate_drops

_DRAIN_FACTOR: Final = 1.5  # a buffer drains within this multiple of the time to program it
_CACHE_MIN: Final = 40 * MIB  # SLC caches are rarely smaller
_CACHE_LEAST: Final = 10 * MIB
"""What is left for an SLC cache below this is an error of the sizes: caches hold far more."""
_SAME_RATE: Final = 0.1  # relative difference of two rates that count as equal
_CACHED: Final = 2.0  # times the lasting rate: an SLC cache takes the writes
_SLOWER: Final = 2.0  # times the rate of the next write: an SLC cache may have made the difference
_SHARED: Final = 0.8  # of the capacity: a buffer that holds less shares it with an SLC cache
_SURE_BELOW: Final = 16 * MIB  # above it, a part of an SLC cache may be what pauses free
_FILLS: Final = 1.1  # times the lasting rate: small writes fill the buffer, too
_LARGEST: Final = 0.36  # of the drive: a third, with spare
_RESTORED: Final = 0.5  # of the bytes before the drop
_IN_PART: Final = 4  # requests in flight that a buffer may hold in part


@dataclass(frozen=True)
class Sizes:
    """The two sizes; None if unknown. A cache of 0 bytes is absent, for the reason in `why`."""

    buffer: Size | None
    cache: Size | None
    why: str = ""


@dataclass(frozen=True)
class _Flushes:
    """By how much flushes after writes took longer than one of the idle drive, in order.

    `program_s` is the time of a flush with one small write; None if a flush does not wait.
    """

    waits_s: list[float]
    program_s: float | None


def find_sizes(
    evidence: Evidence,
    passes: Sequence[WritePass],
    last: RateDrop,
    capacity: float,
    refill: Finding,
) -> Sizes:
    """The sizes of buffer and SLC cache, by all passes; `last` is the last drop of the first one.

    `capacity` is the position of that drop, in bytes, as coarse as in later passes; `refill` is the
    idle time that makes as much room again.
    """
    first, flushed = passes[:2]
    # A gentle drop is located too coarsely to compare pauses.
    is_steep = last.before > STEEP_FACTOR * last.after
    pauses = [each for each in passes if is_steep and each.case == "paused"]
    freed = plateau(pauses, last.after, last.before)
    if freed is not None and freed.size.high > _SURE_BELOW and not freed.is_steady:
        freed = None if freed.position < _SHARED * capacity else freed
    fills = first.drops[0].before > _FILLS * last.after
    back = read_back_size(evidence, last.after) if fills else None
    limit = buffer_limit(passes, last.after)
    sizes = _divided(passes, capacity, _flushes(evidence), freed, back, limit)
    if sizes is None:
        sizes = _unflushed(first, freed, refill, capacity, limit)
    most = last.at + first.margin(last) + _IN_PART * first.block_bytes
    sizes = _unless_slower(_bounded(sizes, last.at, most), last, flushed.last_drop)
    drive = evidence.parameters.get("drive_mib", 0.0) * MIB
    restored = max((refilled(each, last) for each in passes if each.case == "rested"), default=0.0)
    return _unless_borrowed(sizes, last, drive, restored / capacity)


def _flushes(evidence: Evidence) -> _Flushes:
    """How long flushes waited for flash."""
    idle_s, waits_s, before = 0.0, list[float](), None
    for step in evidence.steps():
        if step["phase"] == "flush" and before is None:
            idle_s += seconds_of(step)
        elif step["phase"] == "flush" and before in {"first", "flushed", "emptied"}:
            waits_s.append(seconds_of(step) - idle_s)
        if step["phase"] == "write" or before is not None:
            before = step["case"]
    program = evidence.steps("program")
    program_s = 2 * seconds_of(program[0]) / program[0]["requests"] - idle_s if program else None
    return _Flushes(waits_s, program_s)


def _bounded(sizes: Sizes, written: float, most: float) -> Sizes:
    """The sizes, if the buffer holds at most the bytes `written` before the last drop.

    `most` is the latest position of that drop.
    """
    buffer = sizes.buffer
    if buffer is None or buffer.high <= most:
        return sizes
    if buffer.low <= most:
        return Sizes(Size(buffer.low, most, buffer.why), sizes.cache, sizes.why)
    why = (
        f"flushes took as long as programming {buffer.low / MIB:.4g} MiB, but only "
        f"{written / MIB:.4g} MiB were written before the drop: something other than a write "
        "buffer delays them, such as a page cache or another program's writes"
    )
    return Sizes(None, None, why)


def _unless_slower(sizes: Sizes, last: RateDrop, after: RateDrop | None) -> Sizes:
    """The sizes, but an absent cache only if the next write was not far slower when it had slowed.

    An SLC cache may have taken all of the first one.
    """
    if sizes.cache is None or sizes.cache.high > 0 or after is None:
        return sizes
    if last.after <= _SLOWER * after.after:
        return sizes
    why = (
        f"the first write fell to {last.after / MIB:.4g} MiB/s, the next one to "
        f"{after.after / MIB:.4g}: an SLC cache may have taken all of the first; give a larger "
        "--size"
    )
    return Sizes(sizes.buffer, None, why)


def _unless_borrowed(sizes: Sizes, last: RateDrop, drive: float, restored: float) -> Sizes:
    """The sizes, but a very large cache only as an upper bound, unless idle time restored it.

    `drive` is the drive's size in bytes, 0 if unknown, and `restored` the largest share that was
    available again. With one bit per cell, flash for three holds a third of its data. If more was
    written before the drop, a cache may have been full before, without a drop where direct writes
    are as fast. The drop may then come when no flash is free.
    """
    cache = sizes.cache
    if cache is None or not cache.is_determined or restored >= _RESTORED:
        return sizes
    if cache.high == 0 or not drive or last.at <= _LARGEST * drive:
        return sizes
    why = (
        f"{cache.why}; that is {last.at / drive:.0%} of the drive, and idle time did not restore "
        "it: the SLC cache was full, or it borrowed flash that the data needs"
    )
    return Sizes(sizes.buffer, Size(0.0, cache.high, why))


def _divided(
    passes: Sequence[WritePass],
    capacity: float,
    flushes: _Flushes,
    freed: Freed | None,
    back: Size | None,
    limit: float | None,
) -> Sizes | None:
    """Divides the bytes of the first pass before its last drop into buffer and SLC cache.

    `freed` is what pauses freed, `back` the size of the buffer by reads, `limit` the most that it
    holds. None if only pauses can divide them.
    """
    first, flushed = passes[:2]
    last, after = first.last_drop, flushed.last_drop
    assert last is not None, "without a drop there is nothing to divide"
    total = f"{last.at / MIB:.4g} MiB before the last drop"
    program_s = flushes.program_s
    same_rate = after is not None and abs(after.after / last.after - 1) < _SAME_RATE
    is_small = after is not None and after.at < _SURE_BELOW
    sure = [] if back is None else [back]
    # Later writes filled the buffer again for sure only if it is small.
    count = 1 if not same_rate else len(flushes.waits_s) if is_small else 2
    emptied = [each for each in passes if each.case == "emptied" and is_small]
    later = _Later(
        _flushed(first, flushes, count),
        [(each, each.early_drop) for each in emptied if each.early_drop is not None],
        program_s,
        last.before,
    )
    if after is not None and refilled(flushed, last) >= RECOVERED * capacity:
        why = f"{total}, and as much again right after a flush: a write buffer"
        again = [(first, last), (flushed, after)] if same_rate else [(first, last)]
        sure.append(
            typical([buffered(each, drop, why, Programs(program_s)) for each, drop in again])
        )
        buffer = later.combined_with(sure)
        return Sizes(buffer, _gentle_cache(first, buffer, f"{why}, not an SLC cache"))
    if first.early_drop is not None:
        sure += [_before_cache(first, first.early_drop, last), *([freed.size] if freed else [])]
    if (
        after is not None
        and same_rate
        and after.at >= REQUESTS_MIN * first.block_bytes
        and flushes.waits_s[0] > after.buffered / after.after / 2
    ):
        later.writes.append((flushed, after))
        if first.early_drop is None and abs(after.before / last.before - 1) < _SAME_RATE:
            # Both passes filled the buffer at the same rates.
            cache = _difference(first, flushed, total)
            if cache.high > _CACHE_LEAST:
                return Sizes(later.combined_with(sure), cache)
    if not (sure or later.flushed or later.writes):
        return None
    if back is not None and sure == [back] and not (later.flushed or later.writes):
        held = buffered(first, last, total)
        if not _is_confirmed(back, held, last, freed, limit):
            return _either(total, held)
    buffer = later.combined_with(sure)
    if back is not None and _rest(first, buffer).high < _CACHE_MIN:
        buffer = later.combined_with([*sure, buffered(first, last, total)])
    return Sizes(buffer, _cache_of_rest(first, buffer))


def _is_confirmed(
    back: Size, held: Size, last: RateDrop, freed: Freed | None, limit: float | None
) -> bool:
    """Whether the buffer is not larger than reads show, although it may have held `held` bytes.

    Reads show too little if a buffer does not program data in the order of the writes.
    """
    if freed is not None and overlap([back, freed.size]) is not None:
        return True
    return back.high >= held.low or (limit is not None and last.buffered > limit)


@dataclass
class _Later:
    """What flushes and writes after them show of the buffer, when the drive may relocate data.

    `cached` is the rate at which an SLC cache may take data.
    """

    flushed: Size | None
    writes: list[tuple[WritePass, RateDrop]]
    program_s: float | None
    cached: float

    def combined_with(self, sure: Sequence[Size]) -> Size:
        """The size by these and by the `sure` intervals."""
        flushed, written = self.flushed, self._written(0.0)
        if flushed is not None and written is not None and agreed([flushed, written]) is None:
            if not sure:
                return contradicting([flushed, written])
            flushed = written = None
        elif not sure:
            written = self._written(self.cached)
        return combined(sure, flushed, written)

    def _written(self, cached: float) -> Size | None:
        """What the writes show if an SLC cache took data at the rate `cached`."""
        programs = Programs(self.program_s, cached=cached)
        why = "written before the drop after a flush"
        sizes = [buffered(each, drop, why, programs) for each, drop in self.writes]
        return typical(sizes) if sizes else None


def _flushed(first: WritePass, flushes: _Flushes, count: int) -> Size | None:
    """What the first `count` flushes programmed; None if a flush does not wait."""
    if flushes.program_s is None:
        return None
    assert first.last_drop is not None
    falls = _later_falls(first)
    last = falls[-1] if falls else first.last_drop
    found = flushed_bytes(flushes.waits_s[:count], last.after, flushes.program_s)
    # Right after the drop flash may be slower than at the flush, and while it folds a cache. If it
    # folds while it takes writes, it may do so during the flush, too.
    fastest = rate_after([(first.curve, last)]) or 0.0
    if first.middle_drop:
        fastest = max(fastest, first.middle_drop.after)
    low = 0.0 if first.middle_drop else found.low
    return replace(found, low=low, high=found.high * max(1.0, fastest / last.after))


def _before_cache(first: WritePass, early: RateDrop, last: RateDrop) -> Size:
    """What the buffer held at the first drop, from where an SLC cache or flash takes the writes."""
    is_cached = early.after > _CACHED * last.after
    longest_s = SLC_PROGRAM_MAX_S if is_cached else PROGRAM_MAX_S
    return buffered(first, early, "written before the first drop", Programs(longest_s=longest_s))


def _difference(first: WritePass, flushed: WritePass, total: str) -> Size:
    """The size of an SLC cache if only the first of these passes filled it.

    If the cache programs as fast as the link, the buffer fills after it, and the first pass has
    more bytes before its drop by the size of the cache. If the cache is slower, the buffer fills in
    the meantime, too. No earlier drop was seen, so at most it was full when the cache was: then the
    cache took all that the buffer did not hold.
    """
    last, after = first.last_drop, flushed.last_drop
    assert last is not None, "both passes filled the buffer"
    assert after is not None, "both passes filled the buffer"
    margin = first.margin(last) + flushed.margin(after)
    why = f"{total}, less the {after.at / MIB:.4g} MiB right after a flush"
    return Size(last.at - after.at - margin, last.at - after.buffered + margin, why)


def _cache_of_rest(first: WritePass, buffer: Size) -> Size:
    """The size of an SLC cache that took the rest; there may be none if the rate dropped once."""
    rest = _rest(first, buffer)
    if rest.high < _CACHE_LEAST:
        return _too_little(first, buffer, rest)
    if rest.low >= _CACHE_LEAST or first.early_drop is not None:
        return rest
    slower = _gentle_cache(first, buffer, rest.why)
    if rest.high < _CACHE_MIN and slower.high > 0:  # the buffer alone was full at the last drop
        return slower
    return replace(rest, low=0.0, high=max(rest.high, slower.high))


def _too_little(first: WritePass, buffer: Size, rest: Size) -> Size:
    """The size of an SLC cache if the buffer leaves hardly anything for one."""
    why = f"{rest.why}, leaves at most {rest.high / MIB:.3g} MiB: too little for an SLC cache"
    return _gentle_cache(first, buffer, why)


def _later_falls(first: WritePass) -> list[RateDrop]:
    """Falls of the rate after the last steep drop."""
    assert first.last_drop is not None
    return [drop for drop in rate_drops(first.curve) if drop.at > first.last_drop.at / EARLY]


def _gentle_cache(first: WritePass, buffer: Size, otherwise: str) -> Size:
    """The size of an SLC cache that is little faster than direct writes, if the rate falls again.

    None is seen otherwise, for the reason `otherwise`.
    """
    falls = _later_falls(first)
    if not falls:
        return Size(0, 0, otherwise)
    end = falls[-1]
    why = (
        f"{end.at / MIB:.4g} MiB before the rate falls once more, from {end.before / MIB:.4g} to "
        f"{end.after / MIB:.4g} MiB/s, less the buffer"
    )
    margin = first.margin(end)
    return Size(end.at - buffer.high - margin, end.at - buffer.low + margin, why)


def _rest(first: WritePass, buffer: Size) -> Size:
    """The size of the SLC cache: the bytes before the last drop, less the buffer."""
    last = first.last_drop
    assert last is not None
    end = first.middle_drop or last
    why = f"{last.at / MIB:.4g} MiB before the last drop, less the buffer"
    low, high = end.at - buffer.high, last.at - buffer.low
    if end is last:  # the buffer fills last, while the link brings more than flash programs
        low -= buffer.high * max(0.0, last.before / (last.before - last.after) - 1)
    return Size(low - first.margin(end), high + first.margin(last), why)


def _unflushed(
    first: WritePass,
    freed: Freed | None,
    refill: Finding,
    capacity: float,
    limit: float | None,
) -> Sizes:
    """The sizes if there is one drop only, and a flush frees nothing; `limit` is the buffer's."""
    last = first.last_drop
    assert last is not None
    total = f"{last.at / MIB:.4g} MiB before the last drop"
    held = buffered(first, last, total)
    if freed is not None:
        buffer = freed.size
        if freed.position < _SHARED * capacity:
            return Sizes(buffer, _rest(first, buffer))
        is_small = held.high <= _CACHE_MIN and (limit is None or last.buffered <= limit)
        if is_small or (held.low <= BUFFER_MAX and freed.is_steady):
            why = f"{total}, and as much again after a pause that lets flash program them"
            whole = combined([held, buffer])
            found_size = Size(whole.low, whole.high, f"{why}: a buffer that a flush does not empty")
            why = f"{why}: a buffer, not an SLC cache"
            return Sizes(found_size, _gentle_cache(first, found_size, why))
    return _undivided(first, refill, held, limit)


def _undivided(first: WritePass, refill: Finding, held: Size, limit: float | None) -> Sizes:
    """The sizes if pauses do not tell a buffer from an SLC cache."""
    last = first.last_drop
    assert last is not None
    total = f"{last.at / MIB:.4g} MiB before the last drop"
    program_s = last.at / last.after
    drains = isinstance(refill.value, float) and (
        refill.value <= _DRAIN_FACTOR * program_s or refill.low is None  # no shorter rest was tried
    )
    most = last.at + first.margin(last)
    if most < _CACHE_LEAST or (drains and most <= _CACHE_MIN):
        why = f"{total}, too little for an SLC cache"
        if drains:
            why = f"{total}; a rest that is just long enough to program them makes room again"
        buffer = Size(held.low, held.high, f"{why}: a buffer that a flush does not empty")
        why = f"{why}: a buffer, not an SLC cache"
        return Sizes(buffer, _gentle_cache(first, buffer, why))
    if limit is None or last.buffered <= limit:
        return _either(total, held)
    end = first.middle_drop or last
    share = limit / (1 - end.after / end.before) + first.margin(end)
    why = (
        f"{total}, of which a buffer may have taken {share / MIB:.4g} MiB: rests that empty it "
        "freed no more"
    )
    return Sizes(None, Size(max(0.0, end.at - share), most, why))


def _either(total: str, held: Size) -> Sizes:
    """The sizes if one drop may be that of a buffer or of an SLC cache."""
    why = (
        f"{total}: either a buffer of {held.low / MIB:.4g} to {held.high / MIB:.4g} MiB that a "
        "flush does not empty, or an SLC cache that is as fast as the link"
    )
    return Sizes(None, None, why)

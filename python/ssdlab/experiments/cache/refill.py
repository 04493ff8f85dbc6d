"""The idle time after which an SLC cache takes as much again, and what it shows of the buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ssdlab.experiments.cache.buffers import WritePass
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop, bytes_as_fast
from ssdlab.units import format_duration

RECOVERED: Final = 0.95
"""The cache has recovered when this share of its first capacity is free."""

_MORE: Final = 0.01
"""Two rests made unlike shares available if these differ by more than this."""
_SLOWER: Final = 0.7
"""Of what flash programs in a rest: if less was freed, the rest emptied the buffer."""
_BUSY: Final = 0.8
"""Of the rate of programs: a slower drive does other work."""
_GENTLE: Final = (0.5, 1.2)
"""Of the rate before a drop, and of the sustained one: after a drop to a rate above both, a buffer
need not have been full."""
_DISTURBED: Final = 1.25
"""Factor of the limit: garbage collection may have taken a part of the rest."""


def buffer_limit(passes: Sequence[WritePass], rate: float) -> float | None:
    """The most bytes that a write buffer can hold, by what rests freed; None if they show no limit.

    An idle drive programs its buffer at `rate`, in bytes/s, until it is empty. So if a rest frees
    less than flash programs in that time, the buffer holds no more than that. If the next write is
    slower than `rate` after its drops, the drive does other work, which may have taken the rest,
    too, or stalled the write. Then the rest must suffice to program a whole write.
    """
    freed = [
        (rate * (each.rest_s or 0.0), each, drop.buffered)
        for each in passes
        if each.case == "rested"
        for drop in each.drops
        if drop.after < max(_GENTLE[0] * drop.before, _GENTLE[1] * rate)
    ]
    held = [
        bytes_
        for programmed, each, bytes_ in freed
        if bytes_ < _SLOWER * programmed
        and (programmed > each.curve.written or not _is_busy(each, rate))
    ]
    return _DISTURBED * min(held) if held else None


def _is_busy(write_pass: WritePass, rate: float) -> bool:
    return min(drop.after for drop in write_pass.drops) < _BUSY * rate


def refilled(write_pass: WritePass, first: RateDrop) -> float:
    """Bytes that a pass wrote as fast as the first one before its last drop, `first`."""
    drops = (write_pass.last_drop, write_pass.early_drop)
    return bytes_as_fast(write_pass.curve, drops, first)


def refill_time(rested: Sequence[WritePass], first: RateDrop, capacity: float) -> Finding:
    """The idle time that frees `capacity` bytes: between one too short and one long enough.

    A rest after which less was available than after a shorter one was not too short: something
    else was the limit, as free flash is to a cache that borrows it. If no rest was long enough,
    those count that made more available than each shorter one.
    """
    if not rested:
        return Finding(None, "s", None, None, "no rest was tried")
    rests = sorted((each.rest_s or 0.0, refilled(each, first) / capacity) for each in rested)
    enough_s = [rest_s for rest_s, share in rests if rest_s and share >= RECOVERED]
    if not enough_s:
        best_s, most = max(rests, key=lambda rest: rest[1])
        low = max(_too_short(rests, more=_MORE))
        why = (
            f"no rest up to {format_duration(rests[-1][0])} was long enough: at most "
            f"{most:.0%} was available again, after {format_duration(best_s)}"
        )
        if low < rests[-1][0]:
            why += f"; longer rests than {format_duration(low)} did not increase it"
        return Finding(None, "s", low, None, why)
    high = min(enough_s)
    shorter = [rest for rest in rests if 0 < rest[0] < high]
    if not shorter:
        why = f"the shortest rest that was tried, {format_duration(high)}, was long enough"
        return Finding(high, "s", None, high, why)
    low = max(_too_short(shorter, more=-_MORE))
    if low < shorter[-1][0]:
        why = (
            f"{format_duration(high)} was long enough; less was available after "
            f"{format_duration(shorter[-1][0])} than after a shorter rest, so that something "
            "else than idle time may have been the limit"
        )
        return Finding(None, "s", low, high, why)
    why = (
        f"{format_duration(low)} was too short and {format_duration(high)} long enough: known "
        f"within a factor of {high / low:.2f}"
    )
    return Finding((low * high) ** 0.5, "s", low, high, why)


def _too_short(rests: Sequence[tuple[float, float]], more: float) -> Iterator[float]:
    """The rests, shortest first, that made `more` available than each shorter one."""
    most = -1.0
    for rest_s, share in rests:
        if share >= most + more:
            yield rest_s
        most = max(most, share)

"""The idle time after which an SLC cache takes as much again, and what it shows of the buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ssdlab.experiments.cache.buffers import WritePass
from ssdlab.records import Finding
from ssdlab.stats.rate_drops import RateDrop
from ssdlab.units import format_duration

RECOVERED: Final = 0.95
"""The cache has recovered when this share of its first capacity is free, as in the measurement."""

_SLOWER: Final = 0.7
"""Of what flash programs in a rest: if less was freed, the rest emptied the buffer."""
_DISTURBED: Final = 1.25
"""Factor of the limit: garbage collection may have taken a part of the rest."""


def buffer_limit(passes: Sequence[WritePass], rate: float) -> float | None:
    """The most bytes that a write buffer can hold, by what rests freed; None if they show no limit.

    An idle drive programs its buffer at `rate`, in bytes/s, until it is empty. So if a rest frees
    less than flash programs in that time, the buffer holds no more than that.
    """
    freed = [
        (each.rest_s or 0.0, min((drop.buffered for drop in each.drops), default=None))
        for each in passes
        if each.case == "rested"
    ]
    held = [
        bytes_
        for rest_s, bytes_ in freed
        if bytes_ is not None and bytes_ < _SLOWER * rate * rest_s
    ]
    return _DISTURBED * min(held) if held else None


def refilled(write_pass: WritePass, first: RateDrop) -> float:
    """Bytes that a pass wrote as fast as the first one before its last drop, `first`."""
    if write_pass.last_drop is None:
        return write_pass.curve.written
    drops = (write_pass.last_drop, write_pass.early_drop)
    return max((drop.at for drop in drops if drop and drop.is_as_fast(first)), default=0.0)


def refill_time(rested: Sequence[WritePass], first: RateDrop, capacity: float) -> Finding:
    """The idle time that frees `capacity` bytes: between one too short and one long enough."""
    if not rested:
        return Finding(None, "s", None, None, "no rest was tried")
    rests = [(each.rest_s or 0.0, refilled(each, first) / capacity) for each in rested]
    enough_s = [rest_s for rest_s, share in rests if rest_s and share >= RECOVERED]
    if not enough_s:
        best_s, most = max(rests, key=lambda rest: rest[1])
        longest = max(rest_s for rest_s, _ in rests)
        why = (
            f"no rest up to {format_duration(longest)} was long enough: at most "
            f"{most:.0%} was available again, after {format_duration(best_s)}"
        )
        return Finding(None, "s", longest, None, why)
    high = min(enough_s)
    too_short_s = [rest_s for rest_s, share in rests if 0 < rest_s < high and share < RECOVERED]
    if not too_short_s:
        why = f"the shortest rest that was tried, {format_duration(high)}, was long enough"
        return Finding(high, "s", None, high, why)
    low = max(too_short_s)
    why = (
        f"{format_duration(low)} was too short and {format_duration(high)} long enough: known "
        f"within a factor of {high / low:.2f}"
    )
    return Finding((low * high) ** 0.5, "s", low, high, why)

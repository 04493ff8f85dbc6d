"""What of a device is measured and rewritten: ranges cut at the device's own grid; numbers alone.

All lists are sorted by offset and do not overlap; a device may have a million ranges, so nothing
here looks at each pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ssdlab.heal.pieces import Range, joined, total

WINDOW_BYTES: Final = 4 << 20
"""So much is read, journaled and written at once, at multiples of it."""
GUARDED_BYTES: Final = 64 << 10
"""The first bytes of a device are never rewritten: its superblock tells whether it was in use since
the journal was written, so it must not itself be torn."""
PAGE_BYTES: Final = 4096
"""A page of zeros is left: it may be trimmed, or reserved and never written, and a write would take
flash for it."""
_ZEROS: Final = bytes(PAGE_BYTES)


@dataclass(frozen=True, slots=True)
class Window:
    """Ranges that are rewritten together: all within one `WINDOW_BYTES` of the device."""

    ranges: tuple[Range, ...]

    @property
    def offset(self) -> int:
        """First byte."""
        return self.ranges[0].offset

    @property
    def length(self) -> int:
        """Bytes of its ranges."""
        return total(self.ranges)


def gridded(ranges: Iterable[Range], step: int) -> list[Range]:
    """The same ranges, cut at each multiple of `step`."""
    found = []
    for each in ranges:
        at = each.offset
        while at < each.end:
            end = min(each.end, (at // step + 1) * step)
            found.append(Range(at, end - at))
            at = end
    return found


def windows(ranges: Iterable[Range]) -> list[Window]:
    """Ranges by the window of the device that they are in."""
    parts = groupby(gridded(ranges, WINDOW_BYTES), key=lambda each: each.offset // WINDOW_BYTES)
    return [Window(tuple(group)) for _, group in parts]


def overlap(left: Sequence[Range], right: Sequence[Range]) -> list[Range]:
    """What is in both."""
    found, one, other = [], 0, 0
    while one < len(left) and other < len(right):
        start = max(left[one].offset, right[other].offset)
        end = min(left[one].end, right[other].end)
        if start < end:
            found.append(Range(start, end - start))
        if left[one].end < right[other].end:
            one += 1
        else:
            other += 1
    return found


def complement(ranges: Iterable[Range], size_bytes: int) -> list[Range]:
    """What of a device is in none of the ranges."""
    found, at = [], 0
    for each in joined(ranges):
        if each.offset > at:
            found.append(Range(at, min(each.offset, size_bytes) - at))
        at = max(at, each.end)
    if at < size_bytes:
        found.append(Range(at, size_bytes - at))
    return [each for each in found if each.length > 0]


def measurable(allocated: Iterable[Range], piece_bytes: int, size_bytes: int) -> list[Range]:
    """Whole pieces of the device's grid of which at least half is in use: their speeds compare."""
    parts = groupby(gridded(allocated, piece_bytes), key=lambda each: each.offset // piece_bytes)
    busy = [number for number, group in parts if total(group) >= piece_bytes // 2]
    whole = [Range(number * piece_bytes, piece_bytes) for number in busy]
    return [each for each in whole if each.end <= size_bytes]


def without_zeros(window: Window, content: bytes) -> tuple[Window | None, bytes]:
    """The window without pages of zeros; `content` is what its ranges hold, in their order.

    None: nothing else is in it.
    """
    kept: list[Range] = []
    parts: list[bytes] = []
    at = 0
    for each in window.ranges:
        for part in gridded([each], PAGE_BYTES):
            here = content[at : at + part.length]
            at += part.length
            if here == _ZEROS[: part.length]:
                continue
            kept.append(part)
            parts.append(here)
    if not kept:
        return None, b""
    return Window(tuple(joined(kept))), b"".join(parts)

"""How the ranges of a device are grouped for measuring and rewriting; no I/O.

All lists are sorted by offset, without overlaps. A device can have a million ranges, so no function
compares all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ssdlab.heal.pieces import Range, merge, split_at_grid, total_bytes

WINDOW_BYTES: Final = 4 << 20
"""At most this many bytes are read, journaled and written at once; windows start at multiples."""
PROTECTED_BYTES: Final = 64 << 10
"""The first bytes of a device are never rewritten. The superblock there shows whether the file
system was used after the journal was written, so it must not be torn itself."""
PAGE_BYTES: Final = 4096
"""Pages of zeros are skipped: they may be trimmed or unwritten, and a write would occupy flash."""
_ZEROS: Final = bytes(PAGE_BYTES)


@dataclass(frozen=True, slots=True)
class Window:
    """Ranges that are rewritten together, all within one aligned `WINDOW_BYTES` of the device."""

    ranges: tuple[Range, ...]

    @property
    def offset(self) -> int:
        """First byte."""
        return self.ranges[0].offset

    @property
    def length(self) -> int:
        """Sum of its ranges' lengths."""
        return total_bytes(self.ranges)


def split_into_windows(ranges: Iterable[Range]) -> list[Window]:
    """The ranges, split at multiples of `WINDOW_BYTES` and grouped by window."""
    parts = groupby(
        split_at_grid(ranges, WINDOW_BYTES), key=lambda each: each.offset // WINDOW_BYTES
    )
    return [Window(tuple(group)) for _, group in parts]


def complement(ranges: Iterable[Range], size_bytes: int) -> list[Range]:
    """The bytes of a device that are in none of the ranges."""
    gaps, position = [], 0
    for each in merge(ranges):
        if each.offset > position:
            gaps.append(Range(position, min(each.offset, size_bytes) - position))
        position = max(position, each.end)
    if position < size_bytes:
        gaps.append(Range(position, size_bytes - position))
    return [each for each in gaps if each.length > 0]


def measurable_pieces(allocated: Iterable[Range], piece_bytes: int, size_bytes: int) -> list[Range]:
    """The aligned pieces of which at least half is in use: their speeds are comparable."""
    parts = groupby(
        split_at_grid(allocated, piece_bytes), key=lambda each: each.offset // piece_bytes
    )
    used = [number for number, group in parts if total_bytes(group) >= piece_bytes // 2]
    pieces = [Range(number * piece_bytes, piece_bytes) for number in used]
    return [each for each in pieces if each.end <= size_bytes]


def drop_zero_pages(window: Window, content: bytes) -> tuple[Window | None, bytes]:
    """The window and its content without pages of zeros; None if all its pages are zeros.

    `content` has the contents of the window's ranges, one after the other.
    """
    kept: list[Range] = []
    parts: list[bytes] = []
    position = 0
    for each in window.ranges:
        for part in split_at_grid([each], PAGE_BYTES):
            page = content[position : position + part.length]
            position += part.length
            if page == _ZEROS[: part.length]:
                continue
            kept.append(part)
            parts.append(page)
    if not kept:
        return None, b""
    return Window(tuple(merge(kept))), b"".join(parts)

"""Range arithmetic: which pieces a file has, which are slow, and what to rewrite; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from ssdlab.storage_stack.extents import Extent

FASTEST_SHARE: Final = 0.1
"""The fastest tenth of the pieces gives the fresh speed if no better estimate exists."""
MIN_GAIN: Final = 1.05
"""If the first rewritten part is not faster by this factor, the heal stops."""


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive bytes of a file or device."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """First byte after the range."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Piece:
    """A range and its read speed in bytes per second; None if it was not measured."""

    range: Range
    bytes_per_s: float | None = None


def written_ranges(extents: Iterable[Extent], size_bytes: int, block: int) -> list[Range]:
    """The ranges of a file that have data, merged, up to its end rounded up to a block.

    Positions on the device are ignored: the order of writing is what ages a file.
    """
    limit = -(-size_bytes // block) * block
    ranges: list[Range] = []
    for extent in extents:
        start, end = extent.logical, min(extent.end, limit)
        if not extent.is_written or start >= end:
            continue
        if ranges and ranges[-1].end == start:
            ranges[-1] = Range(ranges[-1].offset, end - ranges[-1].offset)
        else:
            ranges.append(Range(start, end - start))
    return ranges


def split_into_pieces(ranges: Iterable[Range], piece_bytes: int) -> list[Range]:
    """Splits at multiples of `piece_bytes`; a remainder below half a piece joins its neighbour."""
    pieces: list[Range] = []
    for each in ranges:
        parts = split_at_grid([each], piece_bytes)
        if len(parts) > 1 and parts[-1].length < piece_bytes // 2:
            last = parts.pop()
            parts[-1] = Range(parts[-1].offset, parts[-1].length + last.length)
        pieces += parts
    return pieces


def split_at_grid(ranges: Iterable[Range], step: int) -> list[Range]:
    """The same ranges, split at each multiple of `step` bytes."""
    parts = []
    for each in ranges:
        position = each.offset
        while position < each.end:
            end = min(each.end, (position // step + 1) * step)
            parts.append(Range(position, end - position))
            position = end
    return parts


def split_into_chunks(ranges: Iterable[Range], chunk_bytes: int) -> list[Range]:
    """Splits each range, from its start, into chunks of at most `chunk_bytes`."""
    return [
        Range(start, min(chunk_bytes, each.end - start))
        for each in ranges
        for start in range(each.offset, each.end, chunk_bytes)
    ]


def intersection(left: Sequence[Range], right: Sequence[Range]) -> list[Range]:
    """The bytes in both lists; each must be sorted by offset, without overlaps."""
    common, one, other = [], 0, 0
    while one < len(left) and other < len(right):
        start = max(left[one].offset, right[other].offset)
        end = min(left[one].end, right[other].end)
        if start < end:
            common.append(Range(start, end - start))
        if left[one].end < right[other].end:
            one += 1
        else:
            other += 1
    return common


def subtract(ranges: Iterable[Range], removed: Iterable[Range]) -> list[Range]:
    """The bytes of `ranges` that are not in `removed`."""
    left = list(ranges)
    for gone in removed:
        parts = []
        for each in left:
            ends = (
                (each.offset, min(each.end, gone.offset)),
                (max(each.offset, gone.end), each.end),
            )
            parts += [Range(start, end - start) for start, end in ends if start < end]
        left = parts
    return left


def merge(ranges: Iterable[Range]) -> list[Range]:
    """The ranges sorted by offset, with adjacent and overlapping ones merged."""
    merged: list[Range] = []
    for each in sorted(ranges, key=lambda each: each.offset):
        if merged and each.offset <= merged[-1].end:
            end = max(merged[-1].end, each.end)
            merged[-1] = Range(merged[-1].offset, end - merged[-1].offset)
        else:
            merged.append(each)
    return merged


def align(ranges: Iterable[Range], block: int) -> list[Range]:
    """The ranges, extended to whole blocks and merged."""
    aligned = []
    for each in ranges:
        start = each.offset // block * block
        aligned.append(Range(start, -(-each.end // block) * block - start))
    return merge(aligned)


def total_bytes(ranges: Iterable[Range]) -> int:
    """Sum of the lengths."""
    return sum(each.length for each in ranges)


def fastest_speed(pieces: Sequence[Piece]) -> float | None:
    """Median speed of the fastest tenth (at least one piece); None if no piece was measured."""
    speeds = sorted((p.bytes_per_s for p in pieces if p.bytes_per_s is not None), reverse=True)
    if not speeds:
        return None
    return median(speeds[: max(1, round(len(speeds) * FASTEST_SHARE))])


def slow_ranges(pieces: Iterable[Piece], fresh: float, slower_than: float) -> list[Range]:
    """The ranges, merged, of pieces slower than `slower_than` times the speed `fresh`."""
    limit = fresh * slower_than
    return merge(
        piece.range
        for piece in pieces
        if piece.bytes_per_s is not None and piece.bytes_per_s < limit
    )


def average_speed(pieces: Iterable[Piece]) -> float | None:
    """Mean speed in bytes per second of all measured pieces, read one after the other."""
    known = [(p.range.length, p.bytes_per_s) for p in pieces if p.bytes_per_s]
    seconds = sum(length / speed for length, speed in known)
    return sum(length for length, _ in known) / seconds if seconds else None


def is_faster(before: Sequence[Piece], after: Sequence[Piece]) -> bool:
    """Whether the same pieces read faster by at least MIN_GAIN, or the speed is unknown."""
    old, new = average_speed(before), average_speed(after)
    return old is None or new is None or new >= old * MIN_GAIN


def overlapping_pieces(pieces: Iterable[Piece], ranges: Iterable[Range]) -> list[Piece]:
    """The pieces that share a byte with one of the ranges."""
    known = list(ranges)
    return [
        piece
        for piece in pieces
        if any(each.offset < piece.range.end and piece.range.offset < each.end for each in known)
    ]


def update_pieces(pieces: Iterable[Piece], newer: Iterable[Piece]) -> list[Piece]:
    """The pieces, each replaced by its newer measurement if there is one."""
    known = {piece.range.offset: piece for piece in newer}
    return [known.get(piece.range.offset, piece) for piece in pieces]

"""Which pieces a file has, which of them are slow, and what is to be rewritten: numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from ssdlab.storage_stack.extents import Extent

FASTEST_SHARE: Final = 0.1
"""The fastest tenth of the pieces stands for the fresh speed where nothing better is known."""
GAIN_LEAST: Final = 1.05
"""A first rewrite that does not read by so much faster is the last one."""


@dataclass(frozen=True, slots=True)
class Range:
    """A run of a file's bytes."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """First byte after it."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Piece:
    """A range and how fast it reads, in bytes a second; None where it was not measured."""

    range: Range
    bytes_per_s: float | None = None


def written_ranges(extents: Iterable[Extent], size_bytes: int, block: int) -> list[Range]:
    """What of a file is on the drive: neighbours joined, cut at its end rounded up to a block.

    Where it lies on the device does not matter here: what ages is the order of writing.
    """
    limit = -(-size_bytes // block) * block
    found: list[Range] = []
    for extent in extents:
        start, end = extent.logical, min(extent.end, limit)
        if not extent.is_written or start >= end:
            continue
        if found and found[-1].end == start:
            found[-1] = Range(found[-1].offset, end - found[-1].offset)
        else:
            found.append(Range(start, end - start))
    return found


def cut(ranges: Iterable[Range], piece_bytes: int) -> list[Range]:
    """Pieces at multiples of `piece_bytes`; a remainder of less than half joins its neighbour."""
    found: list[Range] = []
    for each in ranges:
        inside: list[Range] = []
        position = each.offset
        while position < each.end:
            end = min(each.end, (position // piece_bytes + 1) * piece_bytes)
            inside.append(Range(position, end - position))
            position = end
        if len(inside) > 1 and inside[-1].length < piece_bytes // 2:
            last = inside.pop()
            inside[-1] = Range(inside[-1].offset, inside[-1].length + last.length)
        found += inside
    return found


def within(ranges: Iterable[Range], chosen: Iterable[Range]) -> list[Range]:
    """What of `ranges` lies in `chosen`, by rising offset."""
    wanted = sorted(chosen, key=lambda each: each.offset)
    found = []
    for each in ranges:
        for want in wanted:
            start, end = max(each.offset, want.offset), min(each.end, want.end)
            if start < end:
                found.append(Range(start, end - start))
    return joined(found)


def without(ranges: Iterable[Range], done: Iterable[Range]) -> list[Range]:
    """What of `ranges` is not in `done`."""
    left = list(ranges)
    for gone in done:
        parts = []
        for each in left:
            ends = (
                (each.offset, min(each.end, gone.offset)),
                (max(each.offset, gone.end), each.end),
            )
            parts += [Range(start, end - start) for start, end in ends if start < end]
        left = parts
    return left


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Neighbours and overlaps as one, by rising offset."""
    found: list[Range] = []
    for each in sorted(ranges, key=lambda each: each.offset):
        if found and each.offset <= found[-1].end:
            end = max(found[-1].end, each.end)
            found[-1] = Range(found[-1].offset, end - found[-1].offset)
        else:
            found.append(each)
    return found


def aligned(ranges: Iterable[Range], block: int) -> list[Range]:
    """Grown to whole blocks."""
    grown = []
    for each in ranges:
        start = each.offset // block * block
        grown.append(Range(start, -(-each.end // block) * block - start))
    return joined(grown)


def chunks(ranges: Iterable[Range], chunk_bytes: int) -> list[Range]:
    """Each range in chunks of at most so many bytes, from its start."""
    return [
        Range(start, min(chunk_bytes, each.end - start))
        for each in ranges
        for start in range(each.offset, each.end, chunk_bytes)
    ]


def total(ranges: Iterable[Range]) -> int:
    """Bytes of them all."""
    return sum(each.length for each in ranges)


def fastest(pieces: Sequence[Piece]) -> float | None:
    """The median of the fastest tenth, at least one piece; None where none was measured."""
    speeds = sorted((p.bytes_per_s for p in pieces if p.bytes_per_s is not None), reverse=True)
    if not speeds:
        return None
    return median(speeds[: max(1, round(len(speeds) * FASTEST_SHARE))])


def slow(pieces: Iterable[Piece], fresh: float, slower_than: float) -> list[Range]:
    """Pieces that read below the share `slower_than` of the speed `fresh`, neighbours joined."""
    limit = fresh * slower_than
    return joined(
        piece.range
        for piece in pieces
        if piece.bytes_per_s is not None and piece.bytes_per_s < limit
    )


def overall(pieces: Iterable[Piece]) -> float | None:
    """Bytes a second over all measured pieces, read one after the other."""
    known = [(p.range.length, p.bytes_per_s) for p in pieces if p.bytes_per_s]
    seconds = sum(length / speed for length, speed in known)
    return sum(length for length, _ in known) / seconds if seconds else None


def brought_gain(before: Sequence[Piece], after: Sequence[Piece]) -> bool:
    """Whether a rewrite made the same pieces read faster by enough to go on."""
    was, now = overall(before), overall(after)
    return was is None or now is None or now >= was * GAIN_LEAST


def touching(pieces: Iterable[Piece], ranges: Iterable[Range]) -> list[Piece]:
    """The pieces that have a byte in the ranges."""
    found = list(ranges)
    return [
        piece
        for piece in pieces
        if any(each.offset < piece.range.end and piece.range.offset < each.end for each in found)
    ]


def replaced(pieces: Iterable[Piece], newer: Iterable[Piece]) -> list[Piece]:
    """The pieces, each as it was measured last."""
    known = {piece.range.offset: piece for piece in newer}
    return [known.get(piece.range.offset, piece) for piece in pieces]

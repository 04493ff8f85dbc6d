"""Compares blocks with the data written to them.

Only digests are kept, and only in memory: a freed block may contain another file's data by the time
it is read. Such a block counts as "other" and decides nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ssdlab.device import DirectReader

BLOCK: Final = 4096
"""Bytes compared at a time: file systems free no smaller unit, and few drives map a smaller one."""
Span = tuple[int, int]
"""Start and length of a range in bytes, both multiples of `BLOCK`."""


@dataclass(frozen=True)
class Tally:
    """Numbers of blocks that read as zeros, as FFh, as written, or as other bytes."""

    zeros: int = 0
    ones: int = 0
    old: int = 0
    other: int = 0

    @property
    def blocks(self) -> int:
        """The number of blocks that were read."""
        return self.zeros + self.ones + self.old + self.other

    @property
    def is_gone(self) -> bool:
        """Whether no block reads as written any more."""
        return self.blocks > 0 and self.old == 0


def digests(source: DirectReader, spans: Sequence[Span]) -> list[bytes]:
    """One digest for each block, in the order of the spans.

    Raises:
        OSError: a read failed.
    """
    return [_digest(row) for piece in _rows(source, spans) for row in piece]


def tally(source: DirectReader, spans: Sequence[Span], known: Sequence[bytes]) -> Tally:
    """Compares each block with zeros, with FFh, and with the digest of the data written to it.

    Raises:
        OSError: a read failed.
    """
    zeros = ones = old = at = 0
    for piece in _rows(source, spans):
        is_zero, is_ones = ~piece.any(axis=1), (piece == 0xFF).all(axis=1)
        zeros, ones = zeros + int(is_zero.sum()), ones + int(is_ones.sum())
        for index in np.flatnonzero(~(is_zero | is_ones)):
            old += _digest(piece[index]) == known[at + int(index)]
        at += len(piece)
    assert at == len(known), f"{at} blocks were read, and {len(known)} are known"
    return Tally(zeros, ones, old, at - zeros - ones - old)


def _rows(source: DirectReader, spans: Sequence[Span]) -> Iterator[npt.NDArray[np.uint8]]:
    for start, length in spans:
        for piece in source.pieces(start, length):
            yield np.frombuffer(piece, dtype=np.uint8).reshape(-1, BLOCK)


def _digest(row: npt.NDArray[np.uint8]) -> bytes:
    return hashlib.blake2b(row.data, digest_size=16).digest()

"""What was written, so that it is known again, and what a look at the blocks found.

Of the content only digests are kept, in memory: a freed block may hold another's data by the time
it is read, and that is nobody's business. It counts as "other" and says nothing.
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
"""Bytes that are told apart: no file system here frees less, few drives map less."""
Span = tuple[int, int]
"""A range of bytes: where it starts, and how long it is; both multiples of `BLOCK`."""


@dataclass(frozen=True)
class Tally:
    """How many blocks read as zeros, as ones (FFh), as what was written there, or as neither."""

    zeros: int = 0
    ones: int = 0
    old: int = 0
    other: int = 0

    @property
    def blocks(self) -> int:
        """All that were read."""
        return self.zeros + self.ones + self.old + self.other

    @property
    def is_gone(self) -> bool:
        """Whether nothing is left of what was written: there is nothing to wait for."""
        return self.blocks > 0 and self.old == 0


def digests(source: DirectReader, spans: Sequence[Span]) -> list[bytes]:
    """One digest a block, in the order of the spans.

    Raises:
        OSError: a read failed.
    """
    return [_digest(row) for piece in _rows(source, spans) for row in piece]


def tally(source: DirectReader, spans: Sequence[Span], known: Sequence[bytes]) -> Tally:
    """Compares each block with zeros, with ones and with the digest of what was written there.

    Raises:
        OSError: a read failed.
    """
    zeros = ones = old = at = 0
    for piece in _rows(source, spans):
        is_zero, is_ones = ~piece.any(axis=1), (piece == 0xFF).all(axis=1)
        zeros, ones = zeros + int(is_zero.sum()), ones + int(is_ones.sum())
        for place in np.flatnonzero(~(is_zero | is_ones)):
            old += _digest(piece[place]) == known[at + int(place)]
        at += len(piece)
    assert at == len(known), f"{at} blocks were read, and {len(known)} are known"
    return Tally(zeros, ones, old, at - zeros - ones - old)


def _rows(source: DirectReader, spans: Sequence[Span]) -> Iterator[npt.NDArray[np.uint8]]:
    for start, length in spans:
        for piece in source.pieces(start, length):
            yield np.frombuffer(piece, dtype=np.uint8).reshape(-1, BLOCK)


def _digest(row: npt.NDArray[np.uint8]) -> bytes:
    return hashlib.blake2b(row.data, digest_size=16).digest()

"""Measures how fast the pieces of a file read, with direct I/O and the experiments' engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ssdlab.device import Drive, Job, RealOptions, open_engine, run_job
from ssdlab.errors import Interrupted
from ssdlab.heal.options import ProgressCallback
from ssdlab.heal.pieces import Piece, Range

REQUEST_BYTES: Final = 1 << 20
"""Size of a read request, at queue depth 1, as in the aging experiment."""
SECTOR: Final = 4096
MAX_READINGS: Final = 12
"""A piece counts as slow only if all its readings are slow: other programs use the drive too."""
MAX_ROUNDS_WITHOUT_CHANGE: Final = 3
"""Rereading ends after this many rounds in which no slow piece became fast."""


class ReadSpeedMeter:
    """A file opened read-only for measuring."""

    def __init__(self, path: Path, progress: ProgressCallback) -> None:
        """Opens the file.

        Raises:
            TargetError: its file system does not support direct I/O.
        """
        self._path, self._progress = path, progress
        options = RealOptions(writable=False, queue_depth=1)
        self._drive: Drive = open_engine(path, options)

    def measure(self, ranges: Sequence[Range], label: str) -> list[Piece]:
        """Reads each range once; one shorter than a sector or beyond the file's end has no speed.

        Raises:
            Interrupted: by Ctrl-C.
            DeviceFailure: a read failed.
        """
        pieces, done, total = [], 0, sum(each.length for each in ranges)
        for each in ranges:
            self._progress(label, done, total)
            pieces.append(Piece(each, self._speed_of(each)))
            done += each.length
        return pieces

    def best_of(self, pieces: Iterable[Piece], limit: float, label: str) -> list[Piece]:
        """Rereads pieces below `limit` bytes per second; returns the best reading of each piece."""
        best = {piece.range: piece for piece in pieces}
        slow, unchanged_rounds = _below(best.values(), limit), 0
        for _ in range(MAX_READINGS - 1):
            if not slow or unchanged_rounds == MAX_ROUNDS_WITHOUT_CHANGE:
                break
            for piece in self.measure(slow, label):
                if (piece.bytes_per_s or 0) > (best[piece.range].bytes_per_s or 0):
                    best[piece.range] = piece
            still_slow = _below(best.values(), limit)
            unchanged_rounds = unchanged_rounds + 1 if len(still_slow) == len(slow) else 0
            slow = still_slow
        return list(best.values())

    def close(self) -> None:
        """Closes the file."""
        del self._drive

    def _speed_of(self, each: Range) -> float | None:
        end = min(each.end, self._drive.capacity_bytes // SECTOR * SECTOR)
        length = end - each.offset
        length = length // REQUEST_BYTES * REQUEST_BYTES if length > REQUEST_BYTES else length
        if length < SECTOR:
            return None
        job = Job(
            op="read",
            offset_bytes=each.offset,
            length_bytes=length,
            block_bytes=min(REQUEST_BYTES, length),
            amount_bytes=length,
        )
        outcome = run_job(self._drive, job)
        if outcome.stopped:
            raise Interrupted("interrupted")
        outcome.raise_if_failed(f"{self._path} at byte {each.offset}")
        return outcome.bytes / outcome.seconds if outcome.seconds > 0 else None


def _below(pieces: Iterable[Piece], limit: float) -> list[Range]:
    return [
        piece.range
        for piece in pieces
        if piece.bytes_per_s is not None and piece.bytes_per_s < limit
    ]

"""How fast the pieces of a file read: past the page cache, by the engine of the experiments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ssdlab.device import Drive, Job, RealOptions, open_engine, run_job
from ssdlab.errors import Interrupted
from ssdlab.heal.options import Watch
from ssdlab.heal.pieces import Piece, Range

BLOCK: Final = 1 << 20
"""One request at a time of so many bytes, as the ageing experiment reads."""
SECTOR: Final = 4096
LOOKS_MOST: Final = 12
"""A piece is slow that was slow each time: the best reading counts, others use the drive too."""
QUIET_LOOKS: Final = 3
"""After so many looks that cleared no piece, those that are left are slow."""


class Speedometer:
    """A file opened for measuring; it changes nothing."""

    def __init__(self, path: Path, watch: Watch) -> None:
        """Opens it.

        Raises:
            TargetError: no direct I/O here.
        """
        self._path, self._watch = path, watch
        options = RealOptions(writable=False, queue_depth=1)
        self._drive: Drive = open_engine(path, options)

    def measure(self, ranges: Sequence[Range], label: str) -> list[Piece]:
        """Reads each range once; one of less than a sector, or beyond the end, has no speed.

        Raises:
            Interrupted: by Ctrl-C.
            DeviceFailure: a read failed.
        """
        found, done, total = [], 0, sum(each.length for each in ranges)
        for each in ranges:
            self._watch(label, done, total)
            found.append(Piece(each, self._speed_of(each)))
            done += each.length
        return found

    def best_of(self, pieces: Iterable[Piece], limit: float, label: str) -> list[Piece]:
        """Reads those below `limit` bytes a second again, and again; the best of each counts."""
        best = {piece.range: piece for piece in pieces}
        doubtful, quiet = _below(best.values(), limit), 0
        for _ in range(LOOKS_MOST - 1):
            if not doubtful or quiet == QUIET_LOOKS:
                break
            for piece in self.measure(doubtful, label):
                if (piece.bytes_per_s or 0) > (best[piece.range].bytes_per_s or 0):
                    best[piece.range] = piece
            left = _below(best.values(), limit)
            quiet = quiet + 1 if len(left) == len(doubtful) else 0
            doubtful = left
        return list(best.values())

    def close(self) -> None:
        """Closes it: from then on it cannot measure."""
        del self._drive

    def _speed_of(self, each: Range) -> float | None:
        end = min(each.end, self._drive.capacity_bytes // SECTOR * SECTOR)
        length = end - each.offset
        length = length // BLOCK * BLOCK if length > BLOCK else length
        if length < SECTOR:
            return None
        job = Job(
            op="read",
            offset_bytes=each.offset,
            length_bytes=length,
            block_bytes=min(BLOCK, length),
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

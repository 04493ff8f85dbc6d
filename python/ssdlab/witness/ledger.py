"""The ledger: two bounds a sector, from what a writer told before the power went.

The lower bound of a sector is the newest write to it that an acknowledged flush covers: after a
cut that write or a newer one must be there. The upper bound is the newest write that was issued:
what lies between may be there or not. No write waits for the witness, for a message that the cut
swallowed only makes a bound looser. Writes in flight never overlap (the writer sees to it), so the
writes of one sector follow each other in the order of their generations.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.witness.stamps import SECTORS_MAX, Request

ISSUED, FLUSHED = 1, 2
ENTRY: Final = np.dtype(
    [
        ("kind", "<u4"),
        ("stream", "<u4"),
        ("sequence", "<u8"),
        ("generation", "<u8"),
        ("first", "<u8"),
        ("sectors", "<u4"),
    ]
)
"""A message to the witness: a write was issued, or a stream is durable up to a sequence."""
_PACKED: Final = struct.Struct("<IIQQQI")
assert _PACKED.size == ENTRY.itemsize

ROUND_SHIFT: Final = 40
STREAM_SHIFT: Final = 12
STREAMS_MAX: Final = 1 << STREAM_SHIFT


def first_generation(round_number: int) -> int:
    """Where a round's generations begin: above all of earlier rounds, told or not."""
    return round_number << ROUND_SHIFT


def stream_of(round_number: int, worker: int) -> int:
    """The stream of a round's worker; no two rounds share one."""
    assert 0 <= worker < STREAMS_MAX, f"worker {worker}"
    return round_number << STREAM_SHIFT | worker


def issued(request: Request) -> bytes:
    """The message that a request is about to be written."""
    return _PACKED.pack(
        *(ISSUED, request.stream, request.sequence),
        *(request.generation, request.first, request.sectors),
    )


def flushed(stream: int, sequence: int) -> bytes:
    """The message that the drive acknowledged a stream up to a sequence as durable."""
    return _PACKED.pack(FLUSHED, stream, sequence, 0, 0, 0)


def entries(messages: bytes) -> NDArray[Any]:
    """Messages as rows of `ENTRY`."""
    return np.frombuffer(messages, dtype=ENTRY)


@dataclass(frozen=True, slots=True)
class Told:
    """Messages that came together, and when (seconds since 1970, the witness's clock)."""

    time_s: float
    messages: bytes


class Ledger:
    """All requests of a run in the order of their generations, and what covers them.

    `requests` has the columns of `ENTRY`, `durable` a bool a request; `times_s` is when a request
    was told to be durable, NaN if never.
    """

    def __init__(self, told: Iterable[Told]) -> None:
        """Reads the messages, in the order in which they came."""
        batches = [(each.time_s, entries(each.messages)) for each in told]
        rows = [batch for _, batch in batches] or [np.zeros(0, ENTRY)]
        whole = np.concatenate(rows)
        times = np.repeat([time for time, _ in batches], [len(batch) for _, batch in batches])
        is_request = whole["kind"] == ISSUED
        order = np.argsort(whole["generation"][is_request], kind="stable")
        self.requests: NDArray[Any] = whole[is_request][order]
        self._by_begin = np.argsort(self.requests["first"], kind="stable")
        self._begins = self.requests["first"][self._by_begin].astype(np.int64)
        self.last_message_s = float(times[-1]) if len(times) else float("nan")
        self._flushes = whole[~is_request]
        self._flush_times = times[~is_request]
        self.times_s = self._durable_since()
        self.durable: NDArray[np.bool_] = ~np.isnan(self.times_s)

    def __len__(self) -> int:
        return len(self.requests)

    def _durable_since(self) -> NDArray[np.float64]:
        since = np.full(len(self.requests), np.nan)
        for stream in np.unique(self._flushes["stream"]):
            of_stream = self._flushes["stream"] == stream
            reached = np.maximum.accumulate(self._flushes["sequence"][of_stream])
            mine = np.flatnonzero(self.requests["stream"] == stream)
            at = np.searchsorted(reached, self.requests["sequence"][mine])
            covered = at < len(reached)
            since[mine[covered]] = self._flush_times[of_stream][at[covered]]
        return since

    def raise_by(self, proven: dict[int, int]) -> NDArray[np.int64]:
        """Requests (row numbers) that stamps prove to have been acknowledged, and no message.

        `proven` is a sequence a stream: a stamp that was issued after that acknowledgment was found
        on the drive, though the message never came.
        """
        limits = np.array([proven.get(int(s), 0) for s in self.requests["stream"]], dtype=np.uint64)
        return np.flatnonzero(~self.durable & (self.requests["sequence"] <= limits))

    def bounds(self, first: int, sectors: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lower and upper bound of sectors, as row numbers of `requests`; -1 for none."""
        lower, upper = np.full(sectors, -1), np.full(sectors, -1)
        for row, begin, end in self._overlapping(first, first + sectors):
            upper[begin:end] = row
            if self.durable[row]:
                lower[begin:end] = row
        return lower, upper

    def _overlapping(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Rows in order, and where in the window each begins and ends."""
        low = np.searchsorted(self._begins, first - SECTORS_MAX + 1)
        near = np.sort(self._by_begin[low : np.searchsorted(self._begins, end)])
        begins = self.requests["first"][near].astype(np.int64)
        ends = np.minimum(begins + self.requests["sectors"][near], end) - first
        begins = np.maximum(begins, first) - first
        for row, begin, stop in zip(near.tolist(), begins.tolist(), ends.tolist(), strict=True):
            if stop > 0:
                yield row, begin, stop

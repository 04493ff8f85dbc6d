"""The ledger: which write of each sector must be there after a cut, and which may be there.

The lower bound of a sector is the newest write to it that an acknowledged flush covers: after a
cut the sector must hold that write or a newer one. The upper bound is the newest write issued: it
may or may not be there. Writes never wait for the witness, because a message lost in the cut only
loosens a bound. The writer never has two overlapping writes in flight, so the generations of a
sector's writes are in the order in which the drive got them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ssdlab.witness.limits import SECTORS_MAX
from ssdlab.witness.stamps import Request

ISSUED, FLUSHED = 1, 2
MESSAGE: Final = np.dtype(
    [
        ("kind", "<u4"),
        ("stream", "<u4"),
        ("sequence", "<u8"),
        ("generation", "<u8"),
        ("first", "<u8"),
        ("sectors", "<u4"),
    ]
)
"""A message to the witness: a write is issued, or a stream is durable up to a sequence."""
_PACKED: Final = struct.Struct("<IIQQQI")
assert _PACKED.size == MESSAGE.itemsize

ROUND_SHIFT: Final = 40
STREAM_SHIFT: Final = 12
STREAMS_MAX: Final = 1 << STREAM_SHIFT


def first_generation(round_number: int) -> int:
    """A number below all generations of this round, and above those of all earlier rounds."""
    return round_number << ROUND_SHIFT


def stream_of(round_number: int, worker: int) -> int:
    """The stream of a round's worker, unique in the run."""
    assert 0 <= worker < STREAMS_MAX, f"worker {worker}"
    return round_number << STREAM_SHIFT | worker


def issued(request: Request) -> bytes:
    """The message: this request is about to be written."""
    return _PACKED.pack(
        *(ISSUED, request.stream, request.sequence),
        *(request.generation, request.first, request.sectors),
    )


def flushed(stream: int, sequence: int) -> bytes:
    """The message: the drive acknowledged a flush that covers a stream up to `sequence`."""
    return _PACKED.pack(FLUSHED, stream, sequence, 0, 0, 0)


def decode_messages(messages: bytes) -> NDArray[Any]:
    """Decodes messages to rows of `MESSAGE`."""
    return np.frombuffer(messages, dtype=MESSAGE)


@dataclass(frozen=True, slots=True)
class ReceivedMessages:
    """Messages received together; `time_s` is in seconds since 1970, by the witness's clock."""

    time_s: float
    messages: bytes


class Ledger:
    """All requests of a run, sorted by generation, and which of them are durable.

    `requests` has the columns of `MESSAGE`, `durable` a bool for each request. `times_s` is when
    the acknowledgement of a request's flush arrived, NaN if it never did.
    """

    def __init__(self, received: Iterable[ReceivedMessages]) -> None:
        """Reads the messages, in the order of their arrival."""
        batches = [(batch.time_s, decode_messages(batch.messages)) for batch in received]
        messages = np.concatenate([rows for _, rows in batches] or [np.zeros(0, MESSAGE)])
        times = np.repeat([time for time, _ in batches], [len(rows) for _, rows in batches])
        is_request = messages["kind"] == ISSUED
        order = np.argsort(messages["generation"][is_request], kind="stable")
        self.requests: NDArray[Any] = messages[is_request][order]
        self._by_begin = np.argsort(self.requests["first"], kind="stable")
        self._begins = self.requests["first"][self._by_begin].astype(np.int64)
        self.last_message_s = float(times[-1]) if len(times) else float("nan")
        self._flushes = messages[~is_request]
        self._flush_times = times[~is_request]
        self.times_s = self._durable_since()
        self.durable: NDArray[np.bool_] = ~np.isnan(self.times_s)

    def __len__(self) -> int:
        return len(self.requests)

    def _durable_since(self) -> NDArray[np.float64]:
        since = np.full(len(self.requests), np.nan)
        for stream in np.unique(self._flushes["stream"]):
            of_stream = self._flushes["stream"] == stream
            flushed_up_to = np.maximum.accumulate(self._flushes["sequence"][of_stream])
            rows = np.flatnonzero(self.requests["stream"] == stream)
            at = np.searchsorted(flushed_up_to, self.requests["sequence"][rows])
            covered = at < len(flushed_up_to)
            since[rows[covered]] = self._flush_times[of_stream][at[covered]]
        return since

    def durable_by_stamps(self, covered: dict[int, int]) -> NDArray[np.int64]:
        """Rows of requests whose acknowledgement is known from stamps only.

        `covered` maps a stream to the newest `covered` of its stamps on the drive: that flush was
        acknowledged, but its message was lost in the cut.
        """
        limits = np.array(
            [covered.get(int(stream), 0) for stream in self.requests["stream"]], dtype=np.uint64
        )
        return np.flatnonzero(~self.durable & (self.requests["sequence"] <= limits))

    def bounds(self, first: int, sectors: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lower and upper bound of each sector, as rows of `requests`; -1: no request."""
        lower, upper = np.full(sectors, -1), np.full(sectors, -1)
        for row, begin, end in self._overlapping(first, first + sectors):
            upper[begin:end] = row
            if self.durable[row]:
                lower[begin:end] = row
        return lower, upper

    def _overlapping(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Rows of the requests that overlap a window, with their start and end in the window."""
        low = np.searchsorted(self._begins, first - SECTORS_MAX + 1)
        near = np.sort(self._by_begin[low : np.searchsorted(self._begins, end)])
        begins = self.requests["first"][near].astype(np.int64)
        ends = np.minimum(begins + self.requests["sectors"][near], end) - first
        begins = np.maximum(begins, first) - first
        for row, begin, stop in zip(near.tolist(), begins.tolist(), ends.tolist(), strict=True):
            if stop > 0:
                yield row, begin, stop

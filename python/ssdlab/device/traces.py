"""Traces: the recorded requests of another host, to be analysed or replayed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ssdlab._native import trace_statistics
from ssdlab.input_files import require_regular


class Replay(msgspec.Struct, frozen=True, omit_defaults=True):
    """A trace, and how its addresses and times map to a drive.

    `volumes` has (volume, offset in bytes), ascending; addresses beyond the end of the job's region
    wrap around. `speed` is a multiple of the trace's own rate; None: as fast as the queue allows.
    `requests` is the total for the progress display.
    """

    path: str
    format: str | None = None
    volume: int | None = None
    any_order: bool = False
    volumes: tuple[tuple[int, int], ...] = ()
    requests: int = 0
    speed: float | None = None


@dataclass(frozen=True)
class TraceStatistics:
    """Statistics of a trace. A unit is 4 KiB.

    `read_sizes` and `write_sizes` have (length in bytes, count), `volumes` (volume, size in bytes).
    `hottest_fifth` is the share of accesses to the most accessed fifth of all accessed units.
    Footprints above 512 MiB are estimates (error 0.4 %).
    """

    format: str
    reads: int
    writes: int
    trims: int
    flushes: int
    read_bytes: int
    write_bytes: int
    trim_bytes: int
    read_sizes: tuple[tuple[int, int], ...]
    write_sizes: tuple[tuple[int, int], ...]
    median_read_bytes: int | None
    median_write_bytes: int | None
    volumes: tuple[tuple[int, int], ...]
    footprint_bytes: int
    written_footprint_bytes: int
    unit_writes: int
    hottest_fifth: float
    aligned: int
    continuing: int
    span_ns: int
    early: int
    empty: int

    @property
    def requests(self) -> int:
        """Requests of all kinds."""
        return self.reads + self.writes + self.trims + self.flushes

    @property
    def bytes(self) -> int:
        """Total bytes of requests of all kinds."""
        return self.read_bytes + self.write_bytes + self.trim_bytes

    @property
    def longest_bytes(self) -> int:
        """Length of the longest read or write; 0 without any."""
        return max((size for size, _ in (*self.read_sizes, *self.write_sizes)), default=0)

    @property
    def writes_a_unit(self) -> float | None:
        """Mean number of writes to each unit that was written; None without writes."""
        units = self.written_footprint_bytes / 4096
        return self.unit_writes / units if units else None


def read_trace_statistics(replay: Replay) -> TraceStatistics:
    """Reads a whole trace and checks each entry.

    Raises:
        UsageError: the file is not a trace, or an entry is invalid; the message has its line.
    """
    require_regular(Path(replay.path))
    fields: dict[str, Any] = trace_statistics(msgspec.json.encode(replay).decode())
    return msgspec.convert(fields, TraceStatistics)

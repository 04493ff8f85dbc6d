"""Traces: what some host once asked of its drive; looked at here, and asked again by a job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ssdlab._native import trace_statistics
from ssdlab.input_files import require_regular


class Replay(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which trace, and how it is laid onto a drive.

    `volumes` says of each volume, ascending, on which byte it begins; beyond the end of the part
    of the drive that the job has, addresses go on from its beginning. `speed` is in times of the
    trace's own pace; None is as fast as the queue allows. `requests` is what progress counts by.
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
    """What a trace asks for. Units are of 4 KiB.

    `read_sizes` and `write_sizes` have lengths in bytes with their counts, `volumes` each volume
    with the byte behind its last. `hottest_fifth` is the share of accesses that the most accessed
    fifth of all accessed units gets. Footprints above 512 MiB are estimates (0.4 %).
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
        """Of all kinds."""
        return self.reads + self.writes + self.trims + self.flushes

    @property
    def bytes(self) -> int:
        """Of all kinds."""
        return self.read_bytes + self.write_bytes + self.trim_bytes

    @property
    def longest_bytes(self) -> int:
        """Of a read or write; 0 where there is none."""
        return max((size for size, _ in (*self.read_sizes, *self.write_sizes)), default=0)

    @property
    def writes_a_unit(self) -> float | None:
        """How often a unit that is written is, in the mean."""
        units = self.written_footprint_bytes / 4096
        return self.unit_writes / units if units else None


def look_at(replay: Replay) -> TraceStatistics:
    """Reads a trace from end to end; every entry of it is checked.

    Raises:
        UsageError: a file that is no trace, or the first entry that is wrong, by its line.
    """
    require_regular(Path(replay.path))
    found: dict[str, Any] = trace_statistics(msgspec.json.encode(replay).decode())
    return msgspec.convert(found, TraceStatistics)

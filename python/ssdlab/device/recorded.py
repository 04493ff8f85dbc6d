"""Records what an experiment does to its twins, so that the same can be done to other copies."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ssdlab._native import Drive


@dataclass(frozen=True)
class RecordedJob:
    """A job's text, its number of requests, and its start and end by the drive's clock.

    With `zeros`, its writes have only zeros as data.
    """

    job: str
    zeros: bool
    requests: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class RecordedRest:
    """An idle time, in seconds of the drive's clock."""

    seconds: float


@dataclass
class TwinRecord:
    """A twin as it was opened, and all that was done to it."""

    profile: str
    capacity_bytes: int | None
    seed: int
    drive: Drive
    steps: list[RecordedJob | RecordedRest] = field(default_factory=list)

    def counters(self) -> dict[str, Any]:
        """The twin's counters now."""
        counters = self.drive.counters()
        assert counters is not None, "a twin counts"
        return counters


_RECORDS: Final[ContextVar[list[TwinRecord] | None]] = ContextVar("records", default=None)


@contextlib.contextmanager
def record_twins() -> Iterator[list[TwinRecord]]:
    """Records all twins that are opened in this context, in the order of opening."""
    records: list[TwinRecord] = []
    token = _RECORDS.set(records)
    try:
        yield records
    finally:
        _RECORDS.reset(token)


def recorded(drive: Drive, profile: str, capacity_bytes: int | None, seed: int) -> Drive:
    """The drive; inside `record_twins` a drive that also records what is done to it."""
    records = _RECORDS.get()
    if records is None:
        return drive
    record = TwinRecord(profile, capacity_bytes, seed, drive)
    records.append(record)
    return cast("Drive", _RecordingDrive(record, drive))


class _RecordingDrive:
    """A handle of a twin that records its jobs and idle times; all else is the twin's."""

    def __init__(self, record: TwinRecord, drive: Drive, *, zeros: bool = False) -> None:
        self._record, self._drive, self._zeros = record, drive, zeros

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drive, name)

    def writing_zeros(self) -> Drive:
        """As `Drive.writing_zeros`."""
        drive = self._drive.writing_zeros()
        return cast("Drive", _RecordingDrive(self._record, drive, zeros=True))

    def run(self, job: str, watch: Any = None) -> dict[str, Any]:
        """As `Drive.run`."""
        fields = self._drive.run(job, watch)
        requests, start, end = fields["requests"], fields["start_ns"], fields["end_ns"]
        self._record.steps.append(RecordedJob(job, self._zeros, requests, start, end))
        return fields

    def rest(self, seconds: float, watch: Any = None) -> bool:
        """As `Drive.rest`."""
        rested = self._drive.rest(seconds, watch)
        self._record.steps.append(RecordedRest(seconds))
        return rested

"""Tracks the bytes that a run has written, and warns if it reads others.

A drive answers reads of unwritten or trimmed blocks with zeros at the speed of the link, without
reading flash. For a test file FIEMAP shows this (`runner/written.py`); for a block device only
this record of writes does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ssdlab.device import Extents, Job
from ssdlab.units import format_size
from ssdlab.warning import Warn

Range = tuple[int, int]
"""Start and end in bytes."""


@dataclass
class Coverage:
    """Ranges of the drive that were certainly written, sorted and disjoint.

    Random writes count only if they visit each block exactly once: others leave gaps.
    """

    _ranges: list[Range] = field(default_factory=list)

    def track(self, job: Job, done_bytes: int, warn: Warn) -> None:
        """Adds the ranges that a job has written; warns if it read unwritten ranges."""
        if job.op == "read" or job.read_share > 0:
            missing = self._unwritten_bytes(_accessed(job, done_bytes))
            if missing:
                warn(
                    "unwritten",
                    f"{format_size(missing)} were read that this run had not written, and a drive "
                    "answers such reads without reading flash: write the region first.",
                )
        elif job.op == "write" and not job.trim_share:
            self._add(_certainly_written(job, done_bytes))

    def _add(self, ranges: Iterable[Range]) -> None:
        merged: list[Range] = []
        for start, end in sorted([*self._ranges, *ranges]):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        self._ranges = merged

    def _unwritten_bytes(self, accessed: list[Range]) -> int:
        """Bytes of the accessed ranges that were not written."""
        first = min(start for start, _ in accessed)
        last = max(end for _, end in accessed)
        if any(begin <= first and last <= stop for begin, stop in self._ranges):
            return 0  # as is usual, also for thousands of ranges
        return sum(self._unwritten_of(*each) for each in accessed)

    def _unwritten_of(self, start: int, end: int) -> int:
        overlaps = (min(end, stop) - max(start, begin) for begin, stop in self._ranges)
        return end - start - sum(overlap for overlap in overlaps if overlap > 0)


def _accessed(job: Job, done_bytes: int) -> list[Range]:
    """The ranges that a job accessed before it stopped; the whole region if random."""
    if isinstance(job.pattern, Extents):
        return [(offset, offset + length) for offset, length in job.pattern.list]
    length = job.length_bytes
    if job.pattern == "sequential" and job.threads == 1:
        length = min(length, done_bytes)
    return [(job.offset_bytes, job.offset_bytes + length)]


def _certainly_written(job: Job, done_bytes: int) -> list[Range]:
    start = job.offset_bytes
    if isinstance(job.pattern, Extents):
        whole = sum(length for _, length in job.pattern.list)
        return _accessed(job, done_bytes) if not job.pattern.random and done_bytes >= whole else []
    if job.pattern in {"sequential", "random_once"} and done_bytes >= job.length_bytes:
        return [(start, start + job.length_bytes)]
    if job.pattern == "sequential" and job.threads == 1:
        return [(start, start + done_bytes)]
    return []

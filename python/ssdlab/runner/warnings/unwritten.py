"""Which bytes of a drive a run has written, and whether it read others.

What nobody wrote, or what was trimmed, is answered without a look at the flash: zeros at the speed
of the link. A test file has FIEMAP to tell (`experiment/written.py`); a block device has nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ssdlab.device import Extents, Job
from ssdlab.units import format_size
from ssdlab.warning import Warn

Part = tuple[int, int]
"""Start and end in bytes."""


@dataclass
class Coverage:
    """Parts of the drive that were surely written, in order and apart from one another.

    Random writes count only where they visit each block once: others leave gaps.
    """

    _parts: list[Part] = field(default_factory=list)

    def see(self, job: Job, done_bytes: int, warn: Warn) -> None:
        """Notes what a job has written, and warns if it read what was not written."""
        if job.op == "read" or job.read_share > 0:
            missing = sum(self._missing(part) for part in _asked(job, done_bytes))
            if missing:
                warn(
                    "unwritten",
                    f"{format_size(missing)} of what was read had not been written by this run: a "
                    "drive answers what it never stored without a look at its flash.",
                )
        elif job.op == "write" and not job.trim_share:
            self._add(_surely_written(job, done_bytes))

    def _add(self, parts: Iterable[Part]) -> None:
        merged: list[Part] = []
        for start, end in sorted([*self._parts, *parts]):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        self._parts = merged

    def _missing(self, asked: Part) -> int:
        start, end = asked
        found = (min(end, stop) - max(start, begin) for begin, stop in self._parts)
        return end - start - sum(each for each in found if each > 0)


def _asked(job: Job, done_bytes: int) -> list[Part]:
    """Where a job read, as far as it got; of one in random order its whole region."""
    if isinstance(job.pattern, Extents):
        return [(offset, offset + length) for offset, length in job.pattern.list]
    length = job.length_bytes
    if job.pattern == "sequential" and job.threads == 1:
        length = min(length, done_bytes)
    return [(job.offset_bytes, job.offset_bytes + length)]


def _surely_written(job: Job, done_bytes: int) -> list[Part]:
    start = job.offset_bytes
    if isinstance(job.pattern, Extents):
        whole = sum(length for _, length in job.pattern.list)
        return _asked(job, done_bytes) if not job.pattern.random and done_bytes >= whole else []
    if job.pattern in {"sequential", "random_once"} and done_bytes >= job.length_bytes:
        return [(start, start + job.length_bytes)]
    if job.pattern == "sequential" and job.threads == 1:
        return [(start, start + done_bytes)]
    return []

"""Writes of the parts of a region in turn, and the idle time that lets a cache take as much again.

After each rest another part is written, so that the drive has to fold what its cache holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import msgspec

from ssdlab.device import Job, Outcome
from ssdlab.experiments.cache.refill import RECOVERED
from ssdlab.runner.session import RunSession, Step
from ssdlab.stats.rate_drops import RateDrop, bytes_as_fast, last_drop
from ssdlab.stats.steady import Progress

BLOCK: Final = 128 << 10
DEPTH: Final = 16
FINE_BYTES: Final = 1 << 30
FINE_US: Final = 10
"""Each pass records its first `FINE_BYTES` in intervals of `FINE_US`: about one request each."""
REST_FIRST_S: Final = 1.0
REST_MIN_S: Final = 1 / 256
REST_FACTOR: Final = 4.0
BISECTIONS: Final = 2
_INTERVALS: Final = 2000


@dataclass(frozen=True)
class Parts:
    """Parts of the region, used in turn, so that no pass overwrites what the last one cached."""

    size: int
    length: int

    @property
    def count(self) -> int:
        """How many parts of this length the region has."""
        return self.size // self.length

    def job(self, stage: int) -> Job:
        """The write of a part."""
        return sequential_job("write", self.length, offset=stage % self.count * self.length)


def sequential_job(op: Literal["write", "trim"], amount: int, *, offset: int = 0) -> Job:
    """A job that goes through a region of `amount` bytes in order."""
    return Job(
        op=op,
        offset_bytes=offset,
        length_bytes=amount,
        block_bytes=BLOCK,
        amount_bytes=amount,
        queue_depth=DEPTH,
        interval_us=FINE_US,
    )


def write(session: RunSession, step: Step, job: Job) -> Progress:
    """Writes the job's region in order; the first `FINE_BYTES` are a step of their own."""
    fine = min(job.length_bytes, FINE_BYTES)
    outcomes = [
        session.run(step, msgspec.structs.replace(job, length_bytes=fine, amount_bytes=fine))
    ]
    if (remaining := job.length_bytes - fine) > 0:
        expected_us = 1e6 * outcomes[0].seconds * remaining / fine
        rest = msgspec.structs.replace(
            job,
            offset_bytes=job.offset_bytes + fine,
            length_bytes=remaining,
            amount_bytes=remaining,
            interval_us=max(1000, round(expected_us / _INTERVALS)),
        )
        outcomes.append(session.run(replace(step, repeat=1, rest_s=0.0), rest))
    return progress_of(outcomes)


def progress_of(outcomes: Sequence[Outcome]) -> Progress:
    """The bytes over the time of these steps."""
    columns = [outcome.columns() for outcome in outcomes]
    seconds = [value for values, _ in columns for value in values]
    return Progress(seconds, [amount for _, amounts in columns for amount in amounts])


@dataclass(frozen=True)
class RestSearch:
    """Finds the shortest idle time after which as much is written as fast as at `first`.

    `steep` is the least factor of this drive's drops, `most_s` the longest rest.
    """

    session: RunSession
    parts: Parts
    first: RateDrop
    steep: float
    most_s: float

    def run(self) -> None:
        """Writes a part after each rest; stage 2 is the first.

        Raises:
            Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
        """
        too_short_s, enough_s = 0.0, float("inf")
        rest_s, stage, bisections = REST_FIRST_S, 2, 0
        while REST_MIN_S <= rest_s <= self.most_s:
            if self._is_enough(rest_s, stage):
                enough_s = min(enough_s, rest_s)
            else:
                too_short_s = max(too_short_s, rest_s)
            if too_short_s > 0 and enough_s < float("inf"):
                if bisections == BISECTIONS:
                    return
                bisections += 1
                rest_s = (too_short_s * enough_s) ** 0.5
            else:
                longer = enough_s == float("inf")
                rest_s = rest_s * REST_FACTOR if longer else rest_s / REST_FACTOR
            stage += 1

    def _is_enough(self, rest_s: float, stage: int) -> bool:
        """Whether this rest makes nearly all of the first capacity available again."""
        label = f"writing again after a rest of {rest_s:g} s"
        step = Step("write", label, "fill", stage, case="rested", value=rest_s, rest_s=rest_s)
        curve = write(self.session, step, self.parts.job(stage))
        drop = last_drop(curve, steep=self.steep)
        self.session.flush(stage)
        return bytes_as_fast(curve, (drop,), self.first) >= RECOVERED * self.first.at

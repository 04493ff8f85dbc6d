"""Jobs: what to ask of a drive, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from ssdlab._native import Drive
from ssdlab.errors import DeviceFailure

Column = npt.NDArray[np.uint64]
Watch = Callable[[int, int, int], object]
"""Called a few times a second with requests done, requests in all, the drive's clock in ns."""


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """Requests of one kind and length, a fixed number of them outstanding. Sizes in bytes.

    `random_once` visits blocks in a random order in which none comes twice before all came once.
    """

    op: Literal["read", "write", "trim", "flush"]
    pattern: Literal["sequential", "random", "random_once"] = "sequential"
    offset_bytes: int = 0
    length_bytes: int = 0
    block_bytes: int = 0
    amount_bytes: int = 0
    queue_depth: int = 1
    seed: int = 0
    interval_ms: int = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job. Times in nanoseconds on the drive's clock.

    `intervals` has the columns start_ns, requests, bytes, latency_ns_max; `latency` has
    latency_ns (upper end of a bucket, three digits) and count.
    """

    start_ns: int
    end_ns: int
    requests: int
    bytes: int
    errors: int
    first_errno: int | None
    stopped: bool
    intervals: dict[str, Column]
    latency: dict[str, Column]

    @property
    def seconds(self) -> float:
        """From the first arrival to the last completion."""
        return (self.end_ns - self.start_ns) / 1e9

    def raise_if_failed(self, what: str) -> None:
        """Raises for the first request that failed.

        Raises:
            DeviceFailure: one did.
        """
        if self.first_errno is not None:
            reason = os.strerror(self.first_errno)
            raise DeviceFailure(
                f"{what}: a request failed ({reason}) after {self.bytes} good bytes; "
                "look at the kernel log and the drive's health"
            )


def run_job(drive: Drive, job: Job, watch: Watch | None = None) -> Outcome:
    """Runs a job on a drive; Ctrl-C ends it early, and the outcome then says `stopped`.

    Raises:
        UsageError: the job does not fit the drive.
        DeviceFailure: the drive is gone. A failed request does not raise; see the outcome.
    """
    return Outcome(**drive.run(msgspec.json.encode(job).decode(), watch))

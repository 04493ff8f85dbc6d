"""Jobs: what to ask of a drive, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from ssdlab._native import Drive
from ssdlab.device.host import HostLoad, HostWatch
from ssdlab.device.kinds import Arrival, Hint, Pattern, Sync, encode
from ssdlab.device.traces import Replay
from ssdlab.errors import DeviceFailure
from ssdlab.stats.quantile import Percentiles, percentiles

Column = npt.NDArray[np.uint64]
Op = Literal["read", "write", "trim", "flush"]
OPS: Final[tuple[Op, ...]] = ("read", "write", "trim", "flush")
"""By the number that the column `op` has."""
Watch = Callable[[int, int, int], object]
"""Called a few times a second with requests done, requests in all, the drive's clock in ns."""


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stream of requests. Sizes in bytes.

    Of the requests `read_share` are reads and `trim_share` trims; the rest are `op`. `block_mix`
    has lengths with their weights, and stands for `block_bytes`. `amount_bytes` or `seconds` (on
    the drive's clock) ends the job, whichever is first. `random_once` visits blocks in a random
    order in which none comes twice before all came once. `hint` is what its writes let the drive
    know: each goes on where the write before it ended (`append`), each replaces (`overwrite`), or
    all belong to a stream; twins place by it (`ftl.placement`), real drives are not told. Each of
    `threads` has a queue of its own
    with this depth, and an equal part of amount and rate. With `replay` a trace decides what is
    asked and when; part of the drive, depth and intervals are still the job's.
    """

    op: Op
    read_share: float = 0.0
    trim_share: float = 0.0
    pattern: Pattern = "sequential"
    offset_bytes: int = 0
    length_bytes: int = 0
    block_bytes: int = 0
    block_mix: tuple[tuple[int, float], ...] = ()
    amount_bytes: int = 0
    seconds: float | None = None
    arrival: Arrival = "closed"
    queue_depth: int = 1
    sync: Sync = "none"
    hint: Hint = "none"
    threads: int = 1
    replay: Replay | None = None
    seed: int = 0
    interval_ms: int = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job. Times in nanoseconds on the drive's clock.

    `requests` counts the flushes of `sync` too. `unserved` requests of an open loop should have
    started in time and never did; `lag_ns_sum` and `lag_ns_max` say by how much those that did
    were behind their time, and `late` how many by more than a millisecond. `failure` says how a
    drive was lost. `engine` is by which way requests went. `intervals` has the columns of
    `records.INTERVALS` but `step`; `interval_latency` those of `records.INTERVAL_LATENCY`, `op`
    as in `OPS`.
    """

    start_ns: int
    end_ns: int
    requests: int
    bytes: int
    errors: int
    first_errno: int | None
    unserved: int
    stopped: bool
    failure: str | None
    engine: str
    intervals: dict[str, Column]
    interval_latency: dict[str, Column]
    host: HostLoad
    lag_ns_sum: int = 0
    lag_ns_max: int = 0
    late: int = 0
    latency: dict[str, Column] = field(init=False)
    """latency_ns (upper end of a bucket, three digits) and count, of all requests."""

    def __post_init__(self) -> None:
        """Adds the intervals up."""
        object.__setattr__(self, "latency", self.latency_of())

    @property
    def seconds(self) -> float:
        """From the first arrival to the last completion."""
        return (self.end_ns - self.start_ns) / 1e9

    def columns(self) -> tuple[list[float], list[float]]:
        """Seconds of each interval, and bytes in it; one without any counts to that before it."""
        starts = self.intervals["start_ns"].astype(np.int64)
        lengths = np.diff(np.append(starts, self.end_ns)) / 1e9
        kept = lengths > 0
        amounts = self.intervals["bytes"].astype(np.float64)
        return [float(x) for x in lengths[kept]], [float(x) for x in amounts[kept]]

    def latency_of(self, op: Op | None = None) -> dict[str, Column]:
        """How often each latency occurred in the whole job: latency_ns (ascending) and count.

        Of one kind of request, or of all.
        """
        rows = self.interval_latency
        chosen = slice(None) if op is None else rows["op"] == OPS.index(op)
        latencies, places = np.unique(rows["latency_ns"][chosen], return_inverse=True)
        counts = np.zeros(len(latencies), dtype=np.uint64)
        np.add.at(counts, places, rows["count"][chosen])
        return {"latency_ns": latencies, "count": counts}

    def percentiles_ns(self, op: Op | None = None) -> Percentiles:
        """Latencies in ns that so many of the requests did not exceed, of one kind or of all.

        From p50 to p99.99, each up to 0.1 % too high (the end of its bucket), and None where too
        few requests support it: p99.99 takes 110 000.
        """
        latency = self.latency_of(op)
        return percentiles(latency["latency_ns"].astype(np.float64), latency["count"].astype(int))

    def raise_if_failed(self, what: str) -> None:
        """Raises for the first request that failed, or for a drive that was lost.

        Raises:
            DeviceFailure: one did.
        """
        if self.first_errno is not None:
            reason = f"a request failed ({os.strerror(self.first_errno)})"
        elif self.failure is not None:
            reason = f"the drive is lost ({self.failure})"
        else:
            return
        raise DeviceFailure(
            f"{what}: {reason} after {self.bytes} good bytes; "
            "look at the kernel log and the drive's health"
        )


def run_job(drive: Drive, job: Job, watch: Watch | None = None) -> Outcome:
    """Runs a job on a drive; Ctrl-C ends it early, and the outcome then says `stopped`.

    Raises:
        UsageError: the job does not fit the drive.
        DeviceFailure: the drive is gone before anything was measured. A failed request does not
            raise; see the outcome.
    """
    host = HostWatch()
    found = drive.run(encode(job), watch)
    return Outcome(interval_latency=found.pop("latency"), host=host.load(), **found)

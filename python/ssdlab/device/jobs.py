"""A job: a stream of requests to a drive, its result, and the host's CPU load while it runs."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from ssdlab._native import Drive
from ssdlab.device.kinds import Arrival, Hint, Pattern, Sync, encode
from ssdlab.device.traces import Replay
from ssdlab.errors import DeviceFailure

if TYPE_CHECKING:  # NumPy takes longer to import than `ssdlab control` to do its work
    import numpy as np
    import numpy.typing as npt

    from ssdlab.stats.quantile import Percentiles

_STAT = Path("/proc/stat")
# Columns of the line `cpu` (proc_stat(5)): user nice system idle iowait irq softirq steal ...
_BUSY = (0, 1, 2, 5, 6)
_STEAL = 7
Column: TypeAlias = "npt.NDArray[np.uint64]"
Op = Literal["read", "write", "trim", "flush"]
OPS: Final[tuple[Op, ...]] = ("read", "write", "trim", "flush")
"""The kinds of requests; the column `op` has their index."""
OnProgress = Callable[[int, int, int], object]
"""Called a few times a second with requests done, requests in total, and the drive's time in ns."""


@dataclass(frozen=True, slots=True)
class HostLoad:
    """CPU time in seconds, summed over all processors, during `wall_s` of wall-clock time.

    `foreign_cpu_s` is the time of other processes, `stolen_cpu_s` the time taken by the hypervisor.
    Both have a resolution of 10 ms, and are None without /proc/stat.
    """

    wall_s: float
    own_user_s: float
    own_system_s: float
    foreign_cpu_s: float | None
    stolen_cpu_s: float | None

    @property
    def own_cpu_s(self) -> float:
        """User and system time of this process."""
        return self.own_user_s + self.own_system_s

    @property
    def foreign_cores(self) -> float:
        """Mean number of processors that other processes kept busy; 0 if unknown."""
        return (self.foreign_cpu_s or 0.0) / self.wall_s if self.wall_s > 0 else 0.0


class HostWatch:
    """Measures the load since its creation."""

    def __init__(self) -> None:
        self._process, self._cpus = _process_times(), _cpu_times()

    def load(self) -> HostLoad:
        """The load since the creation of this object."""
        now, before, cpus = _process_times(), self._process, _cpu_times()
        wall, user, system = now[0] - before[0], now[1] - before[1], now[2] - before[2]
        if cpus is None or self._cpus is None:
            return HostLoad(wall, user, system, None, None)
        busy, steal = cpus[0] - self._cpus[0], cpus[1] - self._cpus[1]
        return HostLoad(wall, user, system, max(0.0, busy - user - system), max(0.0, steal))


def _process_times() -> tuple[float, float, float]:
    """Wall-clock time, and user and system time of this process, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), usage.ru_utime, usage.ru_stime


def _cpu_times() -> tuple[float, float] | None:
    """Busy and stolen time of all processors in seconds; None without /proc/stat (chroot)."""
    try:
        line = _STAT.read_text().split("\n", 1)[0]
    except OSError:
        return None
    ticks = [int(word) for word in line.split()[1:]]
    second = os.sysconf("SC_CLK_TCK")
    return sum(ticks[column] for column in _BUSY) / second, ticks[_STEAL] / second


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stream of requests. Sizes are in bytes.

    `read_share` and `trim_share` are the shares of reads and trims; the other requests are `op`.
    `block_mix` has lengths and weights and replaces `block_bytes`. The job ends after
    `amount_bytes` or `seconds` (of the drive's clock), whichever comes first. The pattern
    `random_once` visits each block once in random order before it starts over. `hint` informs the
    drive that each write continues the previous one (`append`), that each replaces data
    (`overwrite`), or that all belong to a stream; twins use it (`ftl.placement`), real drives do
    not get it. Each thread has its own queue of `queue_depth`, and an equal share of amount and
    rate. With `replay`, a trace determines requests and arrivals; region, queue depth and intervals
    are still the job's.
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
    interval_us: int = 100_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a job. Times are in nanoseconds of the drive's clock.

    `requests` includes the flushes of `sync`. In an open loop, `unserved` counts requests that
    arrived but were never started; `lag_ns_sum` and `lag_ns_max` are the sum and maximum of the
    others' delays after arrival, and `late` counts delays above 1 ms. `failure` says why the drive
    was lost. `engine` names the I/O engine. `intervals` has the columns of `records.INTERVALS`
    without `step`; `interval_latency` those of `records.INTERVAL_LATENCY`, with `op` as in `OPS`.
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
    host: HostLoad | None  # None for a twin, and for a step that was read from a folder
    lag_ns_sum: int = 0
    lag_ns_max: int = 0
    late: int = 0
    latency: dict[str, Column] = field(init=False)
    """Histogram of all requests: latency_ns (upper end of a bucket, three digits) and count."""

    def __post_init__(self) -> None:
        """Sums the intervals' histograms."""
        object.__setattr__(self, "latency", self.latency_of())

    @property
    def seconds(self) -> float:
        """Time from the first arrival to the last completion."""
        return (self.end_ns - self.start_ns) / 1e9

    def columns(self) -> tuple[list[float], list[float]]:
        """Seconds and bytes of each interval, without intervals of length 0."""
        import numpy as np

        starts = self.intervals["start_ns"].astype(np.int64)
        lengths = np.diff(np.append(starts, self.end_ns)) / 1e9
        kept = lengths > 0
        amounts = self.intervals["bytes"].astype(np.float64)
        return [float(x) for x in lengths[kept]], [float(x) for x in amounts[kept]]

    def latency_of(self, op: Op | None = None) -> dict[str, Column]:
        """Histogram of one kind of request, or of all: latency_ns (ascending) and count."""
        import numpy as np

        rows = self.interval_latency
        selected = slice(None) if op is None else rows["op"] == OPS.index(op)
        latencies, counts = rows["latency_ns"][selected], rows["count"][selected]
        if np.all(latencies[1:] > latencies[:-1]):  # as in a step of one interval
            return {"latency_ns": latencies, "count": counts}
        distinct, index = np.unique(latencies, return_inverse=True)
        sums = np.zeros(len(distinct), dtype=np.uint64)
        np.add.at(sums, index, counts)
        return {"latency_ns": distinct, "count": sums}

    def percentiles_ns(self, op: Op | None = None) -> Percentiles:
        """Latency percentiles p50 to p99.99 in ns, of one kind of request or of all.

        Each is up to 0.1 % too high (the end of its bucket), and None if there are too few
        requests: p99.99 needs 110 000.
        """
        from ssdlab.stats.quantile import percentiles

        latency = self.latency_of(op)
        return percentiles(latency["latency_ns"].astype(float), latency["count"].astype(int))

    def raise_if_failed(self, what: str) -> None:
        """Raises if a request failed, or the drive was lost; `what` begins the message.

        Raises:
            DeviceFailure: with the reason of the first failure.
        """
        if self.first_errno is not None:
            reason = f"a request failed ({os.strerror(self.first_errno)})"
        elif self.failure is not None:
            reason = f"the drive is lost ({self.failure})"
        else:
            return
        raise DeviceFailure(
            f"{what}: {reason} after {self.bytes} good bytes; "
            "check the kernel log and the drive's health"
        )


def run_job(drive: Drive, job: Job, on_progress: OnProgress | None = None) -> Outcome:
    """Runs a job on a drive. Ctrl-C ends it early; the outcome then has `stopped`.

    Raises:
        UsageError: the job does not fit the drive.
        DeviceFailure: the drive was lost before anything was measured. A failed request does not
            raise; see `Outcome.raise_if_failed`.
    """
    watch = None if drive.is_virtual else HostWatch()
    fields = drive.run(encode(job), on_progress)
    host = None if watch is None else watch.load()
    return Outcome(interval_latency=fields.pop("latency"), host=host, **fields)

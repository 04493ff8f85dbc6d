"""Measurement of cache: bytes written before the speed drops, and idle time until it recovers.

A region is written sequentially, fast enough to fill any cache. Where the rate drops, a buffer or
cache is full. The next write follows right after a flush: a flush empties the buffer, but only idle
time folds the SLC cache. An earlier flush of the idle drive shows how long a flush with nothing to
write takes. Further writes follow after different idle times, to find the shortest one that
restores the full capacity: in factors of four, then two bisections between the longest that was too
short and the shortest that was long enough.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ssdlab.device import FlushEvery, Job, Listed, WriteHint
from ssdlab.experiments.cache.buffers import PROGRAM_MAX_S, RAMP
from ssdlab.experiments.cache.parameters import Cache
from ssdlab.experiments.cache.read_back import (
    APART,
    CLOSE,
    FARTHEST,
    READ_BYTES,
    READS,
    WRITE_BYTES,
    Search,
    depth_for,
    result_of,
)
from ssdlab.experiments.cache.refill import RECOVERED
from ssdlab.experiments.cache.rests import (
    BISECTIONS,
    BLOCK,
    DEPTH,
    REST_FACTOR,
    REST_FIRST_S,
    Parts,
    RestSearch,
    progress_of,
    sequential_job,
    write,
)
from ssdlab.runner.session import QUICK_SETTLE_S, SETTLE_S, RunSession, Step
from ssdlab.stats.rate_drops import RateDrop, first_drop, last_drop, rate_after, steepness
from ssdlab.stats.steady import Progress
from ssdlab.target import Target
from ssdlab.units import format_size

KIB: Final = 1 << 10
MIB: Final = 1 << 20
SIZE: Final = 16 << 30
"""Bytes of the default region in a directory."""
QUICK_SIZE: Final = 1 << 30
DRIVE_PART: Final = 2
QUICK_DRIVE_PART: Final = 8
"""The default region of a twin or block device is its capacity divided by this."""
SIZE_MIN: Final = 16 * MIB
REST_MAX_S: Final = 1024.0
QUICK_REST_MAX_S: Final = 16.0
_LEAST: Final = RAMP * BLOCK
"""Bytes: a drop before this is the ramp of the queue."""
REWRITE_FACTOR: Final = 1.4
"""Later passes write this multiple of the bytes before the first drop, to see it again."""
FLUSH_WAIT_S: Final = 50e-6
"""A flush that takes this much longer than one of the idle drive waited for flash."""
GRAIN: Final = 4 * KIB
PROGRAMS: Final = 11
"""Flushes that are timed."""
FILLS: Final = 4
FILL_CHUNK: Final = 8 * MIB
FILLING: Final = 1.2
"""A chunk that is written this much faster than flash programs did not fill the buffer."""
PAUSE_FIRST_BYTES: Final = 256 * KIB
"""The first pause is as long as flash takes to program this; each next one is twice as long."""
PAUSES_MAX: Final = 11
READ_BACK_BYTES: Final = 4 << 30
"""Bytes written to read them again, at most: at 15 distances, each after a fill of 256 MiB."""
PAUSES_BYTES: Final = 2 << 30
"""Bytes written after pauses, at most, unless the link is as slow as flash."""
PAUSE_BLOCK: Final = 32 * KIB
LONGER: Final = 1.5
LONGER_PAUSE: Final = 1.6
EMPTIED_MIN: Final = 6
"""Pauses end after this many that were long enough, from the first two in succession on."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run, stored in the manifest: bytes, and seconds of the drive's clock.

    `drive` is the size of the drive, 0 in a directory. `whole` means that all of it may be written
    to see a drop in speed.
    """

    size: int = SIZE
    trims: bool = False
    drive: int = 0
    whole: bool = False
    settle_s: float = SETTLE_S
    rest_most_s: float = REST_MAX_S
    seed: int = 0

    @property
    def reach(self) -> int:
        """The end of what may be written."""
        return max(self.size, self.drive) if self.whole else self.size

    @property
    def request_bytes_max(self) -> int:
        """Bytes of a write request."""
        return BLOCK

    @property
    def write_bytes(self) -> int:
        """Bytes written at most: the region for each pass."""
        return max(self.size * (3 + self._rests_max) + READ_BACK_BYTES + PAUSES_BYTES, self.reach)

    @property
    def _rests_max(self) -> int:
        count, rest_s = 1 + BISECTIONS, REST_FIRST_S
        while rest_s < self.rest_most_s:
            rest_s, count = rest_s * REST_FACTOR, count + 1
        return count

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "write_block_kib": BLOCK / KIB,
            "write_queue_depth": DEPTH,
            "drive_mib": self.drive / MIB,
            "settle_s": self.settle_s,
            "rest_most_s": self.rest_most_s,
        }

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work, at most, to forecast the run's duration."""
        return {
            "fill": float(self.write_bytes),
            "trim": float(self.reach) if self.trims else 0.0,
            "rest": self.settle_s + 2 * self.rest_most_s,
        }


def plan(parameters: Cache, target: Target, seed: int) -> Plan:
    """The plan for the user's parameters.

    Raises:
        UsageError: the size is out of range, or larger than the drive.
    """
    return plan_for(parameters, target.capacity_bytes, seed)


def plan_for(parameters: Cache, drive: int | None, seed: int) -> Plan:
    """As `plan`, for a drive of `drive` bytes, or a directory if None."""
    quick = parameters.quick
    size = QUICK_SIZE if quick else SIZE
    if drive is not None:
        size = max(SIZE_MIN, drive // (QUICK_DRIVE_PART if quick else DRIVE_PART) // MIB * MIB)
    size = parameters.size_bytes(size, most=drive, why_most=", the drive's size")
    settle_s = QUICK_SETTLE_S if quick else SETTLE_S
    rest_most_s = QUICK_REST_MAX_S if quick else REST_MAX_S
    whole = drive is not None and not quick and parameters.size is None
    end = 0 if drive is None else drive // MIB * MIB
    return Plan(size, drive is not None, end, whole, settle_s, rest_most_s, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the region, then again after a flush, and after idle times of different lengths.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    trims = plan.trims and _supports_trim(session)
    if trims:
        session.run(Step("trim", "trimming the region", "trim"), sequential_job("trim", plan.reach))
    idle = session.run(Step("flush", "flushing the idle drive", "fill"), Job(op="flush"))
    step = Step("write", "writing sequentially", "fill", case="first", rest_s=plan.settle_s)
    first = write(session, step, sequential_job("write", plan.size))
    full = session.run(Step("flush", "flushing the full buffer", "fill"), Job(op="flush"))
    session.flush()
    steep = steepness(first, _LEAST)
    drop = last_drop(first, steep=steep, least=_LEAST)
    if drop is None and plan.reach > plan.size:
        step = Step("write", "writing the rest of the drive", "fill", case="rest")
        write(session, step, sequential_job("write", plan.reach - plan.size, offset=plan.size))
    if drop is None:
        session.expect({})
        return
    length = min(plan.size, max(SIZE_MIN, round(REWRITE_FACTOR * drop.at) // MIB * MIB))
    parts = Parts(plan.size, length)
    sustained = drop.after  # as the analysis takes it
    # Analyse only as many bytes as later passes write: the resolution depends on this number.
    drop = last_drop(first, float(length), steep, _LEAST) or drop
    session.expect({"fill": float(length * (plan.write_bytes // plan.size - 1))})
    step = Step("write", "writing again right after a flush", "fill", 1, case="flushed")
    after_flush = last_drop(write(session, step, parts.job(1)), steep=steep, least=_LEAST)
    session.flush(1)
    is_buffer = after_flush is not None and after_flush.is_as_fast(drop)
    if after_flush is None or not is_buffer or after_flush.high < RECOVERED * drop.low:
        if parts.count < 2:
            session.target.warn(
                "cache-overwritten",
                "The region is too small to write elsewhere after a rest: cached data is "
                "overwritten and need not be folded, so the recovery time may be too short. Give "
                "a larger --size.",
            )
        RestSearch(session, parts, drop, steep, plan.rest_most_s).run()
    trim = sequential_job("trim", plan.size) if trims else None
    if trim is not None:  # all that was overwritten would soon have to be collected
        session.run(Step("trim", "trimming the region", "trim"), trim)
    step = Step("write", "writing sequentially again", "fill", 1, case="again")
    write(session, step, parts.job(0))
    search = Search(depth_for((after_flush or drop).after), sustained, min(FARTHEST, parts.length))
    _read_back(session, trim, plan.size, search, parts.length)
    if full.seconds - idle.seconds > FLUSH_WAIT_S:
        _time_programs(session)
        _fill_again(session, plan, after_flush or drop)
    else:  # a flush does not empty the buffer
        _pause(session, plan, after_flush or drop)
    session.flush(1)
    session.expect({})


def _read_back(
    session: RunSession, trim: Job | None, size: int, search: Search, written: int
) -> None:
    """Searches for the distance from which on reads are slow.

    The first `written` bytes of a region of `size` bytes were just written. `trim` trims it.
    """
    start = written
    if size < written + READS * APART + FILL_CHUNK:
        return
    while (distance := search.next()) is not None:
        start = _fill(session, trim, size, search.rate, start, distance)
        label = f"reading data written {format_size(distance)} before"
        step = Step("read back", label, "fill", 1, value=distance / KIB)
        outcome = session.run(step, read_back_job(distance, start, size, search.depth))
        start += READS * APART
        latency = outcome.latency_of("read")
        columns = latency["latency_ns"], latency["count"]
        search.add(distance, result_of(outcome.bytes / outcome.seconds, *columns))


def read_back_job(distance: int, start: int, size: int, depth: int) -> Job:
    """Writes in order from `start` on in a region of `size` bytes; reads follow at a distance.

    The distances differ by up to the last step of the search: at equal ones, all reads might be of
    dies that have just ended a program.
    """
    stream, requests = random.Random(distance), list[tuple[int, int, WriteHint]]()
    nearer = int((1 - 1 / CLOSE) * distance / READ_BYTES)
    for number in range(READS):
        # At equal intervals, all reads might be on one die.
        last = stream.randrange(APART // WRITE_BYTES)
        for block in range(APART // WRITE_BYTES):
            at = start + number * APART + block * WRITE_BYTES
            requests.append((at % size, WRITE_BYTES, "nothing"))
            if block == last:
                behind = distance - stream.randint(0, nearer) * READ_BYTES
                requests.append(((at + WRITE_BYTES - behind) % size, READ_BYTES, "read"))
    return Job(
        op="write",
        pattern=Listed(tuple(requests)),
        length_bytes=size,
        block_bytes=WRITE_BYTES,
        amount_bytes=READS * (APART + READ_BYTES),
        queue_depth=depth,
    )


def _fill(
    session: RunSession, trim: Job | None, size: int, rate: float, start: int, distance: int
) -> int:
    """Writes from `start` on until the buffer is full, and the bytes up to `distance` before.

    Returns where they end.
    """
    done, is_full = 0, False
    while start < distance or not (is_full or done >= FARTHEST):
        if start + FILL_CHUNK + READS * APART > size:
            start = 0
            if trim is not None:  # overwritten data would be collected
                session.run(Step("trim", "trimming the region", "trim"), trim)
        step = Step("refill", "filling the buffer again", "fill", 1)
        outcome = session.run(step, sequential_job("write", FILL_CHUNK, offset=start))
        is_full = outcome.bytes / outcome.seconds < FILLING * rate
        start, done = start + FILL_CHUNK, done + FILL_CHUNK
    return start


def _time_programs(session: RunSession) -> None:
    """Times flushes right after a small write: a program each, if a flush waits for flash."""
    job = msgspec.structs.replace(
        sequential_job("write", PROGRAMS * GRAIN),
        block_bytes=GRAIN,
        queue_depth=1,
        sync=FlushEvery(1),
    )
    session.run(Step("program", "timing single flushes", "fill"), job)


def _fill_again(session: RunSession, plan: Plan, drop: RateDrop) -> None:
    """Fills the buffer several more times, right after flushes and by smaller requests."""
    for number in range(FILLS):
        session.flush(1)
        step = Step("write", "filling the buffer again", "fill", 1, number, case="emptied")
        session.run(step, small_job(plan, number, round(2 * min(drop.at, 64 * MIB))))


def _pause(session: RunSession, plan: Plan, drop: RateDrop) -> None:
    """Writes after pauses of growing length, until a longer one frees no more of the buffer.

    Flash programs what the buffer holds during a pause. The drive is busy before and after it, so
    that an SLC cache stays full.
    """
    amount, emptied, enough, found = PAUSE_FIRST_BYTES, 0, 0, None
    drops: list[tuple[Progress, RateDrop]] = []
    for number in range(PAUSES_MAX + EMPTIED_MIN):
        share = max(0.1, 1 - drop.after / drop.before)  # of a write that stays in the buffer
        length = 2.5 * amount / share
        if enough and found is not None:
            length = min(length, 3 * found.at)
        job = small_job(plan, number, round(length))
        rest_s = amount / drop.after
        label = f"writing again after a pause of {1000 * rest_s:.3g} ms"
        step = Step("write", label, "fill", 1, number, case="paused", value=rest_s, rest_s=rest_s)
        curve = progress_of([session.run(step, job)])
        found = first_drop(curve, float(job.amount_bytes), 3 * PAUSE_BLOCK)
        drops += [] if found is None else [(curve, found)]
        # Flash may be slower than after the drop, as when it folds its cache.
        programmed = rest_s * min(drop.after, rate_after(drops) or drop.after)
        is_long = (
            found is not None and rest_s >= PROGRAM_MAX_S and programmed > LONGER * found.buffered
        )
        emptied = emptied + 1 if is_long or enough else 0
        if emptied == 2 and not enough:
            enough = amount // 2
        if emptied == EMPTIED_MIN or (not enough and number == PAUSES_MAX - 1):
            return
        if not enough:
            amount *= 2
        else:  # it takes turns with a longer one, which frees as much if it is only the buffer
            amount = enough if amount > enough else round(LONGER_PAUSE * enough)


def small_job(plan: Plan, number: int, amount: int) -> Job:
    """A write that ends at another place within a row of pages each time."""
    length = min(plan.size, amount // MIB * MIB + 4 * MIB + 5 * number % 32 * PAUSE_BLOCK)
    places = (plan.size - length) // MIB + 1
    job = sequential_job("write", length, offset=number % places * MIB)
    return msgspec.structs.replace(job, block_bytes=PAUSE_BLOCK)


def _supports_trim(session: RunSession) -> bool:
    drives = session.target.identity.get("drives", ())
    if session.target.is_virtual or (drives and all(d.get("discard_max_bytes") for d in drives)):
        return True
    session.target.warn(
        "no-trim",
        "The drive does not support TRIM here, so it still holds its old data and its SLC cache "
        "may be smaller than on an empty drive. Trim the drive by other means first.",
    )
    return False

"""Measurement of fsync: what do durable writes cost, and does the drive honour a flush?

A file is written once. Bursts of 1 to 16 MiB are written, each followed by a flush, and then the
file again without one: its second half shows how fast flash takes data. A probe times flushes with
nothing to flush and flushes right after a write: the latter take longer on a drive that has to
program the data. Then random 16 KiB reads and writes (60:40) run over the file: at queue depths 16
and 1, with direct and buffered I/O, and with no sync, fsync, fdatasync or O_DSYNC for each write.
Last comes the "sysbench trap", the default of sysbench: buffered I/O on zeros. Sources: the
published comparison of a protected and a volatile drive (mix, block size); pg_test_fsync (plausible
sync times).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ssdlab.device import Drive, FlushEvery, Job, RealOptions
from ssdlab.experiments.fsync.parameters import Fsync
from ssdlab.runner.page_cache import cached_share, drop_cached
from ssdlab.runner.power_loss_protection import CacheClass, protection_of
from ssdlab.runner.session import FILL_BLOCK, RunSession, Step
from ssdlab.target import Target

KIB: Final = 1 << 10
MIB: Final = 1 << 20
BLOCK: Final = 16 * KIB
READ_SHARE: Final = 0.6
IN_FLIGHT: Final = (16, 1)
ROUNDS: Final = 3
PROBES: Final = 11
"""Flushes of each kind per round: enough that a few slow flushes do not change the median."""
BURSTS: Final = (MIB, 4 * MIB, 16 * MIB)
BURST_BLOCK: Final = 128 * KIB
BURST_DEPTH: Final = 16
DRAIN_S: Final = 0.5
"""Reads before a burst: flash takes 64 MiB from the buffer in that time, unless it is very slow."""
SIZE: Final = 1024 * MIB
QUICK_SIZE: Final = 128 * MIB
SECONDS: Final = 5.0
QUICK_SECONDS: Final = 1.0
REPEATS: Final = 3
QUICK_REPEATS: Final = 2
TRAP: Final = "sysbench trap"

Access = Literal["direct", "buffered"]
Sync = Literal["none", "fsync", "fdatasync", "dsync"]


@dataclass(frozen=True)
class Mode:
    """Direct or buffered I/O, and how each write is made durable; `zeros` is the sysbench trap."""

    access: Access
    sync: Sync
    zeros: bool = False

    @property
    def name(self) -> str:
        """The value of the column `mode`, such as `direct fsync`."""
        return TRAP if self.zeros else f"{self.access} {self.sync}"


_SYNCS: Final[tuple[Sync, ...]] = ("none", "fsync", "fdatasync", "dsync")
_MODE_GROUPS: Final = (
    tuple(Mode("direct", sync) for sync in _SYNCS),
    tuple(Mode("buffered", sync) for sync in _SYNCS),
    (Mode("buffered", "none", zeros=True),),
)
"""Modes that take turns within a repeat. Direct modes come first, with an empty page cache."""
REAL_MODES: Final = tuple(mode for group in _MODE_GROUPS for mode in group)
TWIN_MODES: Final = tuple(mode for mode in _MODE_GROUPS[0] if mode.sync != "fdatasync")
"""A twin has no page cache and no files: fsync and fdatasync would be the same flush."""


@dataclass(frozen=True)
class Plan:
    """The plan of a run, stored in the manifest. A step ends after `seconds` or `size` bytes."""

    size: int = SIZE
    seconds: float = SECONDS
    repeats: int = REPEATS
    data_sheet: CacheClass = "unknown"
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """Bytes of a request when the file is first written."""
        return FILL_BLOCK

    @property
    def steps(self) -> int:
        """Number of steps of the mix on a real drive."""
        return len(REAL_MODES) * len(IN_FLIGHT) * self.repeats

    @property
    def write_bytes(self) -> int:
        """Bytes written at most: the file thrice, the mix of reads and writes, and the probes."""
        mix = self.steps * (1 - READ_SHARE) * self.size
        return 3 * self.size + int(mix) + ROUNDS * (PROBES * BLOCK + sum(BURSTS))

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {
            "size_mib": self.size / MIB,
            "block_kib": BLOCK // KIB,
            "read_share_percent": 100 * READ_SHARE,
            "in_flight": list(IN_FLIGHT),
            "step_s": self.seconds,
            "repeats": self.repeats,
            "data_sheet": self.data_sheet,
        }

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work, for the forecast of the run's duration."""
        return {"fill": 3.0 * self.size, "timed": self.steps * self.seconds}


def plan(parameters: Fsync, _target: Target, seed: int) -> Plan:
    """The plan for the user's parameters.

    Raises:
        UsageError: the size is out of range.
    """
    if parameters.quick:
        size = parameters.size_bytes(QUICK_SIZE)
        return Plan(size, QUICK_SECONDS, QUICK_REPEATS, parameters.data_sheet, seed)
    return Plan(parameters.size_bytes(SIZE), SECONDS, REPEATS, parameters.data_sheet, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the file, times single flushes, and runs the mix of reads and writes in each mode.

    Modes take turns within a repeat, so that drift affects all of them equally.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    protection = protection_of(session.target, plan.data_sheet)
    session.observe("claim", None, protection.cache_class)
    session.observe("claim_source", None, protection.source)
    session.fill(plan.size, 0, session.target.drive)
    modes = TWIN_MODES if session.target.is_virtual else REAL_MODES
    drives = {mode: _open_mode(session, plan, mode) for mode in modes}
    # With fdatasync, the probes' times exclude the update of the file's timestamps.
    probed = drives.get(Mode("direct", "fdatasync"), session.target.drive)
    _bursts(session, plan, probed)
    _probe(session, plan, probed)
    for group in _MODE_GROUPS:
        group_modes = [mode for mode in group if mode in drives]
        if not group_modes:
            continue
        if group[0].zeros:  # sysbench prepares its files with buffered writes
            session.fill(plan.size, 1, drives[group[0]])
        for repeat in range(plan.repeats):
            for mode in group_modes:
                for in_flight in IN_FLIGHT:
                    mix(session, plan, drives[mode], mode, in_flight, repeat)
        if group[0].access == "direct":
            session.target.check_uncached()


def _open_mode(session: RunSession, plan: Plan, mode: Mode) -> Drive:
    """The target's drive, reopened if the mode needs it."""
    if session.target.is_virtual or (mode.access == "direct" and mode.sync != "fdatasync"):
        return session.target.drive
    options = RealOptions(
        direct=mode.access == "direct",
        flush="fdatasync" if mode.sync == "fdatasync" else "fsync",
        content="zeros" if mode.zeros else "incompressible",
        seed=plan.seed,
    )
    # Programs with buffered I/O usually call pread and pwrite from several threads.
    return session.target.reopened(options, "sync" if mode.access == "buffered" else "io_uring")


def _bursts(session: RunSession, plan: Plan, drive: Drive) -> None:
    """Times bursts and the flushes after them, and writes the file in two halves without a flush.

    Before each burst the drive reads, so that it empties a buffer that a flush leaves full. In idle
    time it would also empty its SLC cache, and then be faster than in the long write.
    """
    drain = Job(
        op="read",
        pattern="random",
        length_bytes=plan.size,
        block_bytes=BLOCK,
        amount_bytes=plan.size,
        seconds=DRAIN_S,
        seed=plan.seed,
    )
    for repeat in range(ROUNDS):
        for size in BURSTS:
            if size <= plan.size // 2:
                step = Step("burst", "timing flushes after bursts", "overwrite", repeat=repeat)
                session.run(replace(step, case="drain"), drain, drive)
                step = replace(step, case="write", value=size)
                session.run(step, _in_order(0, size), drive)
                session.run(replace(step, case="flush"), Job(op="flush"), drive)
    half = plan.size // 2 // MIB * MIB
    for number in range(2):
        step = Step("flood", "writing without flushes", "fill", repeat=number)
        session.run(step, _in_order(number * half, half), drive)
    session.flush(drive=drive)


def _in_order(offset: int, size: int) -> Job:
    return Job(
        op="write",
        offset_bytes=offset,
        length_bytes=size,
        block_bytes=BURST_BLOCK,
        amount_bytes=size,
        queue_depth=BURST_DEPTH,
    )


def _probe(session: RunSession, plan: Plan, drive: Drive) -> None:
    """Alternates rounds of flushes with nothing to flush and of flushes right after a write."""
    job = Job(
        op="write",
        pattern="random",
        length_bytes=plan.size,
        block_bytes=BLOCK,
        amount_bytes=PROBES * BLOCK,
        sync=FlushEvery(1),
        seed=plan.seed,
    )
    label = "timing single flushes"
    for round_number in range(ROUNDS):
        for repeat in range(round_number * PROBES, (round_number + 1) * PROBES):
            step = Step("probe", label, "overwrite", repeat=repeat, case="empty")
            session.run(step, Job(op="flush"), drive)
        step = Step("probe", label, "overwrite", repeat=round_number, case="written")
        session.run(step, job, drive)


def mix(
    session: RunSession, plan: Plan, drive: Drive, mode: Mode, in_flight: int, repeat: int = 0
) -> None:
    """Runs one step of the mix, then flushes, so that its writes do not slow the next step."""
    threaded = mode.access == "buffered"
    if threaded and not mode.zeros:
        drop_cached(session.target)
    job = Job(
        op="write",
        read_share=READ_SHARE,
        pattern="random",
        length_bytes=plan.size,
        block_bytes=BLOCK,
        amount_bytes=plan.size,
        seconds=plan.seconds,
        queue_depth=1 if threaded else in_flight,
        threads=in_flight if threaded else 1,
        sync=_job_sync(mode.sync),
        seed=plan.seed + repeat,
    )
    label = f"{mode.name}, {in_flight} in flight"
    step = Step("mix", label, "timed", repeat=repeat, case=mode.name, value=in_flight)
    session.run(step, job, drive)
    if threaded:
        session.observe("cached_share", cached_share(session.target, plan.size), mode.name)
    session.flush(drive=drive)


def _job_sync(sync: Sync) -> Literal["none", "durable"] | FlushEvery:
    if sync == "none":
        return "none"
    return "durable" if sync == "dsync" else FlushEvery(1)

"""fsync: what does it cost to have each write kept, and is it kept?

A file is written once. Then 16 KiB reads and writes (60 to 40) go over it at random, 16 in flight
and one after the other, past the page cache and through it, with nothing, fsync, fdatasync or
O_DSYNC after each write. Last, what a well-known tool does unless told not to: zeros through the
page cache. A probe times flushes with nothing to flush and right after a write: a drive that has to
bring data into its flash takes longer for the second. Sources: the published pair of a protected
and a volatile drive, whose mix and block size these are; pg_test_fsync (plausible speeds of sync).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
"""Flushes of each kind in a round: enough for a median that a few late ones do not move."""
SIZE: Final = 1024 * MIB
QUICK_SIZE: Final = 128 * MIB
SECONDS: Final = 5.0
QUICK_SECONDS: Final = 1.0
REPEATS: Final = 3
QUICK_REPEATS: Final = 2
TRAP: Final = "sysbench trap"

Way = Literal["direct", "buffered"]
Kept = Literal["none", "fsync", "fdatasync", "dsync"]


@dataclass(frozen=True)
class Mode:
    """How requests go, and how writes are made durable."""

    way: Way
    kept: Kept
    trap: bool = False

    @property
    def name(self) -> str:
        """As in the measures: `direct fsync`."""
        return TRAP if self.trap else f"{self.way} {self.kept}"


_KEPT: Final[tuple[Kept, ...]] = ("none", "fsync", "fdatasync", "dsync")
_WAYS: Final[tuple[Way, ...]] = ("direct", "buffered")
REAL_MODES: Final = (
    *(Mode(way, kept) for way in _WAYS for kept in _KEPT),
    Mode("buffered", "none", trap=True),
)
TWIN_MODES: Final = tuple(Mode("direct", kept) for kept in _KEPT if kept != "fdatasync")
"""A twin has no page cache and no files: fsync and fdatasync are both its flush."""


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes. A step ends after `seconds`, or `size` bytes of requests."""

    size: int = SIZE
    seconds: float = SECONDS
    repeats: int = REPEATS
    data_sheet: CacheClass = "unknown"
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """The requests of the first writing."""
        return FILL_BLOCK

    @property
    def steps(self) -> int:
        """Steps of the mix on a real drive."""
        return len(REAL_MODES) * len(IN_FLIGHT) * self.repeats

    @property
    def write_bytes(self) -> int:
        """The file twice, and at most the share of writes of each step; the probe is small."""
        mixed = self.steps * (1 - READ_SHARE) * self.size
        return 2 * self.size + int(mixed) + ROUNDS * PROBES * BLOCK

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
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
        """Work to do by kind, for the forecast."""
        return {"fill": 2.0 * self.size, "timed": self.steps * self.seconds}


def plan(parameters: Fsync, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range.
    """
    if parameters.quick:
        size = parameters.size_bytes(QUICK_SIZE)
        return Plan(size, QUICK_SECONDS, QUICK_REPEATS, parameters.data_sheet, seed)
    return Plan(parameters.size_bytes(SIZE), SECONDS, REPEATS, parameters.data_sheet, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the file, probes single flushes, and runs the mix in each mode.

    Modes take turns within a repeat, so that what drifts while this runs touches all alike; those
    past the page cache come first, before anything is in it.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    protection = protection_of(session.target, plan.data_sheet)
    session.observe("claim", None, protection.cache_class)
    session.observe("claim_source", None, protection.source)
    session.fill(plan.size, 0, session.target.drive)
    modes = TWIN_MODES if session.target.is_virtual else REAL_MODES
    drives = {mode: _drive_for(session, plan, mode) for mode in modes}
    _probe(session, plan, _prober(session, drives))
    for turn in _turns(modes):
        if turn[0].trap:  # as its tool does: the files are made through the page cache
            session.fill(plan.size, 1, drives[turn[0]])
        for repeat in range(plan.repeats):
            for mode in turn:
                for in_flight in IN_FLIGHT:
                    mix(session, plan, (mode, in_flight, repeat), drives[mode])
        if turn[0].way == "direct":
            session.target.check_uncached()


def _turns(modes: Sequence[Mode]) -> Iterator[list[Mode]]:
    """The modes that take turns: past the page cache, through it, and the trap by itself."""
    for way, trap in (("direct", False), ("buffered", False), ("buffered", True)):
        turn = [mode for mode in modes if (mode.way, mode.trap) == (way, trap)]
        if turn:
            yield turn


def _drive_for(session: RunSession, plan: Plan, mode: Mode) -> Drive:
    """The site's drive, or the same opened for this mode."""
    if session.target.is_virtual or (mode.way == "direct" and mode.kept != "fdatasync"):
        return session.target.drive
    options = RealOptions(
        direct=mode.way == "direct",
        flush="fdatasync" if mode.kept == "fdatasync" else "fsync",
        content="zeros" if mode.trap else "incompressible",
        seed=plan.seed,
    )
    # Programs that use the page cache call pread and pwrite, each thread one at a time.
    return session.target.reopened(options, "sync" if mode.way == "buffered" else "io_uring")


def _prober(session: RunSession, drives: dict[Mode, Drive]) -> Drive:
    """By fdatasync where there is one: a file's times of change are then no part of it."""
    return drives.get(Mode("direct", "fdatasync"), session.target.drive)


def _probe(session: RunSession, plan: Plan, drive: Drive) -> None:
    """Flushes of nothing, and as many right after a write, in turns."""
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
    for turn in range(ROUNDS):
        for repeat in range(turn * PROBES, (turn + 1) * PROBES):
            step = Step("probe", label, "overwrite", repeat=repeat, case="empty")
            session.run(step, Job(op="flush"), drive)
        session.run(Step("probe", label, "overwrite", repeat=turn, case="written"), job, drive)


def mix(session: RunSession, plan: Plan, place: tuple[Mode, int, int], drive: Drive) -> None:
    """One step of the mix; then all is flushed, so that the next step owes nothing for it."""
    mode, in_flight, repeat = place
    opened = session.target
    if mode.way == "buffered" and not mode.trap:
        drop_cached(opened)
    threaded = mode.way == "buffered"
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
        sync=_sync(mode.kept),
        seed=plan.seed + repeat,
    )
    label = f"{mode.name}, {in_flight} in flight"
    step = Step("mix", label, "timed", repeat=repeat, case=mode.name, value=in_flight)
    session.run(step, job, drive)
    if mode.way == "buffered":
        session.observe("cached_share", cached_share(opened, plan.size), mode.name)
    session.flush(drive=drive)


def _sync(kept: Kept) -> Literal["none", "durable"] | FlushEvery:
    if kept == "none":
        return "none"
    return "durable" if kept == "dsync" else FlushEvery(1)

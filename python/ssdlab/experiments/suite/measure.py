"""suite: the table that people know from AS SSD and CrystalDiskMark, with its spread.

In order by 1 MiB, at random by 4 KiB one at a time and 64 at a time, and the access time of one
sector, each read and written, three runs. The same once more with zeros: a controller that
compresses is faster with them. Writes with O_DSYNC, and on a real drive reads and writes through
the page cache that has been emptied of the file. Sources: those two programs' tests; the published
table of an Intel S3510 120 GB, whose mean, mean absolute deviation and per cent are printed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from ssdlab.device import Drive, Job, RealOptions
from ssdlab.experiments.suite.parameters import Suite
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.page_cache import cached_share, drop_cached
from ssdlab.runner.session import RunSession, Step
from ssdlab.runner.written import CACHED_SOME
from ssdlab.target import Target

KIB: Final = 1 << 10
MIB: Final = 1 << 20
RUNS: Final = 3
SIZE: Final = 1024 * MIB
QUICK_SIZE: Final = 128 * MIB
SECONDS: Final = 5.0
QUICK_SECONDS: Final = 1.0
MANY: Final = 64
IN_ORDER_DEPTH: Final = 8
RANDOM_PART: Final = 4
"""A random trial ends after this part of the file at the latest."""
FEW_PART: Final = 64
"""The same of trials whose requests wait for one another or are small."""

Way = Literal["direct", "buffered", "zeros"]


@dataclass(frozen=True)
class Trial:
    """A cell of the table. `block` 0 is a sector of the drive; `part` divides the file's size."""

    name: str
    op: Literal["read", "write"]
    block: int
    in_flight: int = 1
    part: int = 1
    way: Way = "direct"
    durable: bool = False

    @property
    def in_order(self) -> bool:
        """Whether the whole file is gone through in order."""
        return self.part == 1


def _pair(name: str, block: int, in_flight: int, part: int) -> tuple[Trial, Trial]:
    return Trial(name, "read", block, in_flight, part), Trial(name, "write", block, in_flight, part)


# What is read was written by the trial before it that goes through the whole file.
_READ_4K, _WRITE_4K = _pair("random 4k", 4 * KIB, 1, RANDOM_PART)
_READ_64, _WRITE_64 = _pair("random 4k x64", 4 * KIB, MANY, RANDOM_PART)
_READ_ONE, _WRITE_ONE = _pair("access time", 0, 1, FEW_PART)
TRIALS: Final = (
    Trial("sequential", "write", MIB, IN_ORDER_DEPTH),
    Trial("sequential", "read", MIB, IN_ORDER_DEPTH),
    *(_READ_4K, _READ_64, _READ_ONE, _WRITE_4K, _WRITE_64, _WRITE_ONE),
    Trial("random 4k dsync", "write", 4 * KIB, 1, FEW_PART, durable=True),
    Trial("buffered dsync", "write", MIB, 1, way="buffered", durable=True),
    Trial("buffered", "read", MIB, 1, way="buffered"),
    Trial("sequential zeros", "write", MIB, IN_ORDER_DEPTH, way="zeros"),
    Trial("sequential zeros", "read", MIB, IN_ORDER_DEPTH),
    Trial("random 4k zeros", "read", 4 * KIB, 1, RANDOM_PART),
    Trial("random 4k x64 zeros", "write", 4 * KIB, MANY, RANDOM_PART, way="zeros"),
)


@dataclass(frozen=True)
class Plan:
    """What a run does; sizes in bytes. Random trials end after `seconds` at the latest."""

    size: int = SIZE
    seconds: float = SECONDS
    runs: int = RUNS
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """Of what goes in order."""
        return MIB

    @property
    def write_bytes(self) -> int:
        """The file at first, and what each run may write at most."""
        return self.size + self.runs * sum(self.size // t.part for t in TRIALS if t.op == "write")

    def parameters(self) -> dict[str, Any]:
        """For the manifest and the result."""
        return {"size_mib": self.size / MIB, "step_s": self.seconds, "runs": self.runs}

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast."""
        whole = {op: sum(t.in_order and t.op == op for t in TRIALS) for op in ("read", "write")}
        timed = sum(not trial.in_order for trial in TRIALS)
        return {
            "fill": float((1 + self.runs * whole["write"]) * self.size),
            "read": float(self.runs * whole["read"] * self.size),
            "timed": self.runs * timed * self.seconds,
        }


def plan(parameters: Suite, _target: Target, seed: int) -> Plan:
    """The plan for these parameters.

    Raises:
        UsageError: the size is out of range.
    """
    quick = parameters.quick
    size = parameters.size_bytes(QUICK_SIZE if quick else SIZE)
    return Plan(size, QUICK_SECONDS if quick else SECONDS, RUNS, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the file, and then the whole table, three times: what drifts touches all cells.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    session.fill(plan.size)
    drives = dict(_drives(session.target, plan))
    for run in range(plan.runs):
        for trial in TRIALS:
            if trial.way in drives:
                _try(session, plan, (trial, run), drives[trial.way])
    session.target.check_uncached()


def _drives(opened: OpenTarget, plan: Plan) -> Iterator[tuple[Way, Drive]]:
    """How each way is gone; a twin has no page cache."""
    if opened.is_virtual:
        yield "direct", opened.drive
        yield "zeros", opened.drive.writing_zeros()
        return
    deep = RealOptions(queue_depth=MANY, seed=plan.seed)
    zeros = RealOptions(queue_depth=MANY, content="zeros")
    cached = RealOptions(direct=False, seed=plan.seed)
    yield "direct", opened.reopened(deep)
    yield "zeros", opened.reopened(zeros)
    yield "buffered", opened.reopened(cached, "sync")


def _try(session: RunSession, plan: Plan, place: tuple[Trial, int], drive: Drive) -> None:
    """One cell of the table; what was written is flushed, so that the next owes nothing for it."""
    trial, run = place
    if trial.way == "buffered":
        _check_forgotten(session, plan, trial)
    label = f"{trial.name}, {trial.op}"
    kind = ("read" if trial.op == "read" else "fill") if trial.in_order else "timed"
    step = Step(trial.op, label, kind, repeat=run, case=trial.name, value=trial.in_flight)
    session.run(step, _job(plan, trial, run, drive), drive)
    if trial.op == "write":
        session.flush(drive=drive)
    if trial.way == "buffered":
        drop_cached(session.target)


def _check_forgotten(session: RunSession, plan: Plan, trial: Trial) -> None:
    """What follows is done as if memory were full of other things: the file must come or go."""
    share = cached_share(session.target, plan.size)
    session.observe("cached_share", share, trial.name)
    if share is not None and share > CACHED_SOME:
        session.target.warn(
            "page-cache",
            f"{share:.0%} of the file stayed in the page cache: {trial.name} is partly memory's.",
        )


def _job(plan: Plan, trial: Trial, run: int, drive: Drive) -> Job:
    return Job(
        op=trial.op,
        pattern="sequential" if trial.in_order else "random",
        length_bytes=plan.size,
        block_bytes=trial.block or drive.sector_bytes,
        amount_bytes=plan.size // trial.part,
        seconds=None if trial.in_order else plan.seconds,
        queue_depth=trial.in_flight,
        sync="durable" if trial.durable else "none",
        seed=plan.seed + run,
    )

"""Measurement of suite: the benchmark table of AS SSD and CrystalDiskMark, in three runs.

Reads and writes: sequential 1 MiB, random 4 KiB at queue depths 1 and 64, and single sectors
(access time). Some tests are repeated with zeros, because a controller that compresses is faster
with them. Then follow writes with O_DSYNC and, on a real drive, buffered reads and writes after the
file was evicted from the page cache. Last come the two tests of CrystalDiskMark's table that AS
SSD's lacks. Sources: the tests of those two programs; the published table of an Intel S3510 120 GB,
with mean and mean absolute deviation (also in per cent).
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
DEPTH_MAX: Final = 64
SEQUENTIAL_DEPTH: Final = 8
CRYSTALDISKMARK_DEPTH: Final = 32
RANDOM_DIVISOR: Final = 4
"""A random test transfers at most the file size divided by this."""
SLOW_DIVISOR: Final = 64
"""The same divisor for tests with single sectors or synchronous writes."""

Access = Literal["direct", "buffered", "zeros"]


@dataclass(frozen=True)
class Test:
    """One test of the table. A `block` of 0 means one sector of the drive.

    A test transfers the file size divided by `divisor`; with a divisor of 1 it is sequential.
    """

    name: str
    op: Literal["read", "write"]
    block: int
    in_flight: int = 1
    divisor: int = 1
    access: Access = "direct"
    durable: bool = False

    @property
    def sequential(self) -> bool:
        """Whether it transfers the whole file in order."""
        return self.divisor == 1


# The order matters: a read test reads what the last sequential write test wrote.
TESTS: Final = (
    Test("sequential", "write", MIB, SEQUENTIAL_DEPTH),
    Test("sequential", "read", MIB, SEQUENTIAL_DEPTH),
    Test("random 4k", "read", 4 * KIB, 1, RANDOM_DIVISOR),
    Test("random 4k x64", "read", 4 * KIB, DEPTH_MAX, RANDOM_DIVISOR),
    Test("access time", "read", 0, 1, SLOW_DIVISOR),
    Test("random 4k", "write", 4 * KIB, 1, RANDOM_DIVISOR),
    Test("random 4k x64", "write", 4 * KIB, DEPTH_MAX, RANDOM_DIVISOR),
    Test("access time", "write", 0, 1, SLOW_DIVISOR),
    Test("random 4k dsync", "write", 4 * KIB, 1, SLOW_DIVISOR, durable=True),
    Test("buffered dsync", "write", MIB, 1, access="buffered", durable=True),
    Test("buffered", "read", MIB, 1, access="buffered"),
    Test("sequential zeros", "write", MIB, SEQUENTIAL_DEPTH, access="zeros"),
    Test("sequential zeros", "read", MIB, SEQUENTIAL_DEPTH),
    Test("random 4k zeros", "read", 4 * KIB, 1, RANDOM_DIVISOR),
    Test("random 4k x64 zeros", "write", 4 * KIB, DEPTH_MAX, RANDOM_DIVISOR, access="zeros"),
    Test("sequential x1", "write", MIB),
    Test("sequential x1", "read", MIB),
    Test("random 4k x32", "read", 4 * KIB, CRYSTALDISKMARK_DEPTH, RANDOM_DIVISOR),
    Test("random 4k x32", "write", 4 * KIB, CRYSTALDISKMARK_DEPTH, RANDOM_DIVISOR),
)


@dataclass(frozen=True)
class Plan:
    """The plan of a run, stored in the manifest. A random test takes at most `seconds`."""

    size: int = SIZE
    seconds: float = SECONDS
    runs: int = RUNS
    seed: int = 0

    @property
    def request_bytes_max(self) -> int:
        """Bytes of a sequential request."""
        return MIB

    @property
    def write_bytes(self) -> int:
        """Bytes written at most: the file, and all write tests of each run."""
        per_run = sum(self.size // test.divisor for test in TESTS if test.op == "write")
        return self.size + self.runs * per_run

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {"size_mib": self.size / MIB, "step_s": self.seconds, "runs": self.runs}

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work, for the forecast of the run's duration."""
        sequential = [test.op for test in TESTS if test.sequential]
        timed = len(TESTS) - len(sequential)
        return {
            "fill": float((1 + self.runs * sequential.count("write")) * self.size),
            "read": float(self.runs * sequential.count("read") * self.size),
            "timed": self.runs * timed * self.seconds,
        }


def plan(parameters: Suite, _target: Target, seed: int) -> Plan:
    """The plan for the user's parameters.

    Raises:
        UsageError: the size is out of range.
    """
    quick = parameters.quick
    size = parameters.size_bytes(QUICK_SIZE if quick else SIZE)
    return Plan(size, QUICK_SECONDS if quick else SECONDS, RUNS, seed)


def measure(session: RunSession, plan: Plan) -> None:
    """Writes the file, then runs all tests, once per run, so that drift affects all equally.

    Raises:
        Interrupted, DeviceFailure, TargetError: as `RunSession.run_plan`.
    """
    session.fill(plan.size)
    drives = dict(_drives(session.target, plan))
    for run in range(plan.runs):
        for test in TESTS:
            if test.access in drives:
                _run_test(session, plan, drives[test.access], test, run)
    session.target.check_uncached()


def _drives(opened: OpenTarget, plan: Plan) -> Iterator[tuple[Access, Drive]]:
    """Opens the target once per access mode; a twin has no buffered access."""
    if opened.is_virtual:
        yield "direct", opened.drive
        yield "zeros", opened.drive.writing_zeros()
        return
    deep = RealOptions(queue_depth=DEPTH_MAX, seed=plan.seed)
    zeros = RealOptions(queue_depth=DEPTH_MAX, content="zeros")
    cached = RealOptions(direct=False, seed=plan.seed)
    yield "direct", opened.reopened(deep)
    yield "zeros", opened.reopened(zeros)
    yield "buffered", opened.reopened(cached, "sync")


def _run_test(session: RunSession, plan: Plan, drive: Drive, test: Test, run: int) -> None:
    """Runs one test; flushes after writes, so that they do not slow the next test."""
    if test.access == "buffered":
        _check_evicted(session, plan, test)
    label = f"{test.name}, {test.op}"
    kind = ("read" if test.op == "read" else "fill") if test.sequential else "timed"
    step = Step(test.op, label, kind, repeat=run, case=test.name, value=test.in_flight)
    session.run(step, _job(plan, test, run, drive), drive)
    if test.op == "write":
        session.flush(drive=drive)
    if test.access == "buffered":
        drop_cached(session.target)


def _check_evicted(session: RunSession, plan: Plan, test: Test) -> None:
    """Records how much of the file is in the page cache before a buffered test; warns if any."""
    share = cached_share(session.target, plan.size)
    session.observe("cached_share", share, test.name)
    if share is not None and share > CACHED_SOME:
        session.target.warn(
            "page-cache",
            f"{share:.0%} of the file stayed in the page cache, so {test.name!r} partly measures "
            "memory. Close programs that use the file, or measure on ext4 or xfs.",
        )


def _job(plan: Plan, test: Test, run: int, drive: Drive) -> Job:
    return Job(
        op=test.op,
        pattern="sequential" if test.sequential else "random",
        length_bytes=plan.size,
        block_bytes=test.block or drive.sector_bytes,
        amount_bytes=plan.size // test.divisor,
        seconds=None if test.sequential else plan.seconds,
        queue_depth=test.in_flight,
        sync="durable" if test.durable else "none",
        seed=plan.seed + run,
    )

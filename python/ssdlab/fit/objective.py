"""`Exam`: what a drive answered to an experiment, and how a candidate twin is asked the same.

Each experiment is done as on the drive, on a twin that is scaled down, where the answer does not
depend on its size. Only what depends on the numbers that a fit may change is compared: nothing
through a page cache, nothing of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ssdlab.analysis.cells import Cell
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.device import Job, describe_twin, open_twin
from ssdlab.device.kinds import Pattern
from ssdlab.errors import TargetError
from ssdlab.experiments.cache import analysis as cache_analysis
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.cache.parameters import Cache
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.registry import cells_of
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.steady.parameters import DEPTH as STEADY_DEPTH
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.stripe.probes import Probe
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit.ageing import CHECKED, SCALED, Ageing, twin_seconds
from ssdlab.fit.measured import Measured
from ssdlab.records import Finding
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import Plan, RunSession, Step

Floats = npt.NDArray[np.float64]
Key = tuple[tuple[str | float, ...], str]
KIB: Final = 1 << 10
MIB: Final = 1 << 20
CAPACITY: Final = 1024 * MIB
"""Of a candidate, in bytes: room for every drive's dies, and for what is written."""
SCATTER: Final = 0.04
"""What repeats and the model's own simplicity add, as a share of a number."""
READS: Final = 2048
SETTLE_S: Final = 1.0
"""By then what a buffer held is programmed: 64 MiB by the slowest drive here."""
FRESH: Final = 128 * MIB
LONG: Final = 512 * MIB
"""Written in order, so that buffers and caches are full in its last quarter."""
ROUGH, FINE, LAST = range(3)
"""How closely a candidate is asked: in a first search, in the fit, for the final table."""


@dataclass(frozen=True)
class Exam:
    """An experiment's cells as the drive has them; `ask` gives those of a profile's twin."""

    experiment: str
    cells: tuple[Cell, ...]
    ask: Callable[[str, int], Mapping[Key, float]]
    sigma: Floats
    """Standard deviation of the logarithm of each cell's value."""

    @property
    def values(self) -> Floats:
        """What the drive measured."""
        return np.array([cell.value for cell in self.cells])

    def answers(self, profile: str, effort: int = FINE) -> Floats:
        """What the twin measures for each cell; NaN where it has no such.

        Raises:
            TargetError: the profile is wrong, or its twin cannot be so small.
        """
        found = self.ask(profile, effort)
        return np.array([found.get(cell.key, np.nan) for cell in self.cells])

    def only(self, wanted: npt.NDArray[np.bool_]) -> Exam:
        """The exam with some of its cells."""
        kept = tuple(cell for cell, keep in zip(self.cells, wanted, strict=True) if keep)
        return Exam(self.experiment, kept, self.ask, self.sigma[wanted])


def of_ageing(row: Ageing) -> Exam:
    """The exam of an ageing row; the first search takes half of the usual file.

    Where a drive has too many dies for so small a twin, the first search takes the usual file, too.
    """
    written = [sum(row.written_mib[:n]) for n in range(len(row.seconds))]
    rows = zip(written, row.seconds, strict=True)
    found = tuple(Cell((mib,), "read_s", seconds, unit="s") for mib, seconds in rows)
    sizes = {ROUGH: SCALED // 2, FINE: SCALED, LAST: CHECKED}

    def ask(profile: str, effort: int) -> dict[Key, float]:
        try:
            seconds = twin_seconds(profile, row, size=sizes[effort])
        except TargetError:
            if effort != ROUGH:
                raise
            seconds = twin_seconds(profile, row, size=sizes[FINE])
        return {cell.key: float(each) for cell, each in zip(found, seconds, strict=True)}

    return Exam("aging", found, ask, row.sigma)


def of_measured(results: Measured) -> Exam | None:
    """The exam of another experiment's results; None where nothing of them is compared."""
    taken = _Taken(results)
    found = tuple(cell for cell in taken.offered if taken.is_compared(cell))
    if not found:
        return None
    sigma = np.array([np.hypot(SCATTER, _scatter(cell.repeats)) for cell in found])
    return Exam(results.experiment, found, taken.ask, sigma)


def _scatter(repeats: tuple[float, ...]) -> float:
    """Standard error of the mean logarithm."""
    if len(repeats) < 2 or min(repeats) <= 0:
        return 0.0
    return float(np.std(np.log(repeats), ddof=1) / len(repeats) ** 0.5)


@dataclass(frozen=True)
class _Taken:
    """An experiment's results, and how a twin of a profile is asked for the same."""

    results: Measured

    @property
    def offered(self) -> list[Cell]:
        """The cells, and the findings that are compared beside them."""
        found = {each: self.results.number(each) for each in _names(self.results.experiment)}
        return [
            *self.results.cells,
            *(Cell((), name, value) for name, value in found.items() if value is not None),
        ]

    def is_compared(self, cell: Cell) -> bool:
        """Whether a twin has such a cell, and the fit can do something about it."""
        first = str(cell.case[0]) if cell.case else ""
        if self.results.experiment == "suite":
            return "zeros" not in first and "buffered" not in first
        if self.results.experiment == "fsync":
            return not cell.case or first in {mode.name for mode in fsync.TWIN_MODES}
        if self.results.experiment == "stripe":
            return cell.case[0] in _periods(self.results)
        return cell.value > 0

    def ask(self, profile: str, _effort: int) -> dict[Key, float]:
        done = ASKED[self.results.experiment](profile, self.results)
        found = {cell.key: cell.value for cell in cells_of(self.results.experiment, done.measures)}
        for name, each in done.findings.items():
            if isinstance(each.value, int | float):
                found[(), name] = float(each.value)
        return found


def _names(experiment: str) -> tuple[str, ...]:
    return FINDINGS.get(experiment, ())


def course_of(profile: str, capacity: int = CAPACITY) -> RunSession:
    """A course on the twin of a profile, scaled to that many bytes.

    Raises:
        TargetError: no such twin can be.
    """
    drive = open_twin("candidate", profile, capacity, seed=0)
    identity = {"kind": "twin", **describe_twin("candidate", profile, capacity)}
    return RunSession(OpenTarget(drive, identity))


def evidence_of(session: RunSession, plan: Plan) -> Evidence:
    """What the course recorded, for an analysis."""
    return Evidence(session.recording.tables(), plan.parameters(), virtual=True)


def _filled(profile: str, size: int) -> RunSession:
    """A candidate that was written in order, and so long ago that its buffer is empty again.

    A flush does not empty one with capacitors, and the drive was asked for longer than a candidate
    is. Reads pass the time: in a rest an SLC cache would be folded.
    """
    session = course_of(profile)
    session.fill(size)
    wait = Job("read", pattern="random", length_bytes=size, block_bytes=4 * KIB, seconds=SETTLE_S)
    session.run(Step("settle", "waiting", "random"), wait)
    return session


def _size(results: Measured, most: int) -> int:
    size = int(results.parameters.get("size_mib", most // MIB)) * MIB
    return min(size, most)


def _split(profile: str, results: Measured) -> Conclusion:
    plan = split.Plan(_size(results, 4 * split.WINDOW), repeats=1)
    session = _filled(profile, plan.size)
    split.read(session, plan)
    return split_analysis.conclude(evidence_of(session, plan))


def _suite(profile: str, results: Measured) -> Conclusion:
    seconds = min(1.0, results.parameters.get("step_s", 1.0))
    plan, session = suite.Plan(_size(results, 512 * MIB), seconds, 1), course_of(profile)
    suite.measure(session, plan)
    return suite_analysis.conclude(evidence_of(session, plan))


def _fsync(profile: str, results: Measured) -> Conclusion:
    """The mix alone: a flush right after a write takes what it takes there, one in flight."""
    # As long as on the drive: a short mix would be the buffer's, not the flash's.
    seconds = min(2.0, results.parameters.get("step_s", 1.0))
    plan = fsync.Plan(_size(results, 256 * MIB), seconds, 1)
    session = _filled(profile, plan.size)
    for mode in fsync.TWIN_MODES:
        for in_flight in fsync.IN_FLIGHT:
            fsync.mix(session, plan, (mode, in_flight, 0), session.target.drive)
    done = fsync_analysis.conclude(evidence_of(session, plan))
    found = {cell.key: cell.value for cell in cells_of("fsync", done.measures)}
    flush = found.get((("direct fsync", 1.0), "sync_us_p50"))
    return Conclusion(done.measures) if flush is None else _found("flush_us", flush, done.measures)


def buffer_and_rate(profile: str) -> Conclusion:
    """The experiment `cache`, in short."""
    plan, session = cache.plan_for(Cache(quick=True), CAPACITY, 0), course_of(profile)
    cache.measure(session, plan)
    return cache_analysis.conclude(evidence_of(session, plan))


def hidden_spare(profile: str) -> Conclusion:
    """The experiment `steady`, as far as it takes to see where collection begins."""
    plan = steady.Plan(CAPACITY, CAPACITY, drive_writes=2.0, settle_s=steady.QUICK_SETTLE_S)
    session = course_of(profile)
    steady.measure(session, plan)
    return steady_analysis.conclude(evidence_of(session, plan))


def _fresh(profile: str, results: Measured) -> Conclusion:
    """The rate of writes at random before any collection: the finding `fresh_iops` alone."""
    session = course_of(profile)
    session.fill(FRESH)
    session.flush()
    depth = int(results.parameters.get("write_queue_depth", STEADY_DEPTH))
    job = _write("random_once", FRESH, steady.BLOCK, depth)
    return _found("fresh_iops", _late(session, job, 0.5) / steady.BLOCK)


def _lasting(profile: str, _results: Measured) -> Conclusion:
    """The rate of writes in order behind buffer and cache: `lasting_mib_per_s` alone."""
    job = _write("sequential", LONG, cache.BLOCK, cache.DEPTH)
    return _found("lasting_mib_per_s", _late(course_of(profile), job, 0.75) / MIB)


def _write(pattern: Pattern, amount: int, block: int, depth: int) -> Job:
    return Job(
        op="write",
        pattern=pattern,
        length_bytes=amount,
        block_bytes=block,
        amount_bytes=amount,
        queue_depth=depth,
        interval_ms=2,
    )


def _late(session: RunSession, job: Job, begin: float) -> float:
    """Bytes a second of a job behind a share of it, when buffers are full; without its end."""
    done = session.run(Step("write", "writing", "random", rest_s=3.0), job)
    seconds, amounts = (np.array(each, dtype=np.float64) for each in done.columns())
    late = np.cumsum(amounts) > begin * done.bytes
    return float(amounts[late][:-1].sum() / seconds[late][:-1].sum())


def _found(name: str, value: float, rows: Sequence[dict[str, Any]] = ()) -> Conclusion:
    return Conclusion(list(rows), {name: Finding(value, "", None, None, "")})


def _periods(results: Measured) -> set[float]:
    """The alignments that are asked for: all units, half of them, two, one; in KiB."""
    alignments = sorted(cell.case[0] for cell in results.cells if isinstance(cell.case[0], float))
    stripe_kib = results.number("stripe_kib")
    if stripe_kib is None:
        return set(alignments[:1])
    return {alignments[0], stripe_kib / 2, stripe_kib} & set(alignments)


def _stripe(profile: str, results: Measured) -> Conclusion:
    size = _size(results, 256 * MIB)
    plan, session = stripe.Plan(size, 1, READS), _filled(profile, size)
    rows: list[dict[str, Any]] = []
    for seed, period in enumerate(sorted(_periods(results))):
        step = Step("read", "reading", "random", value=period)
        done = session.run(step, stripe.job_of(Probe(int(period * KIB)), plan, seed))
        rows.append({"alignment_kib": period, "read_mib_per_s": done.bytes / MIB / done.seconds})
    return Conclusion(rows)


ASKED: Final[dict[str, Callable[[str, Measured], Conclusion]]] = {
    "cache": _lasting,
    "fsync": _fsync,
    "split": _split,
    "steady": _fresh,
    "stripe": _stripe,
    "suite": _suite,
}
"""Each experiment whose results a fit can use, but `aging`."""
FINDINGS: Final = {
    "cache": ("lasting_mib_per_s",),
    "fsync": ("flush_us",),
    "steady": ("fresh_iops",),
}
"""The findings that are compared beside the cells."""

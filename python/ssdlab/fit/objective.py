"""`Objective`: a drive's results of one experiment, to compare with those of a candidate twin.

The candidate twin is scaled down as far as its size does not change the results. Only results that
the fitted parameters can change are compared, so results through the page cache or with all-zero
data are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from ssdlab.analysis.cells import Cell
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.device import Job, decode, describe_twin, open_twin
from ssdlab.device.kinds import Pattern
from ssdlab.experiments.cache import analysis as cache_analysis
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.cache import rests
from ssdlab.experiments.cache.parameters import Cache
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.registry import cells_of
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.steady.parameters import DEPTH as STEADY_DEPTH
from ssdlab.experiments.steady.plan import BLOCK as STEADY_BLOCK
from ssdlab.experiments.steady.plan import QUICK_SETTLE_S
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.stripe.probes import Probe
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.experiments.workload import analysis as workload_analysis
from ssdlab.fit.ageing import RELATIVE_SIGMA, SETTLE_S
from ssdlab.fit.measurement import CellKey, Measurement, medians
from ssdlab.profiles.toml_edit import get_value, values_only
from ssdlab.records import Finding
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import Plan, RunSession, Step
from ssdlab.stats.rate_drops import last_drop
from ssdlab.stats.steady import Progress
from ssdlab.units import parse_duration, parse_size

Floats = npt.NDArray[np.float64]
KIB: Final = 1 << 10
MIB: Final = 1 << 20
CAPACITY: Final = 1024 * MIB
"""Capacity of a candidate twin in bytes: room for every drive's dies and for all writes."""
STRIPE_READS: Final = 2048
WORKLOAD_REGION: Final = 512 * MIB
WORKLOAD_S: Final = 0.25
"""Duration of each job of `workload` on a candidate."""
CACHE_REGION: Final = CAPACITY // 2
"""Bytes that `cache` writes to a candidate with an SLC cache."""
FRESH_BYTES: Final = 128 * MIB
FRESH_BUFFERS: Final = 4
"""Times the buffer: it is full before the second half of the writes."""
LARGE_BUFFER: Final = 8 * MIB
_INTERVAL_US: Final = 2_000
_BUFFER_INTERVAL_US: Final = 200
"""Even 14 GB/s take a few of these to fill a large buffer."""
SPLIT_REGION: Final = 512 * MIB
"""Bytes that `split` reads at most of a candidate whose buffer or SLC cache may still hold some."""
SMALL_CACHE: Final = 96 * MIB
SUSTAINED_BYTES: Final = 512 * MIB
"""Amount of sequential writes: buffer and SLC cache are full before the last quarter, also of half
of it if the cache is below `SMALL_CACHE`. If the cache holds more than `_FULL`, it is half more."""
_FULL: Final = 0.7


class Effort(Enum):
    """How exactly a candidate is measured: for the first search, refinement or final table."""

    ROUGH = auto()
    FINE = auto()
    FINAL = auto()


@dataclass(frozen=True)
class Objective:
    """The drive's values in an experiment; `measure_twin` returns those of a profile's twin."""

    experiment: str
    cells: tuple[Cell, ...]
    measure_twin: Callable[[str, Effort], Mapping[CellKey, float]]
    sigma: Floats
    """Standard deviation of the logarithm of each cell's value."""

    @property
    def measured(self) -> Floats:
        """The drive's value for each table cell."""
        return np.array([cell.value for cell in self.cells])

    def simulate(self, profile: str, effort: Effort = Effort.FINE) -> Floats:
        """The twin's value for each table cell; NaN if the twin has none.

        Raises:
            TargetError: the profile is invalid, or its twin cannot be scaled down this far.
        """
        values = self.measure_twin(profile, effort)
        return np.array([values.get(cell.key, np.nan) for cell in self.cells])

    def select(self, mask: npt.NDArray[np.bool_]) -> Objective:
        """The objective with only the table cells where the mask is true."""
        selected = tuple(cell for cell, keep in zip(self.cells, mask, strict=True) if keep)
        return Objective(self.experiment, selected, self.measure_twin, self.sigma[mask])


def experiment_objective(results: Measurement) -> Objective | None:
    """The objective of any other experiment's results; None if no value can be compared."""
    numbers = {name: results.number(name) for name in _FINDINGS.get(results.experiment, ())}
    offered = [
        *results.cells,
        *(Cell((), name, value) for name, value in numbers.items() if value is not None),
    ]
    compared = tuple(cell for cell in offered if _is_comparable(results, cell))
    if not compared:
        return None

    def measure_twin(profile: str, _effort: Effort) -> dict[CellKey, float]:
        if results.experiment in IN_A_REGION:
            profile = with_whole_caches(profile, results)
        conclusion = EXPERIMENTS[results.experiment](profile, results)
        rows = cells_of(results.experiment, conclusion.measures)
        values: dict[CellKey, float] = {cell.key: cell.value for cell in rows}
        for name, finding in conclusion.findings.items():
            if isinstance(finding.value, int | float):
                values[(), name] = float(finding.value)
        return values | medians(compared, conclusion.measures)

    return Objective(results.experiment, compared, measure_twin, _sigmas(compared))


def _sigmas(cells: Sequence[Cell]) -> Floats:
    """Standard deviations of log(twin / drive).

    All values of a case are from the same steps, so those without repeats of their own scatter like
    the one that has them: how much data a cache held, for example, decides about all of them.
    """
    errors: dict[tuple[Any, ...], float] = {}
    for cell in cells:
        errors[cell.case] = max(errors.get(cell.case, 0.0), _standard_error(cell.repeats))
    return np.hypot(RELATIVE_SIGMA, [errors[cell.case] for cell in cells])


def _standard_error(repeats: tuple[float, ...]) -> float:
    """Standard error of the mean logarithm of the repeats."""
    if len(repeats) < 2 or min(repeats) <= 0:
        return 0.0
    return float(np.std(np.log(repeats), ddof=1) / len(repeats) ** 0.5)


def _is_comparable(results: Measurement, cell: Cell) -> bool:
    """Whether a twin can produce this value, and the fitted parameters influence it."""
    first = str(cell.case[0]) if cell.case else ""
    if results.experiment == "workload":
        return first in results.parameters["job_texts"]
    if results.experiment == "suite":
        return "zeros" not in first and "buffered" not in first
    if results.experiment == "fsync":
        return not cell.case or first in {mode.name for mode in fsync.TWIN_MODES}
    if results.experiment == "cache":
        return cell.name in _rates_of_cache(results)
    if results.experiment == "stripe":
        return cell.case[0] in _alignments(results)
    # The candidate's region is so small that its map fits into memory.
    is_other_map = results.experiment == "steady" and results.number("map_misses")
    return cell.value > 0 and not is_other_map


def with_whole_caches(profile: str, results: Measurement) -> str:
    """The profile whose candidate has an SLC cache and a map cache as large as the drive's.

    Regions are as large on the candidate as on the drive, so a cache that is scaled down with the
    candidate would hold less of them. One larger than the candidate makes no difference.
    """
    full = int(describe_twin("the profile", profile)["capacity_bytes"])
    drive = (results.parameters.get("drive_mib") or full / MIB) * MIB
    changes = {}
    for key in ("slc.size", "ftl.map_cache"):
        size = get_value(profile, key)
        if size is not None:
            whole = min(CAPACITY, parse_size(str(size)) * drive / full)
            changes[key] = f"{max(1, round(whole * full / CAPACITY / KIB))} KiB"
    return values_only(profile, changes) if changes else profile


def candidate_session(profile: str, capacity: int = CAPACITY) -> RunSession:
    """A session on a profile's twin, scaled to `capacity` bytes.

    Raises:
        TargetError: the profile does not make a twin of this capacity.
    """
    drive = open_twin("candidate", profile, capacity, seed=0)
    identity = {"kind": "twin", **describe_twin("candidate", profile, capacity)}
    return RunSession(OpenTarget(drive, identity))


def evidence_of(session: RunSession, plan: Plan) -> Evidence:
    """The session's records, as input for an analysis."""
    return Evidence(session.recording.tables(), plan.parameters(), virtual=True)


def _filled_session(profile: str, size: int) -> RunSession:
    """A candidate twin, filled sequentially, that has programmed its buffer to flash.

    The real drive had time to program it; a flush does not force this if capacitors protect the
    buffer. Reads fill the time, because idle time would let an SLC cache fold its data.
    """
    session = candidate_session(profile)
    session.fill(size)
    wait = Job("read", pattern="random", length_bytes=size, block_bytes=4 * KIB, seconds=SETTLE_S)
    session.run(Step("settle", "waiting", "random"), wait)
    return session


def _keeps_data_buffered(profile: str, settle_s: float) -> bool:
    """Whether all dies together take longer than this to program a full buffer."""
    twin = describe_twin("the candidate", profile, CAPACITY)
    row_bytes = twin["dies"] * twin["planes"] * twin["page_bytes"]
    program_s = parse_duration(str(get_value(profile, "flash.program")))
    return bool(twin["buffer_bytes"] / row_bytes * program_s > settle_s)


def _region_bytes(results: Measurement, limit: int) -> int:
    """Size of the region that the drive's run used, at most `limit` bytes."""
    return min(int(results.parameters.get("size_mib", limit // MIB)) * MIB, limit)


def _measure_split(profile: str, results: Measurement) -> Conclusion:
    """Reads what the drive read, if a cache or a buffer may hold a part of it.

    Results without `settle_s` are from versions that read at once.
    """
    settle_s = float(results.parameters.get("settle_s") or 0.0)
    size, repeats = 4 * split.WINDOW, 1
    is_buffered = _keeps_data_buffered(profile, settle_s or SETTLE_S)
    if is_buffered or (not settle_s and get_value(profile, "slc.size") is not None):
        size = SPLIT_REGION
        repeats = min(split.REPEATS, int(results.parameters.get("repeats", 1)))
    plan = split.Plan(_region_bytes(results, size), repeats, settle_s=settle_s)
    if settle_s or is_buffered:  # as on the drive, the first reads may find data in the buffer
        session = candidate_session(profile)
        session.fill(plan.size)
        session.rest(settle_s)
    else:
        session = _filled_session(profile, plan.size)
    split.read(session, plan)
    return split_analysis.conclude(evidence_of(session, plan))


def _measure_workload(profile: str, results: Measurement) -> Conclusion:
    """The jobs that read, in a filled region."""
    session = _filled_session(profile, WORKLOAD_REGION)
    for number, (name, text) in enumerate(results.parameters["job_texts"].items()):
        job = decode(text, Job)
        block = max([size for size, _ in job.block_mix] or [job.block_bytes])
        length = min(job.length_bytes, WORKLOAD_REGION - WORKLOAD_REGION % block)
        job = msgspec.structs.replace(
            job, offset_bytes=0, length_bytes=length, amount_bytes=0, seconds=WORKLOAD_S
        )
        session.run(Step("job", name, "timed", number, case=name), job)
    return workload_analysis.conclude(Evidence(session.recording.tables(), {}, virtual=True))


def _turns(profile: str, results: Measurement, name: str) -> int:
    """How often a candidate runs what the drive repeated: once, unless an SLC cache fills."""
    most = 1 if get_value(profile, "slc.size") is None else 2
    return min(most, int(results.parameters.get(name, 1)))


def _measure_suite(profile: str, results: Measurement) -> Conclusion:
    """As many runs as on the drive: in the second, an SLC cache may be full."""
    region, runs = _region_bytes(results, 512 * MIB), _turns(profile, results, "runs")
    plan = suite.Plan(region, min(1.0, results.parameters.get("step_s", 1.0)), runs)
    session = candidate_session(profile)
    suite.measure(session, plan)
    return suite_analysis.conclude(evidence_of(session, plan))


def _measure_fsync(profile: str, results: Measurement) -> Conclusion:
    """Runs as long as on the drive, and twice if at first many writes fit into the buffer."""
    seconds = min(2.0, results.parameters.get("step_s", 1.0))
    repeats = _turns(profile, results, "repeats")
    if describe_twin("the candidate", profile, CAPACITY)["buffer_bytes"] > LARGE_BUFFER:
        repeats = min(2, int(results.parameters.get("repeats", 1)))
    plan = fsync.Plan(_region_bytes(results, 256 * MIB), seconds, repeats)
    session = candidate_session(profile)
    fsync.measure(session, plan)
    return fsync_analysis.conclude(evidence_of(session, plan))


def measure_cache(profile: str) -> Conclusion:
    """Runs `cache --quick` on a candidate: gives buffer, SLC cache and sustained write rate."""
    region = Cache(quick=True)
    if get_value(profile, "slc.size") is not None:
        region = Cache(size=f"{CACHE_REGION // MIB}MiB", quick=True)
    plan, session = cache.plan_for(region, CAPACITY, 0), candidate_session(profile)
    cache.measure(session, plan)
    return cache_analysis.conclude(evidence_of(session, plan))


def measure_spare(profile: str) -> Conclusion:
    """Runs `steady` on a candidate for two drive writes, to see when garbage collection starts."""
    plan = steady.Plan(CAPACITY, CAPACITY, drive_writes=2.0, settle_s=QUICK_SETTLE_S)
    session = candidate_session(profile)
    steady.measure(session, plan)
    return steady_analysis.conclude(evidence_of(session, plan))


def _measure_fresh_rate(profile: str, results: Measurement) -> Conclusion:
    """Random write rate before any garbage collection: the finding `fresh_iops`."""
    session = candidate_session(profile)
    buffer = int(describe_twin("the candidate", profile, CAPACITY)["buffer_bytes"])
    size = min(CAPACITY // 2, max(FRESH_BYTES, FRESH_BUFFERS * buffer))
    session.fill(size)
    session.flush()
    depth = int(results.parameters.get("write_queue_depth", STEADY_DEPTH))
    job = _write_job("random_once", size, STEADY_BLOCK, depth)
    return Conclusion([], {"fresh_iops": _finding(_rate_after(session, job, 0.5) / STEADY_BLOCK)})


def _measure_sustained_rate(profile: str, results: Measurement) -> Conclusion:
    """Rates of sequential writes into an empty SLC cache or buffer, and after they are full."""
    session, amount = candidate_session(profile), _sustained_bytes(results)
    job = _write_job("sequential", amount, rests.BLOCK, rests.DEPTH)
    name = _rate_of_buffer(results)
    if name:
        job = msgspec.structs.replace(job, interval_us=_BUFFER_INTERVAL_US)
    outcome = session.run(Step("write", "writing", "random", rest_s=3.0), job)
    curve = Progress(*outcome.columns())
    after = amount / 4 / float(curve.between(0.75 * amount, amount, 1)[0])
    values = {"lasting_mib_per_s": after}
    if "cached_mib_per_s" in _rates_of_cache(results):
        drop = last_drop(curve)
        values["cached_mib_per_s"] = after if drop is None else drop.before
    if name:
        half = (results.number("buffer_mib") or 0.0) * MIB / 2
        values[name] = half / float(curve.between(0.0, half, 1)[0])
    return Conclusion([], {name: _finding(value / MIB) for name, value in values.items()})


def _sustained_bytes(results: Measurement) -> int:
    """Bytes whose last quarter comes after the drive's SLC cache is full, if the candidate's is."""
    size = _candidate_cache(results)
    factor = 0.5 if size < SMALL_CACHE else 1.5 if size > _FULL * SUSTAINED_BYTES else 1.0
    return int(factor * SUSTAINED_BYTES)


def _rates_of_cache(results: Measurement) -> list[str]:
    """The rates of `cache` that the candidate's writes show."""
    size, names = _candidate_cache(results), [_rate_of_buffer(results)]
    if size < _FULL * _sustained_bytes(results):
        names += ["lasting_mib_per_s", "cached_mib_per_s"] if size else ["lasting_mib_per_s"]
    return names


def _rate_of_buffer(results: Measurement) -> str:
    """The rate at which the drive's buffer takes writes, if it is large enough; "" if not."""
    buffer_mib = results.number("buffer_mib") or 0.0
    if not LARGE_BUFFER <= buffer_mib * MIB < SUSTAINED_BYTES / FRESH_BUFFERS:
        return ""
    return "cached_mib_per_s" if results.number("slc_mib") == 0 else "buffered_mib_per_s"


def _candidate_cache(results: Measurement) -> float:
    """Bytes of the drive's SLC cache, at most, scaled down to the candidate; 0 if it has none."""
    finding = results.findings.get("slc_mib")
    size_mib = results.number("slc_mib") or (finding.high if finding is not None else None) or 0.0
    return size_mib * CAPACITY / (results.parameters.get("drive_mib") or CAPACITY / MIB)


def _write_job(pattern: Pattern, amount: int, block: int, depth: int) -> Job:
    return Job(
        op="write",
        pattern=pattern,
        length_bytes=amount,
        block_bytes=block,
        amount_bytes=amount,
        queue_depth=depth,
        interval_us=_INTERVAL_US,
    )


def _rate_after(session: RunSession, job: Job, share: float) -> float:
    """Rate of a job in bytes/s, without the first `share` of its bytes and the last interval."""
    result = session.run(Step("write", "writing", "random", rest_s=3.0), job)
    seconds, amounts = (np.array(column, dtype=np.float64) for column in result.columns())
    late = np.cumsum(amounts) > share * result.bytes
    return float(amounts[late][:-1].sum() / seconds[late][:-1].sum())


def _finding(value: float) -> Finding:
    return Finding(value, "", None, None, "")


def _alignments(results: Measurement) -> set[float]:
    """The compared alignments in KiB: reads at these reach all stripe units, two, or one.

    If the units of a regular stripe are not known, its rates at all powers of two show them.
    """
    measured = sorted(cell.case[0] for cell in results.cells if isinstance(cell.case[0], float))
    stripe_kib = results.number("stripe_kib")
    if stripe_kib is not None:
        return {measured[0], stripe_kib / 2, stripe_kib} & set(measured)
    regular = results.findings.get("regular")
    if regular is None or not regular.value:
        return set(measured[:1])
    return {at for at in measured if math.log2(at / measured[0]).is_integer()}


def _measure_stripe(profile: str, results: Measurement) -> Conclusion:
    size = _region_bytes(results, 256 * MIB)
    plan, session = stripe.Plan(size, 1, STRIPE_READS), _filled_session(profile, size)
    rows: list[dict[str, Any]] = []
    for seed, alignment in enumerate(sorted(_alignments(results))):
        step = Step("read", "reading", "random", value=alignment)
        result = session.run(step, stripe.job_of(Probe(int(alignment * KIB)), plan, seed))
        rate = result.bytes / MIB / result.seconds
        rows.append({"alignment_kib": alignment, "read_mib_per_s": rate})
    return Conclusion(rows)


IN_A_REGION: Final = frozenset({"fsync", "split", "stripe", "suite", "workload"})
"""Experiments whose region does not depend on the drive's capacity."""
EXPERIMENTS: Final[dict[str, Callable[[str, Measurement], Conclusion]]] = {
    "cache": _measure_sustained_rate,
    "fsync": _measure_fsync,
    "split": _measure_split,
    "steady": _measure_fresh_rate,
    "stripe": _measure_stripe,
    "suite": _measure_suite,
    "workload": _measure_workload,
}
"""How a candidate is measured, for each experiment that a fit accepts, except `aging`."""
_FINDINGS: Final = {
    "cache": ("lasting_mib_per_s", "cached_mib_per_s", "buffered_mib_per_s"),
    "fsync": ("flush_us",),
    "steady": ("fresh_iops",),
}
"""Findings that are compared in addition to the cells."""

"""Random drives for `fit_blind.py`: their profiles, their results, and what a fit must predict."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final, cast

from random_drives import NoisyDrive, RandomDrive, random_drive
from ssdlab import Cache
from ssdlab.device import Drive, Job, Outcome, describe_twin, open_twin
from ssdlab.errors import TargetError
from ssdlab.experiments.cache import analysis as cache_analysis
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.fragments import analysis as fragments_analysis
from ssdlab.experiments.fragments import measure as fragments
from ssdlab.experiments.fragments.plan import NO_HOST
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.registry import cells_of
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.suite import analysis as suite_analysis
from ssdlab.experiments.suite import measure as suite
from ssdlab.fit.ageing import AgeingRow, twin_seconds
from ssdlab.fit.measurement import Measurement, measured_cells
from ssdlab.fit.objective import CAPACITY, MIB, candidate_session, evidence_of
from ssdlab.fit.results import FitInput
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession, Step

WRITTEN: Final = (50.0, 200.0, 800.0, 4000.0)
DRIVE_BYTES: Final = 512_000_000_000
"""Capacity of the drives; their twins are scaled to `CAPACITY`."""
_ODD_BITS: Final = 4
"""Of the pages of a block, that remain after all halvings."""
_NEXT: Final = 1_000_000
MORE_SPARE: Final = 0.2
MIX_BYTES: Final = 192 * MIB


@dataclass(frozen=True)
class MeasuredTwin:
    """A profile that the fit does not see, and the results measured on its twin."""

    profile: str
    results: FitInput


def draw_drive(seed: int) -> RandomDrive:
    """The random drive of this seed, or of a later one if that cannot be scaled to `CAPACITY`."""
    while True:
        drive = _with_even_blocks(random_drive(seed, DRIVE_BYTES))
        try:
            describe_twin("box", drive.profile, CAPACITY)
        except TargetError:  # for example too few superblocks
            seed += _NEXT
        else:
            return drive


def _with_even_blocks(drive: RandomDrive) -> RandomDrive:
    """The drive with blocks that scaling can halve."""
    pages = drive.get("flash.pages_per_block")
    halvings = pages.bit_length() - _ODD_BITS
    pages = pages >> halvings << halvings
    flash = {**drive.values["flash"], "pages_per_block": pages}
    return drive.with_values({**drive.values, "flash": flash})


def measure_twin(drive: RandomDrive) -> MeasuredTwin:
    """Runs all experiments, each on a new twin with the noise of its host."""
    text, seed = drive.profile, drive.seed
    interface = drive.get("drive.interface")
    tasks: list[tuple[str, Any, Any, Any]] = [
        ("stripe", stripe, stripe_analysis, stripe.Plan(256 * MIB, 2, 4096, seed)),
        ("split", split, split_analysis, split.Plan(64 * MIB, 3, seed=seed)),
        ("suite", suite, suite_analysis, suite.Plan(128 * MIB, 1.0, 2, seed)),
        ("fsync", fsync, fsync_analysis, fsync.Plan(64 * MIB, 0.5, 2, "unknown", seed)),
        ("cache", cache, cache_analysis, _cache_plan(seed)),
        ("steady", steady, steady_analysis, steady.Plan(CAPACITY, CAPACITY, settle_s=3.0)),
    ]
    results = []
    for name, experiment, analysis, plan in tasks:
        session = _session(drive)
        experiment.measure(session, plan)
        conclusion = analysis.conclude(evidence_of(session, plan))
        rows = measured_cells(name, conclusion.measures)
        findings = conclusion.findings
        parameters = {**plan.parameters(), "interface": interface, "drive_mib": CAPACITY / MIB}
        results.append(Measurement(name, "box", "box", rows, findings, parameters))
    row = AgeingRow("box", 4096.0, WRITTEN, (1.0,) * 5)
    row = AgeingRow("box", 4096.0, WRITTEN, tuple(twin_seconds(text, row, seed=seed)))
    return MeasuredTwin(text, FitInput(tuple(results), row, row))


def _session(drive: RandomDrive) -> RunSession:
    twin = open_twin("box", drive.profile, CAPACITY, seed=drive.seed)
    noisy = cast(Drive, NoisyDrive(twin, drive.noise, random.Random(drive.seed)))
    identity = {"kind": "twin", **describe_twin("box", drive.profile, CAPACITY)}
    return RunSession(OpenTarget(noisy if drive.noise else twin, identity))


def _cache_plan(seed: int) -> cache.Plan:
    """Half of the drive, so that every cache fills; short rests, because virtual time is cheap."""
    return cache.plan_for(Cache(size="512MiB", quick=True), CAPACITY, seed)


def predictions(text: str, seed: int) -> dict[str, dict[str, float]]:
    """What the twin says where no fit saw the drive, in groups: values by case."""
    return {
        "fragments": _fragments(text, seed),
        **_mix(text, seed),
        **_more_spare(text, seed),
    }


def _fragments(text: str, seed: int) -> dict[str, float]:
    session = candidate_session(text)
    plan = fragments.Plan(degrees=(1, 8, 64), repeats=2, twin_host=NO_HOST, seed=seed)
    fragments.measure(session, plan)
    measures = fragments_analysis.conclude(evidence_of(session, plan)).measures
    return {str(cell.case): cell.value for cell in cells_of("fragments", measures)}


def _mix(text: str, seed: int) -> dict[str, dict[str, float]]:
    """70 % reads, 30 % writes of 4 KiB at random: their rate, and the latency of the reads."""
    rates, latencies = {}, {}
    for depth in (4, 32):
        session = candidate_session(text)
        session.fill(CAPACITY // 2)
        session.flush()
        outcome = session.run(Step("write", "mix", "random", rest_s=3.0), _mix_job(depth, seed))
        rates[f"depth {depth}"] = outcome.bytes / outcome.seconds
        latencies.update(_read_latencies(outcome, depth))
    return {"mix rate": rates, "mix latency": latencies}


def _read_latencies(outcome: Outcome, depth: int) -> dict[str, float]:
    ends = outcome.percentiles_ns("read")
    named = {"p50": ends.p50, "p99": ends.p99}
    return {f"depth {depth} {name}": value for name, value in named.items() if value is not None}


def _mix_job(depth: int, seed: int) -> Job:
    return Job(
        op="write",
        read_share=0.7,
        pattern="random",
        length_bytes=CAPACITY // 2,
        block_bytes=4096,
        amount_bytes=MIX_BYTES,
        queue_depth=depth,
        seed=seed,
    )


def _more_spare(text: str, seed: int) -> dict[str, dict[str, float]]:
    """The lasting rate of random writes with the drive's spare and with more, and the gain."""
    session = candidate_session(text)
    plan = steady.Plan(CAPACITY, CAPACITY, (MORE_SPARE,), drive_writes=3.0, settle_s=3.0, seed=seed)
    steady.measure(session, plan)
    parts = steady_analysis.parts_of(evidence_of(session, plan))
    usual, more = (part.iops or 0.0 for part in parts)
    return {"spare rate": {"usual": usual, "more": more}, "spare gain": {"gain": more / usual}}

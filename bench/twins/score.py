"""Scores the probes on random drives: how often each is right, undetermined or confidently wrong.

Usage: PYTHONPATH=tools python bench/twins/score.py [--drives 100] [--seed 0] [--probe NAME]... [-v]
                                                 [--scale 1] [--json FILE] [--rates FILE]

Each probe sees only what it would see of a real drive: no profile, and no counters. A finding is
exact if it is within the tolerance below of the truth (which comes from the profile, or from a far
longer run), undetermined if the probe says that it could not tell, and otherwise wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from random_drives import MIB, RandomDrive, TrimlessDrive, random_drive
from ssdlab.analysis.evidence import Conclusion, Evidence
from ssdlab.device import Drive, Job, open_twin, run_job
from ssdlab.experiments.cache import analysis as cache_analysis
from ssdlab.experiments.cache import measure as cache
from ssdlab.experiments.cache.parameters import Cache
from ssdlab.experiments.fragments import analysis as fragments_analysis
from ssdlab.experiments.fragments import measure as fragments
from ssdlab.experiments.fragments.parameters import Fragments
from ssdlab.experiments.fsync import analysis as fsync_analysis
from ssdlab.experiments.fsync import measure as fsync
from ssdlab.experiments.split import analysis as split_analysis
from ssdlab.experiments.split import measure as split
from ssdlab.experiments.steady import analysis as steady_analysis
from ssdlab.experiments.steady import measure as steady
from ssdlab.experiments.steady.plan import SETTLE_S
from ssdlab.experiments.stripe import analysis as stripe_analysis
from ssdlab.experiments.stripe import measure as stripe
from ssdlab.experiments.trim import measure_twin as trim
from ssdlab.experiments.trim import twin_analysis as trim_analysis
from ssdlab.experiments.trim.plan import Plan as TrimPlan
from ssdlab.records import Finding
from ssdlab.runner.open_target import OpenTarget
from ssdlab.runner.session import RunSession
from ssdlab.target import Directory

EXACT, UNDETERMINED, WRONG = "exact", "undetermined", "wrong"
TOLERANCE: Final = 0.10
MISSES_TOLERANCE: Final = 5.0
OLD_S: Final = 600.0
RATE_LEAST: Final = 1.0
PROBABILITY_LEAST: Final = 0.001
Score = tuple[str, str]
"""A grade, and the finding with its truth."""


def run(drive: RandomDrive, experiment: Any, analysis: Any, plan: Any) -> Conclusion:
    """The conclusion of an experiment on a fresh twin."""
    session = RunSession(OpenTarget(drive.open(), _identity(drive)))
    session.run_plan(experiment.measure, plan)
    tables = session.recording.tables()
    conclusion: Conclusion = analysis.conclude(Evidence(tables, plan.parameters(), virtual=True))
    return conclusion


def _identity(drive: RandomDrive) -> dict[str, Any]:
    return {"kind": "twin", "name": "random", **drive.describe()}


def near(value: object, truth: float, tolerance: float = TOLERANCE) -> bool:
    """Whether a value is within the tolerance of the truth."""
    return isinstance(value, int | float) and abs(value - truth) <= tolerance * abs(truth)


def grade(finding: Finding | None, truth: float, tolerance: float = TOLERANCE) -> Score:
    """The grade of a number; one whose interval contains the truth is exact."""
    if finding is None or finding.value is None:
        return UNDETERMINED, "" if finding is None else finding.why
    low, high = finding.low, finding.high
    covered = low is not None and high is not None and low <= truth <= high <= 1.5 * low
    shown = f"{finding.value} ({low} to {high}), truth {truth:.4g}"
    exact = covered or near(finding.value, truth, tolerance)
    return (EXACT if exact else WRONG), shown


def grade_bounds(finding: Finding | None, truth: float, tolerance: float = TOLERANCE) -> Score:
    """The grade of a number; one without a value is wrong if its bounds exclude the truth."""
    if finding is not None and finding.value is None:
        above = finding.low is not None and finding.low > truth * (1 + tolerance)
        if above or (finding.high is not None and finding.high < truth * (1 - tolerance)):
            return WRONG, f"{finding.low} to {finding.high}, truth {truth:.4g}"
    return grade(finding, truth, tolerance)


def score_stripe(drive: RandomDrive) -> dict[str, Score]:
    """Chunk and number of units: dies, or planes that read independently."""
    conclusion = run(drive, stripe, stripe_analysis, stripe.Plan(1024 * MIB, 2, 4096, drive.seed))
    findings, shape = conclusion.findings, drive.describe()
    truths = {(shape["chunk_bytes"] / 1024, shape["dies"])}
    if drive.get("flash.independent_plane_reads"):  # then units are planes, but for slow channels
        piece = shape["page_bytes"]
        if shape["dies"] > 1:
            piece = min(piece, shape["chunk_bytes"])
        truths.add((piece / 1024, shape["dies"] * shape["planes"]))
    found = findings["chunk_kib"].value, findings["units"].value
    both = [truth for truth in truths if truth[1] == found[1]] or sorted(truths)
    scores = {}
    for at, name in enumerate(("chunk_kib", "units")):
        right = {truth[at] for truth in both}
        word = UNDETERMINED if found[at] is None else EXACT if found[at] in right else WRONG
        truth = " or ".join(f"{each:g}" for each in sorted(right))
        scores[f"stripe {name}"] = word, f"{found[at]}, truth {truth}; {conclusion.verdict}"
    return scores


def _steady(drive: RandomDrive, region: int, capacity: int) -> dict[str, Score]:
    plan = steady.Plan(region=region, drive=capacity, seed=drive.seed)
    conclusion = run(drive, steady, steady_analysis, plan)
    long = replace(plan, seed=drive.seed + 1, drive_writes=_passes(plan))
    truth = run(drive, steady, steady_analysis, long).findings
    findings = conclusion.findings
    rate = truth["iops"].value
    assert isinstance(rate, float)
    scores = {"rate": (UNDETERMINED, conclusion.verdict)}
    if findings["steady"].value is True:
        scores["rate"] = grade(findings["iops"], rate)
    if region == capacity and isinstance(truth["waf"].value, float):
        counted = truth["waf"].value
        scores["waf_curve"] = grade(findings["waf_curve"], counted, 0.15)
        without = counted - drive.map_waf
        scores["waf_without_map"] = grade(findings["waf_without_map"], without, 0.15)
        spare = 100 * float(drive.describe()["spare"])
        hidden = findings["hidden_spare"]
        truths = [spare, *_usable(drive, capacity)]
        truths.append((spare + truths[1]) / 2)
        either = [grade(hidden, each, 0.15) for each in truths]
        scores["hidden_spare"] = next((s for s in either if s[0] != WRONG), either[0])
        unit = drive.mapping_unit_kib
        scores["mapping_unit_kib"] = grade(findings["mapping_unit_kib"], unit, 0.0)
        scores["map_misses"] = _grade_misses(drive, findings["map_misses"])
        if drive.map_misses > 0:
            span = drive.map_page_span_mib
            scores["map_page_span_mib"] = grade(findings["map_page_span_mib"], span, 0.15)
    return scores


def _grade_misses(drive: RandomDrive, finding: Finding) -> Score:
    """The grade of the share of reads that load a part of the map: exact within 5 points."""
    truth = 100 * drive.map_misses
    if not isinstance(finding.value, float):
        return UNDETERMINED, finding.why
    is_near = abs(finding.value - truth) <= MISSES_TOLERANCE
    return EXACT if is_near else WRONG, f"{finding.value}, truth {truth:.3g}"


def _usable(drive: RandomDrive, capacity: int) -> tuple[float, float]:
    """Hidden / all flash in percent, of the hidden flash that takes data.

    The first value leaves out the reserve, and the superblocks that the host and a dynamic cache
    are filling; the second ends where the twin counts its first relocation, which may be a
    superblock earlier. A static SLC cache is not spare.
    """
    shape = drive.describe()
    held, apart = 1 + drive.get("ftl.reserve", 2) + (drive.get("slc.mode") == "dynamic"), 0.0
    if drive.get("slc.mode") == "static":
        apart = _slc_mib(drive) * MIB
        held += round(apart / _slc_superblock(drive))
    flash = shape["superblock_bytes"] * (int(shape["superblocks"]) - held)
    return tuple(
        100 * (1 - capacity / x) for x in (flash, capacity + _taken(drive, capacity) - apart)
    )


def _taken(drive: RandomDrive, capacity: int) -> int:
    """Bytes that a full and idle drive takes before it first relocates."""
    twin, block = open_twin("random", drive.profile, seed=drive.seed), 64 << 10
    fill = Job(op="write", length_bytes=capacity, block_bytes=MIB, amount_bytes=capacity)
    run_job(twin, fill)
    twin.rest(SETTLE_S, None)
    write = msgspec.structs.replace(
        fill, pattern="random", block_bytes=block, amount_bytes=capacity // 1024 // block * block
    )
    taken = 0
    while not (twin.counters() or {})["collection_moves"]:
        taken += run_job(twin, msgspec.structs.replace(write, seed=taken // MIB)).bytes
    return taken


def _passes(plan: steady.Plan) -> float:
    """Passes over the region after which its rate is that of the far future."""
    drive = plan.drive or plan.region
    return min(100.0, 6 + 6 * drive / plan.region)


def score_steady(drive: RandomDrive) -> dict[str, Score]:
    """The lasting rate of the whole drive, its write amplification and hidden spare."""
    capacity = int(drive.describe()["capacity_bytes"]) // MIB * MIB
    return {f"steady {name}": s for name, s in _steady(drive, capacity, capacity).items()}


def score_region(drive: RandomDrive) -> dict[str, Score]:
    """The lasting rate of a region of an eighth of the drive."""
    capacity = int(drive.describe()["capacity_bytes"]) // MIB * MIB
    scores = _steady(drive, capacity // 8 // MIB * MIB, capacity)
    return {f"steady, a region: {name}": s for name, s in scores.items()}


def score_cache(drive: RandomDrive) -> dict[str, Score]:
    """Sizes of the write buffer and of the SLC cache."""
    shape = drive.describe()
    capacity = int(shape["capacity_bytes"])
    conclusion = run(drive, cache, cache_analysis, cache.plan_for(Cache(), capacity, drive.seed))
    findings = conclusion.findings
    scores = {}
    buffer = findings.get("buffer_mib")
    if _buffer_fills(drive) or (buffer is not None and buffer.value is not None):
        scores["cache buffer"] = grade_bounds(buffer, shape["buffer_bytes"] / MIB, 0.15)
    found = findings.get("slc_mib")
    truth = _slc_mib(drive) if "slc" in drive.values else 0.0
    scores["cache slc"] = grade_bounds(found, truth)
    if scores["cache slc"][0] == WRONG and not _slc_is_faster(drive):  # as if there were none
        scores["cache slc"] = grade_bounds(found, 0.0)
    return scores


def _write_rate(drive: RandomDrive, program: str) -> float:
    """Bytes per second that flash programs, with the program time of this key."""
    shape = drive.describe()
    row = shape["dies"] * shape["planes"] * shape["page_bytes"]
    channel = drive.get("flash.channels") * 1e6 * float(drive.get("flash.channel_bandwidth")[:-5])
    return float(min(channel, row / (1e-6 * float(drive.get(program).split()[0]))))


def _link_rate(drive: RandomDrive) -> float:
    """Bytes per second that the link writes."""
    rate = drive.get("link.write_bandwidth") or drive.get("link.bandwidth")
    return 1e6 * float(rate.split()[0])


def _buffer_fills(drive: RandomDrive) -> bool:
    """Whether the link brings more than flash programs: otherwise no host can see the buffer."""
    return _link_rate(drive) > 1.1 * _write_rate(drive, "flash.program")


def _slc_is_faster(drive: RandomDrive) -> bool:
    """Whether writes of the SLC cache are faster, so that it can be seen."""
    if "slc" not in drive.values:
        return False
    direct, cached = (
        min(_link_rate(drive), _write_rate(drive, key)) for key in ("flash.program", "slc.program")
    )
    return cached > 1.25 * direct


def _slc_mib(drive: RandomDrive) -> float:
    """The size of the cache in whole superblocks, in MiB."""
    superblock = _slc_superblock(drive) / MIB
    size = float(drive.get("slc.size").split()[0])
    return float(superblock * -(-size // superblock))


def _slc_superblock(drive: RandomDrive) -> float:
    """Bytes that a superblock holds in the cache."""
    shape, bits = drive.describe(), int(drive.get("slc.bits_per_cell"))
    pages = int(drive.get("flash.pages_per_block"))
    row = shape["superblock_bytes"] // pages
    chunk_pages = max(1, shape["chunk_bytes"] // (shape["page_bytes"] * shape["planes"]))
    return float(row * (pages // bits // chunk_pages * chunk_pages))


def score_fsync(drive: RandomDrive) -> dict[str, Score]:
    """Whether a flush makes data durable that was not durable before, by timing alone."""
    plan = fsync.Plan(64 * MIB, 0.2, 1, "unknown", drive.seed)
    finding = run(drive, fsync, fsync_analysis, plan).findings["class"]
    volatile = not drive.get("buffer.power_loss_protection") and drive.get("buffer.honours_flush")
    shown = f"{finding.value}: {finding.why}; flushes matter: {volatile}"
    if finding.value is None:
        return {"fsync": (UNDETERMINED, shown)}
    allowed = ("volatile",) if volatile else (fsync_analysis.UNDECIDED,)
    return {"fsync": (EXACT if finding.value in allowed else WRONG, shown)}


def score_split(drive: RandomDrive) -> dict[str, Score]:
    """The cost of small commands, against that of data ten minutes old, without noise."""
    plan = split.Plan(64 * MIB, 5, seed=drive.seed)
    finding = run(drive, split, split_analysis, plan).findings["split_penalty"]
    silent, old = replace(drive, noise=0.0), replace(plan, settle_s=OLD_S)
    truth = run(silent, split, split_analysis, old).findings["split_penalty"].value
    assert isinstance(truth, float)
    return {"split": grade(finding, truth)}


def score_fragments(drive: RandomDrive) -> dict[str, Score]:
    """Slowdown of fragmented files, and its cause.

    The truth comes from the drive without noise, with more repeats at other addresses. The cause is
    known from pieces that were written one after the other: they have the same commands, but no
    more conflicts than a file in one piece has. An SLC cache would hold them and not the others, so
    the truth about the cause is that of the drive without its cache.
    """
    capacity = int(drive.describe()["capacity_bytes"]) // MIB * MIB
    plan = fragments.plan(Fragments(size=capacity), Directory("."), drive.seed)
    findings = run(drive, fragments, fragments_analysis, plan).findings
    silent = replace(drive, noise=0.0)
    more = replace(plan, repeats=2 * plan.repeats, seed=drive.seed + 1, degrees=plan.degrees[-1:])
    truth = run(silent, fragments, fragments_analysis, more)
    uncached = silent.without("slc")
    main = replace(more, gaps=more.gaps[:1])
    both = run(uncached, fragments, fragments_analysis, main)
    one_stream = replace(main, order="file")
    split_only = run(uncached, fragments, fragments_analysis, one_stream)
    scores: dict[str, Score] = {}
    for depth in plan.depths:
        for gap, suffix in (("worst", ""), ("random", "_random")):
            name = f"slowdown_depth_{depth}{suffix}"
            scores[f"fragments {name}"] = grade(findings[name], _slowdown(truth, gap, depth))
        total, split_part = (_slowdown(each, "worst", depth) - 1 for each in (both, split_only))
        name = f"cause_depth_{depth}"
        scores[f"fragments {name}"] = _grade_cause(findings[name], total, split_part)
    return scores


def _slowdown(conclusion: Conclusion, gap: str, depth: int) -> float:
    rows = [row for row in conclusion.measures if (row["gap"], row["queue_depth"]) == (gap, depth)]
    most = max(rows, key=lambda row: int(row["degree"]))
    return float(most["read_ms"] / most["whole_ms"])


def _grade_cause(finding: Finding, excess: float, split_part: float) -> Score:
    """The grade of a cause; where two are nearly equal, either is right."""
    limit = fragments_analysis.SLOWDOWN_MIN
    allowed = set()
    if 1 + excess < (1 + TOLERANCE / 2) * limit:
        allowed.add(fragments_analysis.NONE)
    if 1 + excess > (1 - TOLERANCE / 2) * limit:
        if split_part > 0.4 * excess:
            allowed.add(fragments_analysis.SPLITTING)
        if split_part < 0.6 * excess:
            allowed.add(fragments_analysis.CONFLICTS)
    shown = f"{finding.value}: {finding.why}; truth: {split_part:.3f} of {excess:.3f} is splitting"
    if finding.value is None:
        return UNDETERMINED, shown
    return (EXACT if finding.value in allowed else WRONG), shown


def score_trim(drive: RandomDrive) -> dict[str, Score]:
    """Whether a trim reaches the flash, on the drive and behind a layer that drops trims."""
    scores = {}
    for name, opened in (("trim", drive.open()), ("trim dropped", TrimlessDrive(drive.open()))):
        plan = TrimPlan(seed=drive.seed)
        session = RunSession(OpenTarget(cast(Drive, opened), _identity(drive)))
        session.run_plan(trim.measure_reach, plan)
        evidence = Evidence(session.recording.tables(), plan.parameters(), virtual=True)
        finding = trim_analysis.reach_of(evidence)
        right = finding.value is (name == "trim")
        word = UNDETERMINED if finding.value is None else EXACT if right else WRONG
        scores[name] = word, f"{finding.value}: {finding.why}"
    return scores


PROBES: Final[dict[str, Callable[[RandomDrive], dict[str, Score]]]] = {
    "stripe": score_stripe,
    "steady": score_steady,
    "region": score_region,
    "cache": score_cache,
    "fsync": score_fsync,
    "split": score_split,
    "fragments": score_fragments,
    "trim": score_trim,
}


def is_improbable(wrong: int, drives: int, percent: float) -> bool:
    """Whether so large a number of wrong findings has a probability below 0.001.

    `percent` is the recorded rate; a rate below `RATE_LEAST` counts as that.
    """
    rate = max(percent, RATE_LEAST) / 100
    fewer = sum(
        math.comb(drives, count) * rate**count * (1 - rate) ** (drives - count)
        for count in range(wrong)
    )
    return 1 - fewer < PROBABILITY_LEAST


def _worse(tally: dict[str, Counter[str]], recorded: dict[str, float]) -> list[str]:
    """The findings that are wrong more often than recorded."""
    return [
        f"{name}: wrong on {counts[WRONG]} of {counts.total()} drives, recorded {percent:g} %"
        for name, counts in tally.items()
        if (percent := recorded.get(name)) is not None
        and is_improbable(counts[WRONG], counts.total(), percent)
    ]


def score_drive(probe: str, seed: int, scale: int) -> tuple[int, dict[str, Score]]:
    """The scores of a probe on the drive with this seed and scale."""
    return seed, PROBES[probe](random_drive(seed, scale=scale))


def main() -> None:
    """Prints a table: one row for each finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drives", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--scale", type=int, default=1, choices=(1, 2, 4, 8), help="times 2 GiB, 64-250 superblocks"
    )
    parser.add_argument("--probe", action="append", choices=PROBES)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="write the numbers to this file, too")
    parser.add_argument(
        "--rates", type=Path, help="fail if findings are wrong far more often than in this file"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print wrong and undetermined")
    options = parser.parse_args()
    tally: dict[str, Counter[str]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for probe in options.probe or PROBES:
            seeds = range(options.seed, options.seed + options.drives)
            score = partial(score_drive, probe, scale=options.scale)
            for seed, scores in pool.map(score, seeds):
                for name, (word, shown) in scores.items():
                    tally.setdefault(name, Counter())[word] += 1
                    if options.verbose and word != EXACT:
                        print(f"{seed:4} {name:22} {word:12} {shown}")
                        print(f"       {random_drive(seed, scale=options.scale)}")
    print("| finding | exact | undetermined | wrong |\n|---|---|---|---|")
    for name, counts in tally.items():
        cells = " | ".join(f"{counts[w]}" for w in (EXACT, UNDETERMINED, WRONG))
        print(f"| {name} | {cells} |")
    if options.json is not None:
        words = (EXACT, UNDETERMINED, WRONG)
        table = {name: {word: counts[word] for word in words} for name, counts in tally.items()}
        scores = {"seed": options.seed, "drives": options.drives, "findings": table}
        options.json.write_text(json.dumps(scores, indent=1) + "\n")
    if options.rates is not None:
        worse = _worse(tally, json.loads(options.rates.read_text()))
        sys.exit("\n".join(worse) or None)


if __name__ == "__main__":
    main()

"""Compares the numbers that two sides have in common: ratio, 95 % bounds and p-value.

The error of a ratio is estimated from

- pairs of turns, if the sides were measured in turns (`stats.shift.from_pairs`);
- the scatter of the runs, paired if possible, if a side has several runs;
- otherwise, repeats or blocks of intervals within the single run of each side. On a real clock,
  runs of the same drive differ by more than this error, so `RUN_TO_RUN` is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

import pyarrow.compute as pc

from ssdlab.analysis.contrast import Contrast, compare_findings, compare_measures
from ssdlab.analysis.evidence import seconds_of
from ssdlab.comparison.method import TURNS, Side, pair_runs
from ssdlab.experiments.registry import EXPERIMENTS, cells_of
from ssdlab.records import Run
from ssdlab.stats import shift
from ssdlab.stats.interval import block_length, mean_interval
from ssdlab.stats.shift import Shift

MARGIN: Final = 1.01
"""Ratios from 1 / 1.01 to 1.01 count as equal: clock and run order alone cause as much."""
RUN_TO_RUN: Final = 0.07
"""Assumed standard deviation of the log ratio of two identical runs on a real clock."""
INTERVALS_MIN: Final = 20
_TURN_UNITS: Final = {"iops": "/s", "latency_us_p50": "us", "latency_us_p99": "us"}
"""The columns of a turn that are compared, with their units."""
_COUNTS: Final = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}

Key = tuple[str, str]
"""The test case ("" for a finding) and the name of the number."""


@dataclass(frozen=True)
class Number:
    """A number's contrast with the first side, its p-value, and the data it is based on.

    `p` is None if the error is unknown, or if it is zero; `exact` is set only if it is zero.
    """

    contrast: Contrast
    p: float | None
    why: str
    exact: bool = False


@dataclass(frozen=True)
class _Samples:
    key: Key
    unit: str
    first: list[float]
    other: list[float]


def numbers(first: Side, other: Side) -> list[Number]:
    """The numbers that both sides have, in the order of the first side."""
    if first.session and first.session == other.session:
        return list(_from_turns(first.runs[0], other.runs[0]))
    if len(first.runs) > 1 or len(other.runs) > 1:
        return list(_from_repeats(first, other))
    return list(_from_single_runs(first, other))


def _from_turns(first: Run, other: Run) -> Iterator[Number]:
    one, two = _values_by_turn(first), _values_by_turn(other)
    for key in (key for key in one if key in two):
        shared = sorted(one[key].keys() & two[key].keys())
        if len(shared) >= shift.FEWEST_PAIRS:
            values = ([side[key][turn] for turn in shared] for side in (one, two))
            samples = _Samples(key, _TURN_UNITS[key[1]], *values)
            paired = shift.from_pairs(samples.other, samples.first, MARGIN)
            yield _number(samples, paired, f"{len(shared)} pairs of turns")


def _values_by_turn(run: Run) -> dict[Key, dict[int, float]]:
    values: dict[Key, dict[int, float]] = {}
    for row in run.result.measures:
        for name in _TURN_UNITS:
            value = row.get(name)
            if isinstance(value, int | float) and value > 0:
                case = row["job"] if row["op"] in row["job"] else f"{row['job']}, {row['op']}"
                key = (str(case), name)
                values.setdefault(key, {})[row["turn"]] = float(value)
    return values


def _from_repeats(first: Side, other: Side) -> Iterator[Number]:
    pairs = pair_runs(first, other)
    one, two = (
        [_values(run) for run in runs] for runs in (pairs or (list(first.runs), list(other.runs)))
    )
    for key, (unit, _) in one[0].items():
        values = ([run[key][1] for run in side if key in run] for side in (one, two))
        samples = _Samples(key, unit, *values)
        if not samples.first or not samples.other:
            continue
        is_complete = len(samples.first) == len(one) and len(samples.other) == len(two)
        yield _repeated_number(samples, paired=pairs is not None and is_complete)


def _repeated_number(samples: _Samples, *, paired: bool) -> Number:
    one, two = samples.first, samples.other
    if min(*one, *two) <= 0:
        return _number(samples, None, "a value of zero has no ratio")
    if not paired:
        found = shift.from_repeats(two, one, MARGIN)
        return _number(samples, found, f"{len(one)} and {len(two)} runs")
    enough = len(one) >= shift.FEWEST_PAIRS + 2
    estimate = shift.from_pairs if enough else shift.from_paired_repeats
    return _number(samples, estimate(two, one, MARGIN), f"{len(one)} pairs of runs")


def _values(run: Run) -> dict[Key, tuple[str, float]]:
    values: dict[Key, tuple[str, float]] = {}
    for name, finding in run.result.findings.items():
        if isinstance(finding.value, int | float) and not isinstance(finding.value, bool):
            values["", name] = (finding.unit, float(finding.value))
    for cell in cells_of(run.manifest.experiment, run.result.measures):
        values[cell.description, cell.name] = (cell.unit, cell.value)
    return values


def _number(samples: _Samples, ratio: Shift | None, why: str) -> Number:
    """The contrast of the medians; `ratio` is None if the error cannot be estimated."""
    case, name = samples.key
    first, other = median(samples.first), median(samples.other)
    contrast = Contrast(name, case, samples.unit, first, other)
    if ratio is not None:
        contrast = replace(contrast, ratio=ratio.ratio, low=ratio.low, high=ratio.high)
        return Number(contrast, ratio.p, why)
    if first > 0 and other > 0:
        contrast = replace(contrast, ratio=other / first)
    if len(samples.first) > 1 and len({*samples.first, *samples.other}) == 1:
        return Number(contrast, None, f"{why}, all the same", exact=True)
    return Number(contrast, None, f"{why}: too few to estimate the error")


def _from_single_runs(first: Side, other: Side) -> Iterator[Number]:
    one, two = first.runs[0], other.runs[0]
    experiment = one.manifest.experiment
    contrasts = compare_findings(one.result.findings, two.result.findings)
    if experiment != TURNS:
        contrasts += compare_measures(
            EXPERIMENTS[experiment].columns, one.result.measures, two.result.measures
        )
    bounds = [_rate_bounds(run) for run in (one, two)]
    is_virtual = first.virtual and other.virtual
    scatter = 0.0 if is_virtual else RUN_TO_RUN
    same_seed = is_virtual and first.seeds == other.seeds
    for contrast in contrasts:
        if contrast.ratio is not None:
            yield _single_number(_add_bounds(contrast, *bounds), scatter, same_seed=same_seed)


def _single_number(contrast: Contrast, scatter: float, *, same_seed: bool) -> Number:
    assert contrast.ratio is not None
    if contrast.low is None or contrast.high is None:
        if same_seed:
            return Number(contrast, None, "one run each in virtual time, same seed", exact=True)
        return Number(contrast, None, "one run each, of unknown error")
    ratio = shift.from_bounds(contrast.ratio, contrast.low, contrast.high, scatter, MARGIN)
    bounded = replace(contrast, low=ratio.low, high=ratio.high)
    assumed = f", assuming {RUN_TO_RUN:.0%} variation from run to run" if scatter else ""
    return Number(bounded, ratio.p, f"one run each{assumed}")


def _add_bounds(
    contrast: Contrast,
    first: Mapping[Key, tuple[float, float]],
    second: Mapping[Key, tuple[float, float]],
) -> Contrast:
    """Adds bounds from the time intervals within the runs to a contrast that has none."""
    key = (contrast.case, contrast.name)
    if contrast.low is not None or contrast.ratio is None or key not in first or key not in second:
        return contrast
    (low, high), (low2, high2) = first[key], second[key]
    down = math.hypot(math.log(low2), math.log(high))
    up = math.hypot(math.log(high2), math.log(low))
    return replace(
        contrast, low=contrast.ratio * math.exp(-down), high=contrast.ratio * math.exp(up)
    )


def _rate_bounds(run: Run) -> dict[Key, tuple[float, float]]:
    """Bounds of each job's rate, divided by its mean rate, from blocks of its time intervals."""
    return dict(_job_bounds(run)) if run.manifest.experiment == "workload" else {}


def _job_bounds(run: Run) -> Iterator[tuple[Key, tuple[float, float]]]:
    intervals = run.tables["intervals"]
    for step in (row for row in run.tables["steps"].to_pylist() if row["phase"] == "job"):
        of_step = intervals.filter(pc.equal(intervals["step"], step["step"]))
        for op, name in _COUNTS.items():
            series = of_step[name].to_pylist()[:-1]  # the last interval is shorter
            if len(series) >= INTERVALS_MIN and all(series) and seconds_of(step):
                yield (f"{step['case']}, {op}", "iops"), _relative_bounds(series)


def _relative_bounds(series: list[Any]) -> tuple[float, float]:
    low, high = mean_interval(series, block_length(series))
    mean = sum(series) / len(series)
    return low / mean, high / mean

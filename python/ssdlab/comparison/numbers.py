"""The numbers that two sides have in common, each with its ratio, bounds and chance of error.

By what the sides are:

- measured in turns: pairs of turns (`stats.shift.from_pairs`);
- several runs: the runs are the repeats, in pairs where they are such;
- a run each: what the run itself tells of its error, by repeats or by blocks of its intervals. On
  a real clock another run of the same drive differs by more than that: `RUN_TO_RUN` is added.
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
from ssdlab.comparison.side import TURNS, Side, in_pairs
from ssdlab.experiments.registry import EXPERIMENTS, cells_of
from ssdlab.records import Run
from ssdlab.stats import shift
from ssdlab.stats.interval import block_length, mean_interval
from ssdlab.stats.shift import Shift

MARGIN: Final = 1.01
"""Factors within 1 / 1.01 to 1.01 are no difference worth a word: clocks and order make as much."""
RUN_TO_RUN: Final = 0.07
"""Standard deviation of the logarithm by which two runs on a real clock are taken to differ."""
FEWEST_INTERVALS: Final = 20
_OF_TURNS: Final = {"iops": "/s", "latency_us_p50": "us", "latency_us_p99": "us"}
"""What is judged of turns, with its unit; bytes a second go with the requests."""
_COUNTS: Final = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}

Key = tuple[str, str]
"""The case in words ("" for a finding) and the name."""


@dataclass(frozen=True)
class Number:
    """A contrast of a side with the first, the chance of error, and what that rests on.

    `p` is None where nothing tells how much chance makes; `exact` says that there is none.
    """

    contrast: Contrast
    p: float | None
    why: str
    exact: bool = False


def numbers(first: Side, other: Side) -> list[Number]:
    """All that both have and that can be compared, in the order of the first."""
    if first.session and first.session == other.session:
        return _of_turns(first.runs[0], other.runs[0])
    if len(first.runs) > 1 or len(other.runs) > 1:
        return _of_runs(first, other)
    return _of_one_run(first, other)


def _of_turns(first: Run, other: Run) -> list[Number]:
    above, below = _by_turn(other), _by_turn(first)
    found = []
    for key in (key for key in below if key in above):
        shared = sorted(below[key].keys() & above[key].keys())
        one, two = ([side[key][turn] for turn in shared] for side in (below, above))
        if len(shared) >= shift.FEWEST_PAIRS:
            judged, how = shift.from_pairs(two, one, MARGIN), f"{len(shared)} pairs of turns"
            found.append(_number(key, (_OF_TURNS[key[1]], one, two), judged, how))
    return found


def _by_turn(run: Run) -> dict[Key, dict[int, float]]:
    found: dict[Key, dict[int, float]] = {}
    for row in run.result.measures:
        for name in _OF_TURNS:
            value = row.get(name)
            if isinstance(value, int | float) and value > 0:
                case = row["job"] if row["op"] in row["job"] else f"{row['job']}, {row['op']}"
                key = (str(case), name)
                found.setdefault(key, {})[row["turn"]] = float(value)
    return found


def _of_runs(first: Side, other: Side) -> list[Number]:
    paired = in_pairs(first, other)
    runs = paired or (list(first.runs), list(other.runs))
    below, above = ([_values(run) for run in each] for each in runs)
    found = []
    for key, (unit, _) in below[0].items():
        one, two = ([each[key][1] for each in side if key in each] for side in (below, above))
        if not one or not two:
            continue
        whole = len(one) == len(below) and len(two) == len(above)
        judged, how = _repeats(one, two, paired=paired is not None and whole)
        found.append(_number(key, (unit, one, two), judged, how))
    return found


def _repeats(one: list[float], two: list[float], *, paired: bool) -> tuple[Shift | None, str]:
    if min(*one, *two) <= 0:
        return None, "a value of zero has no ratio"
    if not paired:
        return shift.from_repeats(two, one, MARGIN), f"{len(one)} and {len(two)} runs"
    if len(one) >= shift.FEWEST_PAIRS + 2:
        return shift.from_pairs(two, one, MARGIN), f"{len(one)} pairs of runs"
    return shift.from_paired_repeats(two, one, MARGIN), f"{len(one)} pairs of runs"


def _values(run: Run) -> dict[Key, tuple[str, float]]:
    """Every number of a run, with its unit."""
    experiment = run.manifest.experiment
    found: dict[Key, tuple[str, float]] = {}
    for name, finding in run.result.findings.items():
        if isinstance(finding.value, int | float) and not isinstance(finding.value, bool):
            found["", name] = (finding.unit, float(finding.value))
    for cell in cells_of(experiment, run.result.measures):
        found[cell.label, cell.name] = (cell.unit, cell.value)
    return found


def _number(
    key: Key, values: tuple[str, list[float], list[float]], judged: Shift | None, how: str
) -> Number:
    unit, one, two = values
    case, name = key
    first, second = median(one), median(two)
    contrast = Contrast(name, case, unit, first, second)
    if judged is not None:
        contrast = replace(contrast, ratio=judged.ratio, low=judged.low, high=judged.high)
        return Number(contrast, judged.p, how)
    if first > 0 and second > 0:
        contrast = replace(contrast, ratio=second / first)
    if len(one) > 1 and len({*one, *two}) == 1:
        return Number(contrast, None, f"{how}, all the same", exact=True)
    return Number(contrast, None, f"{how}: too few to tell a difference from chance")


def _of_one_run(first: Side, other: Side) -> list[Number]:
    one, two = first.runs[0], other.runs[0]
    experiment = one.manifest.experiment
    found = compare_findings(one.result.findings, two.result.findings)
    if experiment != TURNS:
        found += compare_measures(
            EXPERIMENTS[experiment].columns, one.result.measures, two.result.measures
        )
    rates = [_rates(run) for run in (one, two)]
    scatter = 0.0 if first.virtual and other.virtual else RUN_TO_RUN
    same_seed = first.virtual and other.virtual and first.seeds == other.seeds
    return [
        _judged(_with_rates(each, *rates), scatter, same_seed=same_seed)
        for each in found
        if each.ratio is not None
    ]


def _judged(contrast: Contrast, scatter: float, *, same_seed: bool) -> Number:
    assert contrast.ratio is not None
    if contrast.low is None or contrast.high is None:
        if same_seed:
            return Number(contrast, None, "a run each in virtual time, same seed", exact=True)
        return Number(contrast, None, "a run each, and nothing tells their error")
    judged = shift.from_bounds(contrast.ratio, contrast.low, contrast.high, scatter, MARGIN)
    bounded = replace(contrast, low=judged.low, high=judged.high)
    allowed = f", and {RUN_TO_RUN:.0%} from run to run allowed for" if scatter else ""
    return Number(bounded, judged.p, f"a run each{allowed}")


def _with_rates(
    contrast: Contrast,
    first: Mapping[Key, tuple[float, float]],
    second: Mapping[Key, tuple[float, float]],
) -> Contrast:
    """With the bounds that the runs' own intervals give, where it has none yet."""
    key = (contrast.case, contrast.name)
    if contrast.low is not None or contrast.ratio is None or key not in first or key not in second:
        return contrast
    (low, high), (low2, high2) = first[key], second[key]
    down, up = (
        math.hypot(math.log(low2), math.log(high)),
        math.hypot(math.log(high2), math.log(low)),
    )
    return replace(
        contrast, low=contrast.ratio * math.exp(-down), high=contrast.ratio * math.exp(up)
    )


def _rates(run: Run) -> dict[Key, tuple[float, float]]:
    """Bounds of each job's rate, by kind, as parts of it: by blocks of its intervals."""
    return dict(_bounds(run)) if run.manifest.experiment == "workload" else {}


def _bounds(run: Run) -> Iterator[tuple[Key, tuple[float, float]]]:
    intervals = run.tables["intervals"]
    for step in (row for row in run.tables["steps"].to_pylist() if row["phase"] == "job"):
        mine = intervals.filter(pc.equal(intervals["step"], step["step"]))
        for op, name in _COUNTS.items():
            series = mine[name].to_pylist()[:-1]  # the last interval is a part of one
            if len(series) >= FEWEST_INTERVALS and all(series) and seconds_of(step):
                yield (f"{step['case']}, {op}", "iops"), _relative(series)


def _relative(series: list[Any]) -> tuple[float, float]:
    low, high = mean_interval(series, block_length(series))
    mean = sum(series) / len(series)
    return low / mean, high / mean

"""Analysis of suite: mean and mean absolute deviation of each test; are zeros faster?"""

from __future__ import annotations

from typing import Any, Final

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval
from ssdlab.stats.spread import mean_deviation

COLUMNS: Final = Columns(("test", "op"), ("mean",), {"mean": "mib_per_s_all"})
"""The columns that `compare` matches and compares between two runs."""
CRYSTALDISKMARK: Final = {
    "sequential": "SEQ1M Q8T1",
    "sequential x1": "SEQ1M Q1T1",
    "random 4k x32": "RND4K Q32T1",
    "random 4k": "RND4K Q1T1",
}
"""The tests of CrystalDiskMark's default table, in its order, by its names."""
MIB: Final = 1 << 20
ACCESS_TIME: Final = "access time"
ZEROS_SUFFIX: Final = " zeros"
FASTER_MIN: Final = 1.1
"""Smaller ratios do not count: repeats on an idle drive differ by a few per cent."""
CONFIDENCE: Final = 0.9875
"""Confidence of each comparison's interval: 0.95 for all four together (Bonferroni)."""


def conclude(evidence: Evidence) -> Conclusion:
    """One row per test and kind of request, and the finding `content_sensitive`."""
    rows = _rows(evidence)
    finding = content_sensitive(rows, max(1, int(evidence.parameters["runs"])))
    findings = {} if finding is None else {"content_sensitive": finding}
    return Conclusion(rows, findings, _verdict(rows, finding, evidence))


def _rows(evidence: Evidence) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for step in evidence.steps():
        if step["phase"] in {"read", "write"} and step["requests"]:
            groups.setdefault((step["case"], step["phase"]), []).append(step)
    tests = list(dict.fromkeys(test for test, _ in groups))
    return [
        _row(test, op, groups[test, op])
        for test in tests
        for op in ("read", "write")
        if (test, op) in groups
    ]


def _row(test: str, op: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """`mean` and `error` are in microseconds for access times, otherwise in MiB/s."""
    speeds = [step["bytes"] / MIB / seconds_of(step) for step in steps]
    times = [1e6 * seconds_of(step) / step["requests"] for step in steps]
    is_time = test == ACCESS_TIME
    spread = mean_deviation(times if is_time else speeds)
    return {
        "test": test,
        "op": op,
        "mib_per_s_all": speeds,
        "us_all": times if is_time else None,
        "unit": "us" if is_time else "MiB/s",
        "mean": spread.mean,
        "error": spread.error,
        "error_percent": spread.percent,
        "block_bytes": int(steps[0]["block_bytes"]),
        "in_flight": int(steps[0]["value"]),
    }


def content_sensitive(rows: list[dict[str, Any]], runs: int) -> Finding | None:
    """Whether a test is significantly faster with zeros than with random data.

    None if a test, with zeros or with random data, has fewer than `runs` runs.
    """
    speeds = {(row["test"], row["op"]): row["mib_per_s_all"] for row in rows}
    ratios = []
    for (zeros_test, op), zeros in speeds.items():
        if not zeros_test.endswith(ZEROS_SUFFIX):
            continue
        test = zeros_test.removesuffix(ZEROS_SUFFIX)
        random = speeds.get((test, op), [])
        if min(len(random), len(zeros)) < runs:
            return None
        ratios.append((*_ratio(zeros, random), test, op))
    if not ratios:
        return None
    significant = [each for each in ratios if each[0] >= FASTER_MIN and each[1] > 1.0]
    ratio, _, test, op = max(significant or ratios)
    largest = f"{test}, {op}: zeros are {ratio:.2f} times as fast as random data"
    why = (
        largest
        if significant
        else f"no test is significantly faster with zeros; the largest ratio: {largest}"
    )
    return Finding(value=bool(significant), unit="", low=None, high=None, why=why)


def _ratio(zeros: list[float], random: list[float]) -> tuple[float, float]:
    """The ratio of the means and its lower bound, which is the ratio if there is no interval."""
    value = mean_deviation(zeros).mean / mean_deviation(random).mean
    bounds = ratio_interval(zeros, random, CONFIDENCE)
    return value, value if bounds is None else bounds[0]


def _verdict(rows: list[dict[str, Any]], finding: Finding | None, evidence: Evidence) -> str:
    means = {(row["test"], row["op"]): row["mean"] for row in rows}
    quoted = [(test, op) for test in ("sequential", "random 4k") for op in ("read", "write")]
    if finding is None or not all(each in means for each in quoted):
        return f"{ENDINGS[evidence.outcome]} before every test had all its runs: no table."
    sequential, random = (
        f"{means[test, 'read']:.4g} and {means[test, 'write']:.4g} MiB/s"
        for test in ("sequential", "random 4k")
    )
    content = (
        "zeros are faster than random data, so benchmarks that write zeros overstate its speed"
        if finding.value
        else "zeros are not significantly faster than random data"
    )
    sentence = f"Sequential read and write: {sequential}; random 4 KiB: {random}; {content}."
    return qualified(sentence, evidence.warnings)

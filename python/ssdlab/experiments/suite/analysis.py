"""The table of a suite's runs: mean, mean absolute deviation, per cent; and whether zeros help."""

from __future__ import annotations

from typing import Any, Final

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.records import Finding
from ssdlab.stats.interval import ratio_interval
from ssdlab.stats.spread import mean_deviation

COLUMNS: Final = Columns(("test", "op"), ("mean",), {"mean": "mib_per_s_all"})
"""The cells of `measures` that runs have in common."""
MIB: Final = 1 << 20
ACCESS: Final = "access time"
ZEROS: Final = " zeros"
FASTER: Final = 1.1
"""Zeros must be faster by this to be called so: repeats on quiet drives scatter by a few per cent.
"""
CONFIDENCE: Final = 0.9875
"""Of each comparison's interval: with four of them, 0.95 of all together (Bonferroni)."""


def conclude(evidence: Evidence) -> Conclusion:
    """A row a test and kind of request; `content_sensitive`; the rows people quote, in words."""
    rows = _rows(evidence)
    found = content_sensitive(rows, max(1, int(evidence.parameters["runs"])))
    findings = {} if found is None else {"content_sensitive": found}
    return Conclusion(rows, findings, _verdict(rows, found, evidence))


def _rows(evidence: Evidence) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for step in evidence.steps():
        if step["phase"] in {"read", "write"} and step["requests"]:
            groups.setdefault((step["case"], step["phase"]), []).append(step)
    names = list(dict.fromkeys(name for name, _ in groups))
    return [
        _row(name, op, groups[name, op])
        for name in names
        for op in ("read", "write")
        if (name, op) in groups
    ]


def _row(name: str, op: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Of access times the mean is one of microseconds, of all others of MiB/s."""
    speeds = [step["bytes"] / MIB / seconds_of(step) for step in steps]
    times = [1e6 * seconds_of(step) / step["requests"] for step in steps]
    is_time = name == ACCESS
    spread = mean_deviation(times if is_time else speeds)
    return {
        "test": name,
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
    """Whether some test is faster with zeros than with random data, beyond noise.

    None where a pair of tests has not all its runs.
    """
    speeds = {(row["test"], row["op"]): row["mib_per_s_all"] for row in rows}
    pairs = [
        (test.removesuffix(ZEROS), op, speeds.get((test.removesuffix(ZEROS), op), ()), zeros)
        for (test, op), zeros in speeds.items()
        if test.endswith(ZEROS)
    ]
    if not pairs or any(min(len(each), len(zeros)) < runs for _, _, each, zeros in pairs):
        return None
    compared = [(*_ratio(zeros, each), test, op) for test, op, each, zeros in pairs]
    shown = [row for row in compared if row[0] >= FASTER and row[1] > 1.0]
    ratio, _, test, op = max(shown or compared)
    told = f"{test}, {op}: zeros {ratio:.2f} times as fast as random data"
    why = told if shown else f"no test is faster with zeros beyond noise; most: {told}"
    return Finding(value=bool(shown), unit="", low=None, high=None, why=why)


def _ratio(zeros: list[float], other: list[float]) -> tuple[float, float]:
    """The ratio of means, and the lower end of its interval where there is one."""
    value = mean_deviation(zeros).mean / mean_deviation(other).mean
    bounds = ratio_interval(zeros, other, CONFIDENCE)
    return value, value if bounds is None else bounds[0]


def _verdict(rows: list[dict[str, Any]], found: Finding | None, evidence: Evidence) -> str:
    means = {(row["test"], row["op"]): row["mean"] for row in rows}
    wanted = [(test, op) for test in ("sequential", "random 4k") for op in ("read", "write")]
    if found is None or not all(each in means for each in wanted):
        return f"{ENDINGS[evidence.outcome]} before all tests had all their runs: no table."
    order, four = (
        f"{means[test, 'read']:.4g} and {means[test, 'write']:.4g} MiB/s"
        for test in ("sequential", "random 4k")
    )
    content = (
        "zeros are faster than random data, so tests with zeros flatter it"
        if found.value
        else "zeros are not shown to be faster than random data"
    )
    sentence = f"Reads and writes {order} in order, {four} at random by 4 KiB; {content}."
    return qualified(sentence, evidence.warnings)

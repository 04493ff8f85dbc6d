"""Analysis of placement: which policy keeps files fast to read, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.latency import latencies_by_group
from ssdlab.records import Finding

MIB: Final = 1 << 20
CONTIGUOUS: Final = "contiguous"
IN_ORDER: Final = ", in order"
"""Suffix of an application's name: the same files, written without gaps."""
MIXED: Final = "reads and writes at random"
WAF_MAX: Final = 1.05
"""The best placement has at most this multiple of the write amplification of `striped`."""
WITHOUT_HINTS: Final = frozenset({"striped", "inferred"})

Row = dict[str, Any]


def conclude(evidence: Evidence) -> Conclusion:
    """One row per workload, placement and state, and the findings about the best placement."""
    states = [str(state) for state in evidence.parameters["states"]]
    rows = [*_read_rows(evidence, states), *_mixed_rows(evidence, states)]
    _add_ratios(rows)
    rows += _stripe_rows(evidence)
    findings = _best(rows)
    if not findings:
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before two placements could be compared.")
    return Conclusion(rows, findings, qualified(_sentence(findings, rows), evidence.warnings))


def _read_rows(evidence: Evidence, states: list[str]) -> list[Row]:
    """Read speeds of files; the time includes the host time, which a step records as its value."""
    totals: dict[tuple[int, str, int], list[float]] = {}
    for step in evidence.steps("read"):
        total = totals.setdefault((step["stage"], step["case"], step["repeat"]), [0.0, 0.0])
        total[0] += step["bytes"] / MIB
        total[1] += seconds_of(step) + (step["value"] or 0.0) / 1e6
    speeds = {key: mib / seconds for key, (mib, seconds) in totals.items() if seconds > 0}
    counters = _counters(evidence)
    rows = []
    for (stage, case, repeat), speed in speeds.items():
        if repeat:
            continue
        placement, workload = case.split(": ", 1)
        counts = counters.get(f"{states[stage]}|{case}", {})
        row = {
            "workload": workload,
            "placement": placement,
            "state": states[stage],
            "read_mib_per_s": speed,
            "waf": counts.get("placement_waf"),
        }
        aged = speeds.get((stage, case, 1))
        if aged is not None:
            row["read_mib_per_s_aged"] = aged
        if counts.get("packing_moves"):
            row["packing_moves"] = counts["packing_moves"]
        rows.append(row)
    return rows


def _counters(evidence: Evidence) -> dict[str, dict[str, float]]:
    """Counters of the drives, by "state|placement: workload" and name."""
    counters: dict[str, dict[str, float]] = {}
    for name in ("placement_waf", "erases_most", "erases_mean", "erases_least", "packing_moves"):
        for row in evidence.observed(name):
            counters.setdefault(row["detail"], {})[name] = row["value"]
    return counters


def _mixed_rows(evidence: Evidence, states: list[str]) -> list[Row]:
    """One row per placement under garbage collection: lifetime WAF, erases, tail latencies."""
    steps = evidence.steps("mixed")
    if not steps:
        return []
    latencies = latencies_by_group(evidence.tables, {step["step"]: step["step"] for step in steps})
    counters = _counters(evidence)
    rows = []
    for step in steps:
        counts = counters.get(f"{states[step['stage']]}|{step['case']}: ageing")
        if counts is None:
            continue
        rows.append(
            {
                "workload": MIXED,
                "placement": step["case"],
                "state": states[step["stage"]],
                "read_mib_per_s": step["bytes"] / MIB / 2 / seconds_of(step),
                "waf": counts["placement_waf"],
                "erases_most": counts["erases_most"],
                "erases_least": counts["erases_least"],
                "erase_spread": counts["erases_most"] / max(1.0, counts["erases_least"]),
                **{
                    f"{op}_latency_us_p999": latencies[(step["step"], op)].us.p999
                    for op in ("read", "write")
                    if (step["step"], op) in latencies
                },
            }
        )
    return rows


def _add_ratios(rows: list[Row]) -> None:
    """Adds read speeds relative to a contiguous file, and WAF relative to `striped`."""
    contiguous: dict[tuple[str, ...], Row] = {
        _drive(row): row for row in rows if row["workload"] == CONTIGUOUS
    }
    for row in rows:
        if row["workload"].endswith(IN_ORDER):
            contiguous[(*_drive(row), row["workload"].removesuffix(IN_ORDER))] = row
    striped_waf = {
        (row["workload"], row["state"]): row["waf"]
        for row in rows
        if row["placement"] == "striped" and row["waf"]
    }
    for row in rows:
        reference = contiguous.get((*_drive(row), row["workload"]), contiguous.get(_drive(row)))
        has_reference = row["workload"] != MIXED and not row["workload"].endswith(IN_ORDER)
        if reference is not None and has_reference:
            for suffix in ("", "_aged"):
                name = f"read_mib_per_s{suffix}"
                if name in row and reference.get(name):
                    row[f"of_contiguous{suffix}"] = row[name] / reference[name]
        waf = striped_waf.get((row["workload"], row["state"]))
        if waf and row["waf"] is not None:
            row["waf_of_striped"] = row["waf"] / waf


def _drive(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["placement"], row["state"]


def _stripe_rows(evidence: Evidence) -> list[Row]:
    """Rows of the stripe probe and of fragmented files, measured on the `striped` drive."""
    probes = [
        {
            "workload": "stripe probe",
            "placement": "striped",
            "alignment_kib": step["value"] / 1024,
            "read_mib_per_s": step["bytes"] / MIB / seconds_of(step),
            "waf": None,
        }
        for step in evidence.steps("stripe")
    ]
    pieces = [
        {
            "workload": f"pieces, {step['case']}",
            "placement": "striped",
            "degree": int(step["value"]),
            "read_ms": 1000 * seconds_of(step),
            "read_mib_per_s": step["bytes"] / MIB / seconds_of(step),
            "waf": None,
        }
        for step in evidence.steps("resonance")
    ]
    return probes + pieces


def relative_speeds(rows: Iterable[Row], placement: str) -> list[float]:
    """Read speeds of a placement's fragmented files, relative to its contiguous file."""
    return [
        row["of_contiguous"]
        for row in rows
        if row["placement"] == placement
        and "of_contiguous" in row
        and row["workload"] != CONTIGUOUS
    ]


def _best(rows: list[Row]) -> dict[str, Finding]:
    placements = list(dict.fromkeys(row["placement"] for row in rows))
    means = {
        placement: math.exp(sum(map(math.log, speeds)) / len(speeds))
        for placement in placements
        if (speeds := relative_speeds(rows, placement))
    }
    if len(means) < 2:
        return {}
    cheap = {name: mean for name, mean in means.items() if _relative_waf(rows, name) <= WAF_MAX}
    findings = {"best_placement": _finding(rows, cheap or means)}
    without_hints = {name: mean for name, mean in means.items() if name in WITHOUT_HINTS}
    if len(without_hints) > 1:
        findings["best_without_hints"] = _finding(rows, without_hints)
    return findings


def _relative_waf(rows: list[Row], placement: str) -> float:
    """The largest lifetime WAF of a placement relative to that of `striped`."""
    lives = (row for row in rows if row["placement"] == placement and row["workload"] == MIXED)
    return max((row.get("waf_of_striped", 1.0) for row in lives), default=1.0)


def _finding(rows: list[Row], means: Mapping[str, float]) -> Finding:
    best = max(means, key=lambda name: means[name])
    others = ", ".join(f"{mean:.0%} ({name})" for name, mean in means.items() if name != best)
    why = (
        f"fragmented files read at {means[best]:.0%} of the speed of contiguous ones (geometric "
        f"mean), at least {min(relative_speeds(rows, best)):.0%}; other placements: {others}"
    )
    return Finding(value=best, unit="", low=None, high=None, why=why)


def _sentence(findings: Mapping[str, Finding], rows: list[Row]) -> str:
    best = findings["best_placement"]
    cost = (
        f", with {_relative_waf(rows, str(best.value)) - 1:+.1%} write amplification compared with "
        "striped"
        if any(row["workload"] == MIXED for row in rows)
        else ""
    )
    return f"Placement {best.value} keeps fragmented files fastest to read{cost}: {best.why}."

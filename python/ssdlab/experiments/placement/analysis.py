"""Which rule for where a drive writes keeps files readable, and what it costs: from the records."""

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
"""Of an application: the same files, written without anything between."""
MIXED: Final = "reads and writes at random"
WAF_MOST: Final = 1.05
"""A placement that amplifies writes more than so much beyond `striped` is not called best."""
UNTOLD: Final = frozenset({"striped", "inferred"})
"""Placements that do what they do though the host says nothing."""

Row = dict[str, Any]


def conclude(evidence: Evidence) -> Conclusion:
    """A row a workload, placement and state; `best_placement` reads fragmented files fastest."""
    states = [str(state) for state in evidence.parameters["states"]]
    rows = [*_read_rows(evidence, states), *_mixed_rows(evidence, states)]
    _compare(rows)
    rows += _law_rows(evidence)
    findings = _best(rows)
    if not findings:
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before two placements could be compared.")
    return Conclusion(rows, findings, qualified(_sentence(findings, rows), evidence.warnings))


def _read_rows(evidence: Evidence, states: list[str]) -> list[Row]:
    spent: dict[tuple[int, str, int], list[float]] = {}
    for step in evidence.steps("read"):
        place = (step["stage"], step["case"], step["repeat"])
        both = spent.setdefault(place, [0.0, 0.0])
        both[0] += step["bytes"] / MIB
        both[1] += seconds_of(step) + (step["value"] or 0.0) / 1e6
    speeds = {place: amount / time for place, (amount, time) in spent.items() if time > 0}
    counted = _counted(evidence)
    rows = []
    for (stage, case, repeat), speed in speeds.items():
        if repeat:
            continue
        placement, workload = case.split(": ", 1)
        counts = counted.get(f"{states[stage]}|{case}", {})
        row = {
            "workload": workload,
            "placement": placement,
            "state": states[stage],
            "read_mib_per_s": speed,
            "waf": counts.get("placement_waf"),
        }
        again = speeds.get((stage, case, 1))
        if again is not None:
            row["read_mib_per_s_aged"] = again
        if counts.get("packing_moves"):
            row["packing_moves"] = counts["packing_moves"]
        rows.append(row)
    return rows


def _counted(evidence: Evidence) -> dict[str, dict[str, float]]:
    """What the drive counted, by state, placement and workload."""
    found: dict[str, dict[str, float]] = {}
    for name in ("placement_waf", "erases_most", "erases_mean", "erases_least", "packing_moves"):
        for row in evidence.observed(name):
            found.setdefault(row["detail"], {})[name] = row["value"]
    return found


def _mixed_rows(evidence: Evidence, states: list[str]) -> list[Row]:
    """A row a placement in steady state: write amplification of its life, wear, tail latencies."""
    steps = evidence.steps("mixed")
    if not steps:
        return []
    latencies = latencies_by_group(evidence.tables, {step["step"]: step["step"] for step in steps})
    counted = _counted(evidence)
    rows = []
    for step in steps:
        counts = counted.get(f"{states[step['stage']]}|{step['case']}: ageing")
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


def _compare(rows: list[Row]) -> None:
    """Adds what a file's reads are of those of one written in order, with the same drive."""
    names = ("read_mib_per_s", "read_mib_per_s_aged")
    whole: dict[tuple[str, ...], Row] = {
        _drive(row): row for row in rows if row["workload"] == CONTIGUOUS
    }
    for row in rows:
        if row["workload"].endswith(IN_ORDER):
            whole[(*_drive(row), row["workload"].removesuffix(IN_ORDER))] = row
    plain = {
        (row["workload"], row["state"]): row["waf"]
        for row in rows
        if row["placement"] == "striped" and row["waf"]
    }
    for row in rows:
        in_order = whole.get((*_drive(row), row["workload"]), whole.get(_drive(row)))
        whole_itself = row["workload"] == MIXED or row["workload"].endswith(IN_ORDER)
        if in_order is not None and not whole_itself:
            for name in names:
                if name in row and in_order.get(name):
                    part = name.removeprefix("read_mib_per_s")
                    row[f"of_contiguous{part}"] = row[name] / in_order[name]
        other = plain.get((row["workload"], row["state"]))
        if other and row["waf"] is not None:
            row["waf_of_striped"] = row["waf"] / other


def _drive(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["placement"], row["state"]


def _law_rows(evidence: Evidence) -> list[Row]:
    """The stripe probe and the reads of files in pieces, on the drive that is `striped`."""
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


def fragmented(rows: Iterable[Row], placement: str) -> list[float]:
    """What a placement reads of files in pieces, as parts of what it reads of whole ones."""
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
        each: math.exp(sum(map(math.log, found)) / len(found))
        for each in placements
        if (found := fragmented(rows, each))
    }
    if len(means) < 2:
        return {}
    cheap = {each: mean for each, mean in means.items() if _amplifies(rows, each) <= WAF_MOST}
    best = {"best_placement": _finding(rows, cheap or means)}
    untold = {each: mean for each, mean in means.items() if each in UNTOLD}
    if len(untold) > 1:
        best["best_without_hints"] = _finding(rows, untold)
    return best


def _amplifies(rows: list[Row], placement: str) -> float:
    """The most that its writes are amplified beyond those of `striped`, in a life of ageing."""
    lives = (row for row in rows if row["placement"] == placement and row["workload"] == MIXED)
    return max((row.get("waf_of_striped", 1.0) for row in lives), default=1.0)


def _finding(rows: list[Row], means: Mapping[str, float]) -> Finding:
    best = max(means, key=lambda each: means[each])
    least = min(fragmented(rows, best))
    why = (
        f"files in pieces were read at {100 * means[best]:.0f} % of whole ones on average "
        f"(geometric), at least {100 * least:.0f} %; by others at "
        + ", ".join(f"{100 * mean:.0f} % ({each})" for each, mean in means.items() if each != best)
    )
    return Finding(value=best, unit="", low=None, high=None, why=why)


def _sentence(findings: Mapping[str, Finding], rows: list[Row]) -> str:
    best = findings["best_placement"]
    costs = _amplifies(rows, str(best.value)) - 1
    cost = (
        f" and amplifies writes by {100 * costs:+.1f} % beyond striped"
        if any(row["workload"] == MIXED for row in rows)
        else ""
    )
    return f"Placement {best.value} keeps files in pieces most readable{cost}: {best.why}."

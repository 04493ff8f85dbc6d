"""Finds a drive's chunk, stripe and number of units, or that none was found.

Repeats the search of the run (`search.search`) with the recorded results of its probes.
"""

from __future__ import annotations

import statistics
from typing import Any, Final

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.analysis.latency import OPS
from ssdlab.experiments.stripe.probes import (
    BETWEEN_WRITES,
    KIB,
    Probe,
    ProbeResult,
    probe_result,
    result_with_writes,
    run_procedure,
)
from ssdlab.experiments.stripe.search import Layout, search
from ssdlab.records import Finding

COLUMNS: Final = Columns(
    ("alignment_kib",),
    ("read_mib_per_s",),
    {"read_mib_per_s": "read_mib_per_s_all"},
    {"alignment_kib": "alignment {} KiB"},
)
"""The columns that `compare` matches and compares between two runs."""
MIB: Final = 1 << 20


def conclude(evidence: Evidence) -> Conclusion:
    """A row for each alignment; findings on chunk, stripe, units and regularity of the layout."""
    results = _results(evidence)
    rows = _rows(evidence, results)
    layout = _layout(evidence, results)
    if layout is None:
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before enough was read: too little to tell.")
    return Conclusion(rows, _findings(layout), qualified(_sentence(layout), evidence.warnings))


def _results(evidence: Evidence) -> dict[str, list[ProbeResult]]:
    """The recorded results of each probe by its name, in the order of the run."""
    results: dict[str, list[ProbeResult]] = {}
    whole, by_op = evidence.tables["latency"], evidence.tables["interval_latency"]
    reads = by_op.filter(by_op["op"].to_numpy() == OPS.index("read"))
    for phase, table, shape in (
        ("read", whole, probe_result),
        (BETWEEN_WRITES, reads, result_with_writes),
    ):
        owner = table["step"].to_numpy()
        values, counts = table["latency_ns"].to_numpy(), table["count"].to_numpy()
        for step in evidence.steps(phase):
            own = owner == step["step"]
            if own.any():
                result = shape(seconds_of(step), step["bytes"], values[own], counts[own])
                results.setdefault(step["case"], []).append(result)
    return results


def _layout(evidence: Evidence, results: dict[str, list[ProbeResult]]) -> Layout | None:
    """The result of the search; None if the run ended before it was complete."""
    size = int(evidence.parameters["size_mib"] * MIB)
    unused = {name: iter(of_probe) for name, of_probe in results.items()}
    procedure = search(size, int(evidence.parameters["repeats"]))
    return run_procedure(procedure, lambda probe: next(unused.get(probe.name, iter(())), None))


def _rows(evidence: Evidence, results: dict[str, list[ProbeResult]]) -> list[dict[str, Any]]:
    periods = {step["value"] for step in evidence.steps("read")}
    rows = []
    for period in sorted(periods):
        of_period = results.get(Probe(int(period * KIB)).name)
        if of_period:
            rates = [result.mib_per_s for result in of_period]
            rows.append(
                {
                    "alignment_kib": int(period),
                    "read_mib_per_s": statistics.median(rates),
                    "read_mib_per_s_all": rates,
                    "latency_spread": statistics.median(result.spread for result in of_period),
                }
            )
    return rows


def _findings(layout: Layout) -> dict[str, Finding]:
    if layout.chunk is None or layout.rates is None:
        irregular = "no regular stripe was found"
        sizes = {name: _number(None, "KiB", irregular) for name in ("chunk_kib", "stripe_kib")}
        return {
            **sizes,
            "units": _number(None, "", irregular),
            "regular": Finding(value=False, unit="", low=None, high=None, why=layout.why),
        }
    chunk, rates = layout.chunk / KIB, layout.rates
    chunk_why = (
        f"an address {chunk:.0f} KiB further is on another unit, one 4 KiB before it is not: two "
        f"units read {rates.both:.4g} MiB/s, one {rates.alone:.4g}"
    )
    regular = Finding(value=True, unit="", low=None, high=None, why=layout.why)
    if layout.stripe is None:
        assumed = "; this assumes that consecutive chunks are on different channels"
        return {
            "chunk_kib": _number(chunk, "KiB", chunk_why + assumed),
            "stripe_kib": _number(None, "KiB", layout.why),
            "units": _number(None, "", layout.why),
            "regular": regular,
        }
    stripe = layout.stripe / KIB
    stripe_why = (
        f"reads {stripe:.0f} KiB apart wait in one queue, reads at its divisors do not: "
        f"{rates.alone:.4g} MiB/s on one unit, {rates.best:.4g} on all"
    )
    if layout.period is not None:
        stripe_why = (
            f"reads {layout.period // KIB} KiB apart wait for one channel, and {stripe:.0f} KiB "
            "apart for the programs of one die"
        )
    return {
        "chunk_kib": _number(chunk, "KiB", chunk_why),
        "stripe_kib": _number(stripe, "KiB", stripe_why),
        **_units(layout),
        "regular": regular,
    }


def _units(layout: Layout) -> dict[str, Finding]:
    """The number of units; if each has several chunks in a stripe, their number and distance."""
    count, distance = layout.repeats.count, layout.repeats.distance
    if distance is None:
        return {"units": _number(layout.units, "", "chunks in a stripe")}
    why = "chunks of a stripe that are so far apart are on one unit, others are not"
    return {
        "units": _number(layout.units, "", f"chunks in a stripe, {count} of them on each unit"),
        "chunks_per_unit": _number(count, "", why),
        "chunk_distance_kib": _number(distance / KIB, "KiB", why),
    }


def _number(value: float | None, unit: str, why: str) -> Finding:
    """A finding without an interval, because edges are exact to 4 KiB."""
    return Finding(value=value, unit=unit, low=value, high=value, why=why)


def _sentence(layout: Layout) -> str:
    if layout.chunk is None:
        return f"No regular stripe was found: {layout.why}."
    if layout.stripe is None:
        count = 0 if layout.period is None else layout.period // layout.chunk
        return (
            f"Chunks of {layout.chunk // KIB} KiB on {count} channels or dies in turn, and the "
            f"number of dies is not determined: {layout.why}."
        )
    stripe = f"A stripe of {layout.stripe // KIB} KiB: chunks of {layout.chunk // KIB} KiB on"
    count, distance = layout.repeats.count, layout.repeats.distance
    if distance is None:
        return f"{stripe} {layout.units} units in turn."
    return (
        f"{stripe} {layout.units} units, each with {count} chunks {distance // KIB} KiB apart. The "
        "units are probably planes that read independently."
    )

"""Chunk, stripe and units of a drive, from reads at chosen places; or that there is none to see.

The run's own questions are gone through once more (`layout.search`), with the answers that were
recorded: the analysis needs nothing of the experiment but its records.
"""

from __future__ import annotations

import statistics
from typing import Any, Final

from ssdlab.analysis.cells import Columns
from ssdlab.analysis.evidence import ENDINGS, Conclusion, Evidence, qualified, seconds_of
from ssdlab.experiments.stripe.conflict import KIB, Ask, Reading, answered, reading_of
from ssdlab.experiments.stripe.search import Layout, Limits, search
from ssdlab.records import Finding

COLUMNS: Final = Columns(
    ("alignment_kib",), ("read_mib_per_s",), {"read_mib_per_s": "read_mib_per_s_all"}
)
"""The cells of `measures` that runs have in common."""
MIB: Final = 1 << 20


def conclude(evidence: Evidence) -> Conclusion:
    """A row an alignment; chunk, stripe, units and whether that is regular."""
    readings = _readings(evidence)
    rows = _rows(evidence, readings)
    layout = _layout(evidence, readings)
    if layout is None:
        ended = ENDINGS[evidence.outcome]
        return Conclusion(rows, {}, f"{ended} before enough was read: too little to tell.")
    return Conclusion(rows, _findings(layout), qualified(_sentence(layout), evidence.warnings))


def _readings(evidence: Evidence) -> dict[str, list[Reading]]:
    """The recorded answers by question, in the order in which they were given."""
    latency = evidence.tables["latency"]
    owner = latency["step"].to_numpy()
    values, counts = latency["latency_ns"].to_numpy(), latency["count"].to_numpy()
    found: dict[str, list[Reading]] = {}
    for step in evidence.steps("read"):
        own = owner == step["step"]
        if own.any():
            reading = reading_of(seconds_of(step), step["bytes"], values[own], counts[own])
            found.setdefault(step["case"], []).append(reading)
    return found


def _layout(evidence: Evidence, readings: dict[str, list[Reading]]) -> Layout | None:
    """What the search found; None where an answer is missing."""
    size = int(evidence.parameters["size_mib"] * MIB)
    left = {name: iter(answers) for name, answers in readings.items()}
    inquiry = search(Limits(size, int(evidence.parameters["repeats"])))
    return answered(inquiry, lambda ask: next(left.get(ask.name, iter(())), None))


def _rows(evidence: Evidence, readings: dict[str, list[Reading]]) -> list[dict[str, Any]]:
    periods = {step["value"] for step in evidence.steps("read")}
    rows = []
    for period in sorted(periods):
        answers = readings.get(Ask(int(period * KIB)).name)
        if answers:
            rates = [answer.mib_per_s for answer in answers]
            rows.append(
                {
                    "alignment_kib": int(period),
                    "read_mib_per_s": statistics.median(rates),
                    "read_mib_per_s_all": rates,
                    "latency_spread": statistics.median(each.spread for each in answers),
                }
            )
    return rows


def _findings(layout: Layout) -> dict[str, Finding]:
    if layout.chunk is None or layout.stripe is None or layout.rates is None:
        nothing = "there is no regular stripe"
        sizes = {name: _number(None, "KiB", nothing) for name in ("chunk_kib", "stripe_kib")}
        return {
            **sizes,
            "units": _number(None, "", nothing),
            "regular": Finding(value=False, unit="", low=None, high=None, why=layout.why),
        }
    chunk, stripe, rates = layout.chunk / KIB, layout.stripe / KIB, layout.rates
    begins = (
        f"a place {chunk:.0f} KiB further on is another unit, one 4 KiB before is not: two units "
        f"read {rates.both:.4g} MiB/s, one {rates.alone:.4g}"
    )
    again = (
        f"reads {stripe:.0f} KiB apart wait in one queue, those of no divisor do: "
        f"{rates.alone:.4g} MiB/s against {rates.best:.4g} over all units"
    )
    return {
        "chunk_kib": _number(chunk, "KiB", begins),
        "stripe_kib": _number(stripe, "KiB", again),
        "units": _number(layout.units, "", "chunks in a stripe"),
        "regular": Finding(value=True, unit="", low=None, high=None, why=layout.why),
    }


def _number(value: float | None, unit: str, why: str) -> Finding:
    """Exact where it is known at all: edges are told apart to a single read of 4 KiB."""
    return Finding(value=value, unit=unit, low=value, high=value, why=why)


def _sentence(layout: Layout) -> str:
    if layout.chunk is None or layout.stripe is None:
        return f"No regular stripe: {layout.why}."
    return (
        f"A stripe of {layout.stripe // KIB} KiB: chunks of {layout.chunk // KIB} KiB on "
        f"{layout.units} units in turn."
    )

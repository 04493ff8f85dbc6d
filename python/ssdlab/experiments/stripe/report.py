"""The report of the stripe experiment: its table, figures and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab import view
from ssdlab.charts import Axis, Chart, Line, Mark, rule
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import NOTHING, format_number, positive

_GRAIN_KIB: Final = 4
_ALIGNMENT: Final = Axis("alignment, KiB", log=True)
_RATE: Final = Axis("random reads, MiB/s", log=True)


def _table(run: Run) -> Table:
    """The alignments of the curve, and the stripe."""
    stripe = run.result.findings.get("stripe_kib")
    rows = [
        row
        for row in _rows(run)
        if _is_power(row) or (stripe is not None and row["alignment_kib"] == stripe.value)
    ]
    spreads = [row.get("latency_spread") for row in rows]
    return Table.of_columns(
        (Column("Alignment", "KiB"), [format_number(row["alignment_kib"]) for row in rows]),
        view.number_column(rows, "read_mib_per_s", "Read, median", "MiB/s"),
        (Column("Latency spread"), [NOTHING if s is None else f"{s:.2f}" for s in spreads]),
        (Column("Readings"), [str(len(row.get("read_mib_per_s_all", ()))) for row in rows]),
    )


def _rows(run: Run) -> list[dict[str, Any]]:
    """The rows of `measures` with an alignment."""
    return [row for row in run.result.measures if positive(row.get("alignment_kib"))]


def _is_power(row: dict[str, Any]) -> bool:
    """Whether the alignment is on the curve: 4 KiB times a power of two."""
    grains, rest = divmod(int(row["alignment_kib"]), _GRAIN_KIB)
    return rest == 0 and grains.bit_count() == 1


def _line(run: Run, key: str, label: str) -> Line:
    """A line through the powers of two; faint points for other alignments and for repeats."""
    rows = [row for row in _rows(run) if row.get(key) is not None]
    points = [(row["alignment_kib"], row[key]) for row in rows if _is_power(row)]
    faint = [(row["alignment_kib"], row[key]) for row in rows if not _is_power(row)]
    faint += [(row["alignment_kib"], value) for row in rows for value in row.get(f"{key}_all", ())]
    return Line(label, points, faint)


def _rules(run: Run) -> list[Mark]:
    findings, rules = run.result.findings, []
    for name in ("chunk", "stripe"):
        finding = findings.get(f"{name}_kib")
        kib = None if finding is None else positive(finding.value)
        if kib is not None:
            rules.append(rule(kib, label=f"{name} {format_number(kib)} KiB"))
    return rules


def _pictures(run: Run, number: int) -> list[Picture]:
    rules = _rules(run)
    rates: list[Line | Mark] = [_line(run, "read_mib_per_s", "random reads"), *rules]
    spreads: list[Line | Mark] = [_line(run, "latency_spread", "spread"), *rules]
    spread = Axis("latency spread")
    return [
        *view.draw_figure(
            "Random reads at multiples of an alignment",
            "The line is the median at powers of two; faint points are single readings and other "
            "multiples. Reads slow down from twice the chunk on. From the stripe on they are "
            "slowest, because all of them wait for one unit.",
            Chart(f"stripe-{number}", _ALIGNMENT, _RATE, rates).svg,
        ),
        *view.draw_figure(
            "Spread of latencies",
            "The 90th minus the 10th percentile of latency, divided by the median. Near zero, all "
            "reads wait in one queue: that of one unit, or of something that all reads share.",
            Chart(f"queues-{number}", _ALIGNMENT, spread, spreads).svg,
        ),
        *view.draw_throughput(run, number),
    ]


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    lines = [
        Line(name, _line(run, "read_mib_per_s", name).points)
        for name, run in view.short_names(runs, first)
    ]
    return view.draw_figure(
        "Random reads at multiples of an alignment",
        "The speed of each drive falls between twice its chunk and its stripe.",
        Chart(f"stripes-{first}", _ALIGNMENT, _RATE, lines).svg,
    )


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    done = (
        f"A region of {text('size_mib')} was written sequentially. Blocks of {text('block_kib')} "
        f"were read at random multiples of an alignment, at queue depth {text('queue_depth')}, "
        f"{text('reads')} for one reading. After the curve over powers of two, each step depended "
        "on the results before it: which multiples keep all reads on one unit, which of them is "
        "the smallest, where the next unit begins, and whether the same is true elsewhere."
    )
    meaning = (
        "A unit of conflict serves one read at a time; it is usually a die. The chunk is the "
        "number of consecutive bytes on one unit, the stripe the distance after which the layout "
        "repeats. If both are known they are exact to 4 KiB; if results contradict each other, "
        "neither is reported."
    )
    pitfalls = (
        "A small region may be read from the drive's memory, which makes the curve level.",
        "A link or host that is slower than one unit hides the stripe.",
        "In a file, the extents of the file system and their offsets affect the result.",
        "If planes read independently, units are planes, and the drive has fewer dies.",
    )
    return Method(done, meaning, pitfalls)


_PARAMETERS: Final = {
    "block_kib": "Read at once",
    "reads": "Reads for one reading",
    "repeats": "Repeats of the curve",
}
VIEW: Final = View("Stripe", _table, _method, _pictures, _overview, {}, _PARAMETERS)

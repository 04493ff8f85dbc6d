"""How runs of the stripe experiment are shown: their table, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ssdlab.charts import Axis, Chart, Line, Mark, over_time, rule
from ssdlab.experiments.stripe.parameters import Stripe
from ssdlab.records import Run
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import column, format_number, positive, quantity

_GRAIN_KIB: Final = 4


def _table(run: Run) -> Table:
    stripe = run.result.findings.get("stripe_kib")
    rows = [
        row
        for row in _rows(run)
        if _is_power(row) or (stripe is not None and row["alignment_kib"] == stripe.value)
    ]
    columns = (
        Column("Alignment", "KiB"),
        Column("Read, median", "MiB/s"),
        Column("Latencies apart by"),
        Column("Readings"),
    )
    rates = column(row.get("read_mib_per_s") for row in rows)
    spreads = [row.get("latency_spread") for row in rows]
    cells = (
        (
            format_number(row["alignment_kib"]),
            rate,
            "-" if spread is None else f"{spread:.2f}",
            str(len(row.get("read_mib_per_s_all", ()))),
        )
        for row, rate, spread in zip(rows, rates, spreads, strict=True)
    )
    return Table(columns, tuple(cells))


def _rows(run: Run) -> list[dict[str, Any]]:
    """The measures that have an alignment."""
    return [row for row in run.result.measures if positive(row.get("alignment_kib"))]


def _is_power(row: dict[str, Any]) -> bool:
    """Whether an alignment is one of the curve's: 4 KiB, doubled and doubled again."""
    grains, rest = divmod(int(row["alignment_kib"]), _GRAIN_KIB)
    return rest == 0 and grains.bit_count() == 1


def _line(run: Run, key: str, label: str, faint: str = "") -> Line:
    """The powers of two as the line; other multiples, and repeats where `faint` names them."""
    rows = [row for row in _rows(run) if row.get(key) is not None]
    points = [(row["alignment_kib"], row[key]) for row in rows if _is_power(row)]
    beside = [(row["alignment_kib"], row[key]) for row in rows if not _is_power(row)]
    beside += [(row["alignment_kib"], each) for row in rows for each in row.get(faint, ())]
    return Line(label, points, beside)


def _rules(run: Run) -> list[Mark]:
    found = run.result.findings
    rules = []
    for name, word in (("chunk_kib", "chunk"), ("stripe_kib", "stripe")):
        place = positive(found[name].value) if name in found else None
        if place is not None:
            rules.append(rule(place, label=f"{word} {format_number(place)} KiB"))
    return rules


def _pictures(run: Run, at: int) -> list[Picture]:
    rules = _rules(run)
    rates = Chart(f"stripe-{at}", _ALIGNMENT, _RATE, [_line(run, *_RATES), *rules])
    spread = Axis("spread of latencies")
    spreads = Chart(f"queues-{at}", _ALIGNMENT, spread, [_line(run, *_SPREADS), *rules])
    return [
        *drawn(
            "Random reads at multiples of an alignment",
            "The line is the median at powers of two; faint points are single readings and other "
            "multiples. Reads slow down from twice the chunk on, and are slowest from the stripe "
            "on, where all of them meet on one unit.",
            rates.svg,
        ),
        *drawn(
            "How far latencies lie apart",
            "The span from the tenth to the ninetieth percentile, over the median. Near zero, all "
            "reads wait in one queue: that of one unit, or of something that all reads share.",
            spreads.svg,
        ),
        *drawn(
            "Throughput through the run",
            "Everything the drive did, in order.",
            over_time(run, at).svg,
        ),
    ]


_ALIGNMENT: Final = Axis("alignment, KiB", log=True)
_RATE: Final = Axis("random reads, MiB/s", log=True)
_RATES: Final = ("read_mib_per_s", "random reads", "read_mib_per_s_all")
_SPREADS: Final = ("latency_spread", "spread")


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    named = [
        (f"{number}: {run.result.target.removeprefix('twin:')}", run)
        for number, run in enumerate(runs, first)
    ]
    together = [Line(name, _line(run, "read_mib_per_s", name).points) for name, run in named]
    return drawn(
        "Random reads at multiples of an alignment",
        "Each drive falls from twice its chunk on to its stripe.",
        Chart(f"stripes-{first}", _ALIGNMENT, _RATE, together).svg,
    )


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    done = (
        f"A region of {quantity('size_mib', asked.get('size_mib'))} was written in order. Blocks "
        f"of {quantity('block_kib', asked.get('block_kib'))} were read at random multiples of an "
        f"alignment, {quantity('', asked.get('queue_depth'))} at a time, "
        f"{quantity('', asked.get('reads'))} for one reading. After the curve over powers of two, "
        "each question followed from the answers: which multiple leaves one unit alone, which "
        "is the least, where the next unit begins, and whether that holds elsewhere."
    )
    meaning = (
        "A unit is what serves one read at a time: a die as a rule. The chunk is how many "
        "consecutive bytes lie on one, the stripe how many go by before the same one comes again. "
        "Where both are known they are exact to 4 KiB; where anything contradicts, none is told."
    )
    pitfalls = (
        "What the drive holds in memory is not read from flash: a small region may look level.",
        "A link or a host slower than a unit hides all of it.",
        "In a file, the file system's pieces and their offsets are measured with the drive's.",
        "Units in which several planes serve reads at once have no single queue: none is told.",
    )
    return Method(done, meaning, pitfalls)


VIEW: Final = View(
    title="The stripe",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={
        "chunk_kib": "Chunk",
        "stripe_kib": "Stripe",
        "units": "Units",
        "regular": "Regular",
    },
    parameter_labels={
        **Stripe.labels(),
        "block_kib": "Read at once",
        "queue_depth": "Queue depth",
        "reads": "Reads for one reading",
        "repeats": "Repeats of the curve",
    },
)

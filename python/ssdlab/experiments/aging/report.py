"""How runs of the ageing experiment are shown: their table, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ssdlab import charts as figure
from ssdlab.experiments.aging.parameters import Aging
from ssdlab.experiments.aging.readings import file_mib, readings
from ssdlab.records import Run
from ssdlab.units import format_duration
from ssdlab.view import Column, Method, Picture, Table, View, drawn
from ssdlab.wording import NOTHING, column, given, positive, quantity

_BEST_COUNTS: Final = (
    "The best of the reads counts, so a single hiccup does not; all reads are in the table and "
    "stand as faint points in the figures."
)
_SMALL_FILE: Final = (
    "Part of a small file may be answered from the drive's own memory. Files of 4 GiB and more "
    "tell more."
)
_TWIN: Final = (
    "This is a twin, a model in virtual time: it is as right as its profile, it has no noise, and "
    "it was new and empty. Hold it against a drive before you rest a decision on it."
)
_OTHERS: Final = (
    "Whatever else used the drive in this time is in the numbers too, and so is the file system, "
    "where there is one: it may move what is overwritten."
)
_STATE_BEFORE: Final = (
    "The rest of the drive was as it was: a drive that is nearly full, or has been written at "
    "random for months, starts from another state than an empty one."
)


def _table(run: Run) -> Table:
    rows, size = readings(run), file_mib(run)
    repeats = [" ".join(column(row.repeats_s)) or NOTHING for row in rows]
    columns = [
        (Column("Written over it", "MiB"), [given(row.written_mib) for row in rows]),
        (Column("Best read", "s"), column(row.read_s for row in rows)),
        (Column("All reads", "s"), repeats),
    ]
    if size is not None:
        shares = [_share(row.written_mib / size) for row in rows]
        speeds = column(size / row.read_s for row in rows)
        columns.insert(1, (Column("Share of the file", "%"), shares))
        columns.insert(3, (Column("Read speed", "MiB/s"), speeds))
    cells = zip(*(texts for _, texts in columns), strict=True)
    return Table(tuple(head for head, _ in columns), tuple(cells))


def _share(share: float) -> str:
    """Percent, and one digit more below ten: 0, 1.2, 26, 123."""
    percent = share * 100
    return given(round(percent, 1 if percent < 10 else 0))


def _method(run: Run) -> Method:
    asked = run.manifest.parameters
    amounts = quantity("amounts_mib", asked.get("amounts_mib", []))
    size, reads, writes = (
        quantity(key, asked.get(key)) for key in ("size_mib", "read_block_kib", "write_block_kib")
    )
    rests = quantity("rest_s", asked.get("rests_s", []))
    long_rest = positive(asked.get("long_rest_s"))
    done = (
        f"A file of {size} was written once, in order, and read in order by requests of {reads}: "
        f"that is the fresh read. Then requests of {writes} went over it in random order, "
        f"{amounts}, each amount on top of those before. After each amount the "
        f"whole file was read again, each time after a rest ({rests})."
    )
    if long_rest:
        done += f" At the end the drive was left alone for {format_duration(long_rest)} and read."
    meaning = (
        "Slowdown is the best read after the last amount over the best fresh read: 2x means that "
        "the same file takes twice as long. Its interval comes from how much the reads differ. "
        "Recovers says whether the reads became faster again while the drive was left alone."
    )
    own = (_TWIN,) if run.manifest.virtual else (_OTHERS, _STATE_BEFORE)
    return Method(done, meaning, (*own, _BEST_COUNTS, _SMALL_FILE))


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    return drawn(
        "What random writing does to reading",
        "Speed of reading a whole file in order, after more and more of it was overwritten at "
        "random. A line that stays level is a drive that does not mind. Both axes are "
        "logarithmic, so that the same slowdown looks the same at any speed; lines are the best "
        "reads, faint points all reads.",
        lambda size: figure.read_time_curve(runs, size, first),
    )


def _pictures(run: Run, at: int) -> list[Picture]:
    return [
        *drawn(
            "Time to read the file",
            "The line is the best read after each amount, faint points are the others; the "
            "dashed line is the fresh file.",
            lambda size: figure.read_time(run, at, size),
        ),
        *drawn(
            "How long each read request took",
            "Each half has all its requests: bars further right are slower. Mind the two scales.",
            lambda size: figure.latency_histogram(run, at, size),
        ),
        *drawn(
            "How long the slow write requests took",
            "How many of the random writes took longer than the time below. A tail to the right "
            "is what a database feels as a pause.",
            lambda size: figure.overwrite_latency(run, at, size),
        ),
        *drawn(
            "Throughput through the run",
            "Everything the drive did, in order; dotted lines are rests. Steps down within one "
            "colour are cliffs.",
            lambda size: figure.over_time(run, at, size),
        ),
    ]


VIEW: Final = View(
    title="Ageing of a file by random writes",
    table=_table,
    method=_method,
    pictures=_pictures,
    overview=_overview,
    finding_labels={"slowdown": "Slowdown", "recovers": "Recovers by rest"},
    parameter_labels={
        **Aging.labels(),
        "amounts_mib": "Amounts written over it",
        "rests_s": "Rests before the reads",
        "read_block_kib": "Read requests",
        "write_block_kib": "Write requests",
    },
)

"""How runs of the ageing experiment are shown: their table, figures and words."""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.charts import (
    RUN_ROLES,
    Axis,
    Chart,
    Line,
    Mark,
    Size,
    area,
    bars,
    over_time,
    rule,
    run_colour,
    stacked,
    stairs,
    values,
)
from ssdlab.experiments.aging.parameters import Aging
from ssdlab.experiments.aging.readings import file_mib, readings
from ssdlab.records import Run
from ssdlab.target import parse_profile
from ssdlab.units import format_duration
from ssdlab.view import Column, Method, Picture, Table, View, draw_figure
from ssdlab.wording import NOTHING, column, format_number, number, positive, quantity, shorten

_BARS_PER_DECADE: Final = 40
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
        (Column("Written over it", "MiB"), [format_number(row.written_mib) for row in rows]),
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
    return format_number(round(percent, 1 if percent < 10 else 0))


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
    return draw_figure(
        "What random writing does to reading",
        "Speed of reading a whole file in order, after more and more of it was overwritten at "
        "random. A line that stays level is a drive that does not mind. Both axes are "
        "logarithmic, so that the same slowdown looks the same at any speed; lines are the best "
        "reads, faint points all reads.",
        lambda size: _read_speed(runs, first, size).svg(size),
    )


def _pictures(run: Run, at: int) -> list[Picture]:
    return [
        *draw_figure(
            "Time to read the file",
            "The line is the best read after each amount, faint points are the others; the "
            "dashed line is the fresh file.",
            _read_time(run, at).svg,
        ),
        *draw_figure(
            "How long each read request took",
            "Each half has all its requests: bars further right are slower. Mind the two scales.",
            lambda size: stacked(_read_latency(run, at), size),
        ),
        *draw_figure(
            "How long the slow write requests took",
            "How many of the random writes took longer than the time below. A tail to the right "
            "is what a database feels as a pause.",
            _write_latency(run, at).svg,
        ),
        *draw_figure(
            "Throughput through the run",
            "Everything the drive did, in order; dotted lines are rests. Steps down within one "
            "colour are cliffs.",
            over_time(run, at).svg,
        ),
    ]


def _read_speed(runs: Sequence[Run], first: int, size: Size) -> Chart:
    """Read speed against the share of the file that was overwritten, a line for each run.

    The x axis has a zero, and already the smallest amount makes a difference.
    """
    lines = [line for at, run in enumerate(runs, first) for line in _speed_line(run, at, size)]
    shares = [share for line in lines for share, _ in line.points]
    above = min((share for share in shares if share > 0), default=1.0)
    linear_to = next((power for power in (1e-1, 1e-2, 1e-3) if power <= above), 1e-4)
    ticks = [0.0, *(linear_to * 10**power for power in range(8))]
    x = Axis(
        "written over the file, share of its size",
        linear_to=linear_to,
        ticks=ticks,
        text=lambda share: f"{format_number(share * 100)} %" if share else "0",
    )
    title = "Read speed of the file after random writes: " + "; ".join(
        f"{line.label}, {line.detail}" for line in lines
    )
    y = Axis("read speed, MiB/s", log=True, least=4)
    return Chart(f"curve-{first}", x, y, lines, title)


def _speed_line(run: Run, at: int, size: Size) -> list[Line]:
    mib, rows = file_mib(run), readings(run)
    if mib is None or not rows:
        return []
    speeds = [mib / row.read_s for row in (rows[0], rows[-1])]
    span = " → ".join(dict.fromkeys(f"{v:.0f}" if v >= 100 else f"{v:.3g}" for v in speeds))
    return [
        Line(
            f"{at}  {shorten(parse_profile(run.manifest.target), 13 if size.narrow else 18)}",
            [(row.written_mib / mib, mib / row.read_s) for row in rows],
            [(row.written_mib / mib, mib / read) for row in rows for read in row.repeats_s],
            run_colour(at),
            "twin, " * run.manifest.virtual + span + " MiB/s" * (not size.narrow),
            dashed=at > len(RUN_ROLES),
        )
    ]


def _read_time(run: Run, at: int) -> Chart:
    """Read time of the file against the MiB written over it."""
    rows, colour = readings(run), run_colour(at)
    best = [(row.written_mib, row.read_s) for row in rows]
    x = Axis(
        "MiB written over the file, in total",
        linear_to=min((row.written_mib for row in rows if row.written_mib > 0), default=1.0),
        ticks=[row.written_mib for row in rows],
    )
    title = "Read time of the file: " + ", ".join(
        f"{number(row.read_s)} s after {format_number(row.written_mib)} MiB" for row in rows
    )
    repeats = [(row.written_mib, read) for row in rows for read in row.repeats_s]
    tops = [max(row.repeats_s, default=0) for row in rows]
    texts = column(row.read_s for row in rows)
    marks: list[Line | Mark] = [Line("", best, repeats, colour)]
    if rows:
        marks += [rule(y=best[0][1], label="fresh"), area(best, colour, level=best[0][1])]
        marks.append(values(best, texts, tops, colour))
    return Chart(f"read-time-{at}", x, Axis("read time, s"), marks, title)


@dataclass(frozen=True)
class _Latencies:
    """The number of requests with each latency in the steps of one stage."""

    label: str
    colour: str
    counts: dict[int, int]  # by nanoseconds

    @property
    def requests(self) -> int:
        return sum(self.counts.values())


def _first_and_last(run: Run, phase: str) -> list[_Latencies]:
    """The requests of the first and the last stage in which this phase was measured."""
    steps = run.tables["steps"].select(["step", "phase", "stage"]).to_pylist()
    stage_of = {row["step"]: row["stage"] for row in steps if row["phase"] == phase}
    counts: dict[int, Counter[int]] = {}
    for row in run.tables["latency"].to_pylist():
        if (stage := stage_of.get(row["step"])) is not None and row["count"] and row["latency_ns"]:
            counts.setdefault(stage, Counter())[row["latency_ns"]] += row["count"]
    stages = sorted({min(counts), max(counts)}) if counts else []
    return [
        _Latencies(
            _stage_label(run, phase, stage),
            "fresh" if stage == min(counts) else "aged",
            counts[stage],
        )
        for stage in stages
    ]


def _stage_label(run: Run, phase: str, stage: int) -> str:
    if stage == 0:
        return "fresh"
    if phase == "overwrite":
        amounts = run.result.parameters.get("amounts_mib", [])
        if stage > len(amounts):
            return f"amount {stage}"
        return f"amount {stage}, {format_number(positive(amounts[stage - 1]) or 0.0)} MiB"
    written = [row.get("written_mib") for row in run.result.measures]
    known = positive(written[stage]) if stage < len(written) else None
    return f"after {format_number(known)} MiB" if known else f"after amount {stage}"


def _read_latency(run: Run, at: int) -> list[Chart]:
    """Histograms of the sequential reads, fresh above aged; bars are equally wide."""
    groups = _first_and_last(run, "read")
    low, high = _latency_limits(groups)
    bins = math.ceil(math.log10(high / low) * _BARS_PER_DECADE)
    edges = [low * (high / low) ** (edge / bins) for edge in range(bins + 1)]
    title = "Share of the read requests by latency: " + ", ".join(g.label for g in groups)
    charts: list[Chart] = []
    for group in groups:
        shares: dict[int, float] = defaultdict(float)
        for latency, requests in group.counts.items():
            shares[bisect(edges, latency) - 1] += 100 * requests / group.requests
        spans = [(edges[at], edges[at + 1]) for at in shares]
        mark = bars(spans, list(shares.values()), group.colour, group.label)
        x = _latency_axis("latency of a read request", groups)
        peak = max(shares.values())
        y = Axis(
            "" if charts else "share of the requests, %",
            limits=(0, peak * 1.45),
            ticks=[0, float(f"{peak / 2:.0e}"), 2 * float(f"{peak / 2:.0e}")],
        )
        name = f"latency-read-{at}"
        charts.append(Chart(name, x, y, [mark], title, height=96, legend_inside=True))
    return charts


def _write_latency(run: Run, at: int) -> Chart:
    """The share of the random writes that took longer than a time.

    Without marks where all writes took the same: a vertical line shows nothing.
    """
    groups = _first_and_last(run, "overwrite")
    marks = []
    for group in groups:
        points, left = [(_latency_limits(groups)[0], 100.0)], group.requests
        for latency in sorted(group.counts):
            points.append((latency, 100 * left / group.requests))
            left -= group.counts[latency]
        marks.append(stairs([*points, (points[-1][0], 1e-9)], group.colour, group.label))
    if len({latency for group in groups for latency in group.counts}) < 2:
        marks = []
    least = min((100 / group.requests for group in groups), default=1)
    x = _latency_axis("latency of a write request", groups)
    y = Axis("share of the requests that took longer, %", log=True, limits=(least / 2, 160))
    title = "Share of the write requests that took longer than a time: "
    title += ", ".join(group.label for group in groups)
    return Chart(f"latency-overwrite-{at}", x, y, marks, title, legend_inside=True)


def _latency_axis(label: str, groups: Sequence[_Latencies]) -> Axis:
    limits = _latency_limits(groups)
    return Axis(label, log=True, limits=limits, text=lambda ns: format_duration(ns / 1e9))


def _latency_limits(groups: Sequence[_Latencies]) -> tuple[float, float]:
    """In nanoseconds; far enough apart that equal requests are a single bar."""
    found = [float(latency) for group in groups for latency in group.counts]
    return Axis(log=True, least=5).span(found or [1.0], from_zero=False)


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

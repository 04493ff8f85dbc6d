"""The report of the aging experiment: its table, figures and texts."""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab import charts, view
from ssdlab.charts import Axis, Chart, Line, Mark, Size, run_colour
from ssdlab.records import Run
from ssdlab.target import parse_profile
from ssdlab.units import format_duration
from ssdlab.view import Column, Method, Picture, Table, View
from ssdlab.wording import NOTHING, column, format_number, number, positive, shorten

_BARS_PER_DECADE: Final = 40
_BEST_COUNTS: Final = (
    "The fastest read of each amount counts, so a single disturbance has no effect. The table has "
    "all reads; the figures have them as faint points."
)
_SMALL_FILE: Final = (
    "Part of a small file may be read from the drive's own memory. Use a file of 4 GiB or more for "
    "a reliable result."
)
_TWIN: Final = (
    "This is a twin, a model in virtual time. It is only as accurate as its profile, it has no "
    "noise, and it was new and empty. Measure a real drive before you base a decision on it."
)
_OTHERS: Final = (
    "Other programs that used the drive during the run affect the numbers, and so does a file "
    "system: it may place overwritten data elsewhere."
)
_STATE_BEFORE: Final = (
    "The state of the rest of the drive matters: a drive that is nearly full, or has been written "
    "at random for months, starts slower than an empty one."
)


@dataclass(frozen=True)
class _Reading:
    """The fastest read and all reads of the file after `written_mib` of random writes in total."""

    written_mib: float
    read_s: float
    repeats_s: tuple[float, ...]


def _readings(run: Run) -> list[_Reading]:
    """The run's rows in order, without those that have no read time (interrupted stages)."""
    readings = []
    for row in run.result.measures:
        written, read = positive(row.get("written_mib"), zero=True), positive(row.get("read_s"))
        if written is not None and read is not None:
            values = row.get("read_s_all")
            times = map(positive, values if isinstance(values, list) else [read])
            repeats = tuple(time for time in times if time is not None)
            readings.append(_Reading(written, read, repeats))
    return readings


def _file_mib(run: Run) -> float | None:
    return positive(run.result.parameters.get("size_mib"))


def _table(run: Run) -> Table:
    rows, size = _readings(run), _file_mib(run)
    columns = [
        (Column("Random writes", "MiB"), [format_number(row.written_mib) for row in rows]),
        (Column("Best read", "s"), column(row.read_s for row in rows)),
        (
            Column("All reads", "s", minor=True),
            [" ".join(column(row.repeats_s)) or NOTHING for row in rows],
        ),
    ]
    if size is not None:
        shares = [_percent(row.written_mib / size) for row in rows]
        speeds = column(size / row.read_s for row in rows)
        columns.insert(1, (Column("Share of the file", "%"), shares))
        columns.insert(3, (Column("Read speed", "MiB/s"), speeds))
    return Table.of_columns(*columns)


def _percent(share: float) -> str:
    """A share in percent, with one more digit below ten: 0, 1.2, 26, 123."""
    percent = share * 100
    return format_number(round(percent, 1 if percent < 10 else 0))


def _method(run: Run) -> Method:
    text = view.parameter_texts(run)
    done = (
        f"A file of {text('size_mib')} was written sequentially and read sequentially by requests "
        f"of {text('read_block_kib')}: this is the fresh read. Then requests of "
        f"{text('write_block_kib')} overwrote it in random order, {text('amounts_mib')}, each "
        "amount in addition to those before. After each amount the whole file was read several "
        f"times, each time after a rest ({text('rests_s')})."
    )
    if long_rest := positive(run.manifest.parameters.get("long_rest_s")):
        done += f" At the end the drive was idle for {format_duration(long_rest)} and read again."
    meaning = (
        "Slowdown is the best read time after the last amount divided by the best fresh read time: "
        "at 2x the same file takes twice as long. Its interval comes from the variation between "
        "reads. Recovers says whether reads became faster again while the drive was idle."
    )
    own = (_TWIN,) if run.manifest.virtual else (_OTHERS, _STATE_BEFORE)
    return Method(done, meaning, (*own, _BEST_COUNTS, _SMALL_FILE))


def _overview(runs: Sequence[Run], first: int) -> list[Picture]:
    return view.draw_figure(
        "Sequential read speed after random writes",
        "Speed of a sequential read of the whole file, after more and more of it was overwritten "
        "at random. A level line means that the drive does not age. Both axes are logarithmic, so "
        "equal slowdowns look equal at any speed. Lines are the best reads, faint points all "
        "reads.",
        lambda size: _read_speed(runs, first, size).svg(size),
    )


def _pictures(run: Run, number: int) -> list[Picture]:
    return [
        *view.draw_figure(
            "Time to read the file",
            "The line is the best read after each amount, faint points are the others; the "
            "dashed line is the fresh file.",
            _read_time(run, number).svg,
        ),
        *view.draw_figure(
            "Latency of read requests",
            "Each half is a histogram of all requests: bars further right are slower requests. The "
            "two vertical scales differ.",
            lambda size: charts.stacked(_read_latency(run, number), size),
        ),
        *view.draw_figure(
            "Latency of slow write requests",
            "The share of the random writes that took longer than the time below. A database "
            "notices a tail to the right as pauses.",
            _write_latency(run, number).svg,
        ),
        *view.draw_throughput(
            run, number, "A step down within one colour is a sudden loss of speed."
        ),
    ]


def _read_speed(runs: Sequence[Run], first: int, size: Size) -> Chart:
    """Read speed against the share of the file that was overwritten, a line for each run.

    The x axis includes zero, because even the smallest amount slows some drives.
    """
    lines = [line for at, run in enumerate(runs, first) for line in _speed_line(run, at, size)]
    shares = [share for line in lines for share, _ in line.points]
    above = min((share for share in shares if share > 0), default=1.0)
    linear_to = next((power for power in (1e-1, 1e-2, 1e-3) if power <= above), 1e-4)
    ticks = [0.0, *(linear_to * 10**power for power in range(8))]
    x = Axis(
        "random writes, share of the file size",
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
    mib, rows = _file_mib(run), _readings(run)
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
            dashed=at > len(charts.RUN_ROLES),
        )
    ]


def _read_time(run: Run, at: int) -> Chart:
    """Read time of the file against the MiB of random writes."""
    rows, colour = _readings(run), run_colour(at)
    best = [(row.written_mib, row.read_s) for row in rows]
    x = Axis(
        "MiB of random writes to the file, in total",
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
        fresh = best[0][1]
        marks += [charts.rule(y=fresh, label="fresh"), charts.area(best, colour, level=fresh)]
        marks.append(charts.values(best, texts, tops, colour))
    return Chart(f"read-time-{at}", x, Axis("read time, s"), marks, title)


@dataclass(frozen=True)
class _Latencies:
    """The number of requests with each latency in the steps of one stage."""

    label: str
    colour: str
    counts: dict[int, int]  # by latency in ns

    @property
    def requests(self) -> int:
        return sum(self.counts.values())


def _first_and_last(run: Run, phase: str) -> list[_Latencies]:
    """The latencies of the first and the last stage in which this phase was measured."""
    steps = run.tables["steps"].select(["step", "phase", "stage"]).to_pylist()
    stage_of = {row["step"]: row["stage"] for row in steps if row["phase"] == phase}
    counts: dict[int, Counter[int]] = {}
    for row in run.tables["latency"].to_pylist():
        if (stage := stage_of.get(row["step"])) is not None and row["count"] and row["latency_ns"]:
            counts.setdefault(stage, Counter())[row["latency_ns"]] += row["count"]
    stages = sorted({min(counts), max(counts)}) if counts else []
    roles = ("fresh", "aged")
    return [
        _Latencies(_stage_label(run, phase, stage), role, counts[stage])
        for stage, role in zip(stages, roles, strict=False)
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
    """Latency histograms of sequential reads: fresh file above aged file, equal bar widths."""
    groups = _first_and_last(run, "read")
    low, high = _latency_limits(groups)
    bins = math.ceil(math.log10(high / low) * _BARS_PER_DECADE)
    edges = [low * (high / low) ** (edge / bins) for edge in range(bins + 1)]
    title = "Share of the read requests by latency: " + ", ".join(g.label for g in groups)
    panes: list[Chart] = []
    for group in groups:
        shares: dict[int, float] = defaultdict(float)
        for latency, requests in group.counts.items():
            shares[bisect(edges, latency) - 1] += 100 * requests / group.requests
        spans = [(edges[at], edges[at + 1]) for at in shares]
        mark = charts.bars(spans, list(shares.values()), group.colour, group.label)
        x = _latency_axis("latency of a read request", groups)
        peak = max(shares.values())
        y = Axis(
            "" if panes else "share of the requests, %",
            limits=(0, peak * 1.45),
            ticks=[0, float(f"{peak / 2:.0e}"), 2 * float(f"{peak / 2:.0e}")],
        )
        name = f"latency-read-{at}"
        panes.append(Chart(name, x, y, [mark], title, height=96, legend_inside=True))
    return panes


def _write_latency(run: Run, at: int) -> Chart:
    """The share of random writes that took longer than each latency on the x axis.

    Empty if all writes took equally long, because a vertical line would show nothing.
    """
    groups = _first_and_last(run, "overwrite")
    marks = []
    for group in groups:
        points, left = [(_latency_limits(groups)[0], 100.0)], group.requests
        for latency in sorted(group.counts):
            points.append((latency, 100 * left / group.requests))
            left -= group.counts[latency]
        marks.append(charts.stairs([*points, (points[-1][0], 1e-9)], group.colour, group.label))
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
    """Axis limits in ns, far enough apart to show equal latencies as a single bar."""
    latencies = [float(latency) for group in groups for latency in group.counts]
    return Axis(log=True, least=5).span(latencies or [1.0], from_zero=False)


_FINDINGS: Final = {"recovers": "Recovers when idle"}
_PARAMETERS: Final = {
    "amounts_mib": "Random writes",
    "rests_s": "Rests before the reads",
    "read_block_kib": "Read requests",
    "write_block_kib": "Write requests",
}
VIEW: Final = View(
    "Ageing by random writes", _table, _method, _pictures, _overview, _FINDINGS, _PARAMETERS
)

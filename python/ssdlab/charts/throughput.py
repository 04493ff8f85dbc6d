"""The throughput of a whole run against the busy time of the drive."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from ssdlab.charts.chart import Axis, Chart
from ssdlab.charts.marks import Mark, area, rule, stairs
from ssdlab.charts.svg import PALETTE
from ssdlab.records import Run
from ssdlab.units import format_duration

_POINTS_MAX: Final = 1500  # with more, neighbouring intervals are joined
_PHASES: Final = {"fill": "first write", "overwrite": "random writes", "read": "reads"}
_MIB: Final = 1 << 20


@dataclass(frozen=True)
class _Piece:
    """A step of the run, placed on the axis of the drive's busy time."""

    phase: str
    start_s: float
    end_s: float
    edges_s: list[float]
    speeds: list[float]  # MiB/s between the edges


def over_time(run: Run, at: int = 1) -> Chart:
    """Throughput of each interval against the drive's time without idle periods."""
    pieces, rests = _lay_out(run)
    busy = [piece for piece in pieces if any(piece.speeds)]
    speeds = [speed for piece in busy for speed in piece.speeds if speed > 0]
    low, end = min(speeds, default=1.0) / 1.6, pieces[-1].end_s if pieces else 0.0
    marks: list[Mark] = []
    for piece in busy:
        colour = piece.phase if piece.phase in PALETTE else "run3"
        speeds = [max(speed, low) for speed in piece.speeds]
        points = list(zip(piece.edges_s, [*speeds, speeds[-1]], strict=True))
        marks.append(area([(piece.start_s, low), (piece.end_s, low)], colour))
        marks.append(stairs(points, colour, _PHASES.get(piece.phase, piece.phase)))
    marks += [rule(x=rest, dash=(1, 2)) for rest in rests] if busy else []
    x = Axis("busy time of the drive, s (rests cut out)", limits=(0, end or 1.0))
    title = f"Throughput over {format_duration(end)} of writing and reading"
    return Chart(f"over-time-{at}", x, Axis("throughput, MiB/s", log=True), marks, title)


def _lay_out(run: Run) -> tuple[list[_Piece], list[float]]:
    """The steps without the idle time between them, and where it was omitted, in s of busy time."""
    intervals = _by_step(run)
    joined = -(-sum(len(rows) for rows in intervals.values()) // _POINTS_MAX) or 1
    pieces: list[_Piece] = []
    rests: list[float] = []
    cursor, clock = 0.0, None
    for step in run.tables["steps"].sort_by("step").to_pylist():
        if step["phase"] == "rest":
            continue
        start, end = step["start_ns"], step["end_ns"]
        if clock is not None and start - clock > 1_000_000:
            rests.append(cursor)
        shift = cursor - start / 1e9
        edges, speeds = _speeds(intervals.get(step["step"], []), end, joined)
        edges_s = [edge / 1e9 + shift for edge in edges]
        cursor, clock = cursor + (end - start) / 1e9, end
        pieces.append(_Piece(step["phase"], start / 1e9 + shift, cursor, edges_s, speeds))
    return pieces, rests


def _by_step(run: Run) -> dict[int, list[dict[str, Any]]]:
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in run.tables["intervals"].select(["step", "start_ns", "bytes"]).to_pylist():
        rows.setdefault(row["step"], []).append(row)
    return rows


def _speeds(rows: list[dict[str, Any]], end: int, joined: int) -> tuple[list[int], list[float]]:
    """Edges of intervals in ns, and the speed in MiB/s between two edges.

    Groups of `joined` intervals become one. A short interval at the end of a step is merged into
    the one before it, because its speed is noisy. An interval without completions has no row; its
    time counts towards the interval before it.
    """
    kept = rows[::joined]
    if not kept:
        return [], []
    sums = [
        sum(row["bytes"] for row in rows[at : at + joined]) for at in range(0, len(rows), joined)
    ]
    edges = [*(row["start_ns"] for row in kept), end]
    if len(sums) > 1 and 2 * (edges[-1] - edges[-2]) < edges[1] - edges[0]:
        last = sums.pop()
        sums[-1] += last
        del edges[-2]
    spans = [right - left for left, right in pairwise(edges)]
    return edges, [
        total / _MIB / (span / 1e9) if span else 0.0
        for total, span in zip(sums, spans, strict=True)
    ]

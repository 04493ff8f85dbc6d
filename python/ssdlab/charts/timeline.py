"""The throughput of a whole run over the device's time, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ssdlab.charts.canvas import (
    MUTED,
    PALETTE,
    WIDE,
    Margins,
    Plate,
    Size,
    axes,
    draw,
    name_axes,
    tick,
)
from ssdlab.records import Run
from ssdlab.units import format_duration
from ssdlab.wording import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS: Final = 1500  # more cannot be told apart; neighbours are joined beyond
_PHASES: Final = {"fill": "first write", "overwrite": "random writes", "read": "reads"}
_MIB: Final = 1 << 20


@dataclass(frozen=True)
class _Piece:
    """A step laid on the axis of the device's busy time."""

    phase: str
    start_s: float
    end_s: float
    edges_s: list[float]
    speeds: list[float]  # MiB/s between the edges


def over_time(run: Run, at: int = 1, size: Size = WIDE) -> str:
    """Throughput in each interval against the device's time with the rests cut out, as SVG.

    Empty where no interval was kept.
    """
    pieces, rests = _lay_out(run)
    if not any(any(piece.speeds) for piece in pieces):
        return ""
    plate = Plate(
        f"over-time-{at}-{size.name}",
        f"Throughput over {format_duration(pieces[-1].end_s)} of writing and reading",
        size.width,
        size.width * (0.42 if not size.narrow else 0.8),
    )
    return draw(plate, lambda figure: _paint(figure, pieces, rests))


def _lay_out(run: Run) -> tuple[list[_Piece], list[float]]:
    """The steps that did something one after the other, and where something else lay between."""
    intervals = _by_step(run)
    joined = -(-sum(len(rows) for rows in intervals.values()) // _POINTS) or 1
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
    """Edges in nanoseconds and MiB/s between them.

    `joined` intervals become one, and what is left at a step's end goes to the one before it:
    a sliver of time makes a wild speed. An interval without a completion has no row: its time
    counts to the one before it.
    """
    kept = rows[::joined]
    if not kept:
        return [], []
    sums = [
        sum(row["bytes"] for row in rows[at : at + joined]) for at in range(0, len(rows), joined)
    ]
    edges = [*(row["start_ns"] for row in kept), end]
    if len(sums) > 1 and 2 * (edges[-1] - edges[-2]) < edges[1] - edges[0]:
        sliver = sums.pop()
        sums[-1] += sliver
        del edges[-2]
    spans = [right - left for left, right in pairwise(edges)]
    return edges, [
        total / _MIB / (span / 1e9) if span else 0.0
        for total, span in zip(sums, spans, strict=True)
    ]


def _paint(figure: Figure, pieces: list[_Piece], rests: list[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    pane = axes(figure, Margins(48, 20, 62, 52))
    name_axes(pane, "busy time of the drive, s (rests cut out)", "throughput, MiB/s", lift=36)
    speeds = [speed for piece in pieces for speed in piece.speeds if speed > 0]
    low, high = min(speeds, default=1.0), max(speeds, default=1.0)
    pane.set_yscale("log")
    pane.set_ylim(low / 1.6, high * 1.6)
    pane.set_xlim(0, pieces[-1].end_s or 1.0)
    pane.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 60 else (1,)))
    pane.yaxis.set_minor_locator(NullLocator())
    pane.yaxis.set_major_formatter(FuncFormatter(tick))
    named = set()
    for piece in pieces:
        if not any(piece.speeds):
            continue
        colour = PALETTE.get(piece.phase, PALETTE["run3"])[0]
        pane.axvspan(piece.start_s, piece.end_s, color=colour, alpha=0.12, lw=0)
        name = None if piece.phase in named else _PHASES.get(piece.phase, plain(piece.phase))
        named.add(piece.phase)
        shown = [max(speed, low / 1.6) for speed in piece.speeds]
        pane.step(
            piece.edges_s, [*shown, shown[-1]], where="post", color=colour, lw=1.7, label=name
        )
    for rest in rests:
        pane.axvline(rest, color=MUTED, lw=0.8, ls=(0, (1, 2)))
    pane.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=3,
        labelcolor="linecolor",
        handlelength=0.8,
        columnspacing=1.2,
        borderaxespad=0.2,
    )

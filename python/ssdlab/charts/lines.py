"""Lines over a shared axis: what most experiments show, a line a case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ssdlab.charts.canvas import (
    MUTED,
    PAPER,
    RUN_COLOURS,
    WIDE,
    Margins,
    Plate,
    Size,
    axes,
    draw,
    name_axes,
    tick,
)
from ssdlab.charts.curve import spread
from ssdlab.wording import plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_LABEL_GAP: Final = 20  # pixels from one line's label to the next
_MARKED: Final = 60  # with more points than this a line has no dots
_LEAST_RANGE: Final = 2.0  # a logarithmic axis spans this factor at least


@dataclass(frozen=True)
class Line:
    """One line: its name, its points, and faint ones beside it (repeats)."""

    label: str
    points: Sequence[tuple[float, float]]
    faint: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Chart:
    """What the axes are: their names with units, their scales, and where marks stand.

    On a logarithmic axis what is not above zero is left out. `doublings` puts its ticks across at
    powers of two. `marks` are (where, words) across.
    """

    name: str
    across: str
    up: str
    log_across: bool = False
    log_up: bool = False
    marks: Sequence[tuple[float, str]] = ()
    doublings: bool = False


def lines(chart: Chart, drawn: Sequence[Line], size: Size = WIDE) -> str:
    """The lines as SVG; empty where there is no point to draw. Colours follow the lines' order."""
    kept = [line for line in (_drawable(chart, line) for line in drawn) if line.points]
    if not kept:
        return ""
    title = f"{chart.up} against {chart.across}: " + "; ".join(_told(line) for line in kept)
    height = max(size.width * (0.46 if not size.narrow else 0.85), _LABEL_GAP * len(kept) + 110)
    plate = Plate(f"{chart.name}-{size.name}", title, size.width, height)
    return draw(plate, lambda figure: _paint(figure, chart, kept, size))


def _drawable(chart: Chart, line: Line) -> Line:
    def fits(point: tuple[float, float]) -> bool:
        finite = all(math.isfinite(value) for value in point)
        return (
            finite and (point[0] > 0 or not chart.log_across) and (point[1] > 0 or not chart.log_up)
        )

    points, faint = (sorted(filter(fits, each)) for each in (line.points, line.faint))
    return Line(plain(line.label), points, faint)


def _told(line: Line) -> str:
    first, last = line.points[0], line.points[-1]
    return f"{line.label} from {tick(first[1])} at {tick(first[0])} to {tick(last[1])}"


def _paint(figure: Figure, chart: Chart, drawn: Sequence[Line], size: Size) -> None:
    right = (96 if size.narrow else 150) if len(drawn) > 1 else 32
    pane = axes(figure, Margins(56, right, 40, 52))
    name_axes(pane, chart.across, chart.up)
    points = [point for line in drawn for point in (*line.points, *line.faint)]
    _scale(pane, chart, points)
    for line, colour in zip(drawn, _colours(len(drawn)), strict=True):
        if line.faint:
            beside, height = zip(*line.faint, strict=True)
            pane.scatter(beside, height, s=14, color=colour, alpha=0.35, lw=0)
        across, up = zip(*line.points, strict=True)
        style = "-o" if len(across) <= _MARKED else "-"
        pane.plot(across, up, style, color=colour, lw=2.0, ms=5.5, mec=PAPER, zorder=3)
    for place, words in chart.marks:
        _mark(pane, place, words)
    if len(drawn) > 1:
        _label(pane, drawn, 13 if size.narrow else 20)


def _colours(count: int) -> list[str]:
    return [RUN_COLOURS[at % len(RUN_COLOURS)] for at in range(count)]


def _scale(pane: Axes, chart: Chart, points: Sequence[tuple[float, float]]) -> None:
    across, up = ([point[at] for point in points] for at in (0, 1))
    if chart.log_across:
        pane.set_xscale("log")
        few = (1,) if max(across) / min(across) > 200 else (1, 2, 5)
        _logarithmic(pane.xaxis, (1,) if chart.doublings else few, 2 if chart.doublings else 10)
        pane.set_xlim(min(across) / 1.15, max(across) * 1.15)
    else:
        room = (max(across) - min(across)) * 0.03 or 1.0
        pane.set_xlim(min(across) - room, max(across) + room)
    if chart.log_up:
        pane.set_yscale("log")
        _logarithmic(pane.yaxis, (1, 2, 5))
        stretch = max(1.0, _LEAST_RANGE / (max(up) / min(up))) ** 0.5
        pane.set_ylim(min(up) / stretch / 1.2, max(up) * stretch * 1.2)
    else:
        pane.set_ylim(min(0.0, *up), max(up) * 1.15 or 1.0)


def _logarithmic(axis: Axis, subs: tuple[int, ...], base: int = 10) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=base, subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(tick))


def _mark(pane: Axes, place: float, words: str) -> None:
    pane.axvline(place, color=MUTED, lw=1, ls=(0, (4, 4)), zorder=1)
    pane.annotate(
        plain(words),
        (place, 1),
        xycoords=("data", "axes fraction"),
        xytext=(5, -6),
        textcoords="offset points",
        color=MUTED,
        va="top",
    )


def _label(pane: Axes, drawn: Sequence[Line], length: int) -> None:
    """Each line's name at its right end, moved apart where they would overlap."""
    ends = pane.transData.transform([line.points[-1] for line in drawn])
    wanted = [float(end[1]) for end in ends]
    box = pane.bbox
    placed = spread(wanted, _LABEL_GAP, box.y0 + 8, box.y1 - 8)
    for line, colour, height in zip(drawn, _colours(len(drawn)), placed, strict=True):
        pane.annotate(
            shorten(line.label, length),
            (box.x1 + 8, height),
            xycoords="figure pixels",
            color=colour,
            weight="bold",
            va="center",
        )

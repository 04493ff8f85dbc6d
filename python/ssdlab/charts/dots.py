"""Dots in rows: a few named cases whose values lie decades apart, repeats beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ssdlab.charts.canvas import (
    GRID,
    INK,
    MUTED,
    PAPER,
    RUN_COLOURS,
    WIDE,
    Margins,
    Plate,
    Size,
    axes,
    draw,
    tick,
)
from ssdlab.wording import plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW: Final = 26  # pixels from one row to the next
_LEAST_DECADES: Final = 1.0


@dataclass(frozen=True)
class Dot:
    """A value in a row, of one of the series; `until` ends a line from it, `faint` are repeats."""

    series: str
    value: float
    until: float | None = None
    faint: Sequence[float] = ()


@dataclass(frozen=True)
class Row:
    """A case with its dots; a hollow one is shown beside the others, and not to be compared."""

    label: str
    dots: Sequence[Dot]
    hollow: bool = False


def dots(name: str, across: str, rows: Sequence[Row], size: Size = WIDE) -> str:
    """The rows from top to bottom over a logarithmic axis, as SVG; empty without a value."""
    kept = [row for row in map(_drawable, rows) if row.dots]
    if not kept:
        return ""
    title = f"{across}: " + "; ".join(_told(row) for row in kept)
    plate = Plate(f"{name}-{size.name}", title, size.width, _ROW * len(kept) + 104)
    return draw(plate, lambda figure: _paint(figure, across, kept, size))


def _drawable(row: Row) -> Row:
    def fits(value: float | None) -> bool:
        return value is not None and math.isfinite(value) and value > 0

    kept = [
        Dot(dot.series, dot.value, dot.until if fits(dot.until) else None, tuple(dot.faint))
        for dot in row.dots
        if fits(dot.value) and all(map(fits, dot.faint))
    ]
    return Row(plain(row.label), kept, row.hollow)


def _told(row: Row) -> str:
    return f"{row.label} " + ", ".join(f"{tick(dot.value)} ({dot.series})" for dot in row.dots)


def _paint(figure: Figure, across: str, rows: Sequence[Row], size: Size) -> None:
    pane = axes(figure, Margins(118 if size.narrow else 150, 34, 40, 52))
    pane.set_xlabel(across, loc="right", labelpad=8)
    _scale(pane, rows)
    _name_rows(pane, rows, 15 if size.narrow else 22)
    series = list(dict.fromkeys(plain(dot.series) for row in rows for dot in row.dots))
    colours = {each: RUN_COLOURS[at % len(RUN_COLOURS)] for at, each in enumerate(series)}
    for height, row in enumerate(rows):
        for dot in row.dots:
            _mark(pane, dot, height, colours[plain(dot.series)], hollow=row.hollow)
    if len(series) > 1:
        length = (32 if size.narrow else 72) // len(series)
        for each, colour in colours.items():
            pane.plot([], [], "o", ms=7, color=colour, label=shorten(each, length))
        pane.legend(
            loc="lower left",
            bbox_to_anchor=(-0.01, 1.0),
            ncols=len(series),
            labelcolor="linecolor",
            handlelength=0.8,
            borderaxespad=0.2,
        )


def _mark(pane: Axes, dot: Dot, height: int, colour: str, *, hollow: bool) -> None:
    if dot.until is not None:
        pane.plot([dot.value, dot.until], [height, height], "-", color=colour, lw=3, alpha=0.45)
    if dot.faint:
        pane.scatter(dot.faint, [height] * len(dot.faint), s=14, color=colour, alpha=0.35, lw=0)
    face, edge = (PAPER, colour) if hollow else (colour, PAPER)
    pane.plot([dot.value], [height], "o", ms=8, mfc=face, mec=edge, zorder=3)


def _name_rows(pane: Axes, rows: Sequence[Row], length: int) -> None:
    labels = [shorten(row.label, length) for row in rows]
    pane.set_yticks(range(len(rows)), labels)
    for row, words in zip(rows, pane.get_yticklabels(), strict=True):
        words.set_color(MUTED if row.hollow else INK)
    pane.set_ylim(len(rows) - 0.4, -0.6)
    pane.grid(axis="x", color=GRID)


def _scale(pane: Axes, rows: Sequence[Row]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    found = [
        value
        for row in rows
        for dot in row.dots
        for value in (dot.value, dot.until or dot.value, *dot.faint)
    ]
    low, high = min(found), max(found)
    stretch = 10 ** max(0.0, (_LEAST_DECADES - math.log10(high / low)) / 2)
    low, high = low / stretch / 1.3, high * stretch * 1.3
    pane.set_xscale("log")
    pane.set_xlim(low, high)
    subs = (1.0,) if high / low > 1e3 else (1.0, 2.0, 5.0)
    pane.xaxis.set_major_locator(LogLocator(subs=subs))
    pane.xaxis.set_minor_locator(NullLocator())
    pane.xaxis.set_major_formatter(FuncFormatter(tick))

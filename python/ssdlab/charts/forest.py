"""Ratios in rows, each with its interval, about a line at 1: a forest plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ssdlab.charts.canvas import (
    GRID,
    INK,
    MUTED,
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
_LEAST: Final = 1.05
"""The axis goes this far at least, on both sides of 1: a per cent must not fill the page."""
_WIDE_RANGE: Final = 3.0


@dataclass(frozen=True)
class Ratio:
    """A ratio with its bounds, if it has any; `shown`: the difference is more than chance."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    shown: bool = False


def forest(name: str, across: str, ratios: Sequence[Ratio], size: Size = WIDE) -> str:
    """The ratios from top to bottom over a logarithmic axis, as SVG; empty without any."""
    kept = [each for each in ratios if math.isfinite(each.value) and each.value > 0]
    if not kept:
        return ""
    title = f"{across}: " + "; ".join(_told(each) for each in kept)
    plate = Plate(f"{name}-{size.name}", title, size.width, _ROW * len(kept) + 92)
    return draw(plate, lambda figure: _paint(figure, across, kept, size))


def _told(ratio: Ratio) -> str:
    bounds = ""
    if ratio.low is not None and ratio.high is not None:
        bounds = f" ({tick(ratio.low)} to {tick(ratio.high)})"
    return f"{plain(ratio.label)} {tick(ratio.value)}{bounds}"


def _paint(figure: Figure, across: str, ratios: Sequence[Ratio], size: Size) -> None:
    pane = axes(figure, Margins(150 if size.narrow else 250, 34, 28, 52))
    pane.set_xlabel(across, loc="right", labelpad=8)
    _scale(pane, ratios)
    pane.axvline(1.0, color=MUTED, lw=1, zorder=1)
    for height, each in enumerate(ratios):
        colour = RUN_COLOURS[0] if each.shown else MUTED
        if each.low is not None and each.high is not None:
            pane.plot([each.low, each.high], [height, height], "-", color=colour, lw=3, alpha=0.5)
        pane.plot([each.value], [height], "o", ms=8, color=colour, zorder=3)
    labels = [shorten(plain(each.label), 20 if size.narrow else 36) for each in ratios]
    pane.set_yticks(range(len(ratios)), labels)
    for each, words in zip(ratios, pane.get_yticklabels(), strict=True):
        words.set_color(INK if each.shown else MUTED)
    pane.set_ylim(len(ratios) - 0.4, -0.6)
    pane.grid(axis="y", visible=False)
    pane.grid(axis="x", color=GRID)


def _scale(pane: Axes, ratios: Sequence[Ratio]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    found = [x for each in ratios for x in (each.value, each.low, each.high) if x]
    low, high = min(*found, 1 / _LEAST), max(*found, _LEAST)
    room = (high / low) ** 0.06
    pane.set_xscale("log")
    pane.set_xlim(low / room, high * room)
    narrow = high / low < _WIDE_RANGE
    subs = (1.0,) if high / low > 1e3 else (1.0, 2.0, 5.0)
    pane.xaxis.set_major_locator(MaxNLocator(5) if narrow else LogLocator(subs=subs))
    pane.xaxis.set_minor_locator(NullLocator())
    pane.xaxis.set_major_formatter(FuncFormatter(tick))

"""Points over two axes: those that no other beats stand out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ssdlab.charts.canvas import (
    GRID,
    MUTED,
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
from ssdlab.wording import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT: Final = 360


@dataclass(frozen=True)
class Spot:
    """A point: its place, whether no other beats it, and its name for who does not see it."""

    across: float
    up: float
    best: bool
    label: str


def scatter(name: str, named: tuple[str, str], spots: Sequence[Spot], size: Size = WIDE) -> str:
    """The spots over the axes of these names, as SVG; empty without any."""
    kept = [each for each in spots if math.isfinite(each.across) and math.isfinite(each.up)]
    if not kept:
        return ""
    across, up = named
    best = "; ".join(
        f"{plain(each.label)}: {tick(each.across)}, {tick(each.up)}" for each in kept if each.best
    )
    title = f"{up} against {across}; beaten by none: {best}"
    plate = Plate(f"{name}-{size.name}", title, size.width, _HEIGHT)
    return draw(plate, lambda figure: _paint(figure, named, kept))


def _paint(figure: Figure, named: tuple[str, str], spots: Sequence[Spot]) -> None:
    pane = axes(figure, Margins(64, 30, 56, 52))
    name_axes(pane, *named, lift=26)
    groups = [(False, MUTED, 0.5, "others"), (True, RUN_COLOURS[0], 0.95, "beaten by none")]
    for best, colour, strength, words in groups:
        mine = [each for each in spots if each.best == best]
        if mine:
            pane.scatter(
                [each.across for each in mine],
                [each.up for each in mine],
                s=46 if best else 26,
                color=colour,
                alpha=strength,
                lw=0,
                zorder=3 if best else 2,
                label=words,
            )
    pane.grid(axis="both", color=GRID)
    pane.margins(0.06)
    pane.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, handlelength=0.8)

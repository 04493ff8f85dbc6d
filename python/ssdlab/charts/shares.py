"""Bars that show of what parts a whole consists, a bar a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ssdlab.charts.canvas import (
    INK,
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
from ssdlab.wording import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BAR: Final = 46  # pixels from one bar to the next


@dataclass(frozen=True)
class Bar:
    """A moment in words, and the size of each part then, by the part's name."""

    label: str
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Shares:
    """The bars of one figure, from the top down.

    `across` is what they are measured in; `roles` has each part's colour, in the order in which
    parts are laid.
    """

    name: str
    across: str
    roles: Mapping[str, str]
    bars: Sequence[Bar]

    def svg(self, size: Size = WIDE) -> str:
        """The figure; empty where no bar has a part."""
        kept = [bar for bar in self.bars if sum(bar.parts.values()) > 0]
        if not kept:
            return ""
        title = "; ".join(
            f"{bar.label}: " + ", ".join(f"{tick(v)} {k}" for k, v in bar.parts.items() if v)
            for bar in kept
        )
        height = _BAR * len(kept) + (150 if size.narrow else 112)
        plate = Plate(f"{self.name}-{size.name}", plain(title), size.width, height)
        return draw(plate, lambda figure: self._paint(figure, kept, size))

    def _paint(self, figure: Figure, kept: Sequence[Bar], size: Size) -> None:
        pane = axes(figure, Margins(12, 20, 76 if size.narrow else 46, 52))
        name_axes(pane, self.across, "")
        pane.grid(visible=False)
        named: set[str] = set()
        for at, bar in enumerate(kept):
            start = 0.0
            for part, role in self.roles.items():
                length = bar.parts.get(part, 0.0)
                if length <= 0:
                    continue
                label = None if part in named else part
                named.add(part)
                colour = PALETTE[role][0]
                pane.barh(-at, length, 0.42, left=start, color=colour, alpha=0.85, label=label)
                start += length
            pane.annotate(
                plain(bar.label),
                (0, -at),
                xytext=(0, 12),
                textcoords="offset points",
                color=INK,
                va="bottom",
            )
        pane.set_yticks([])
        pane.set_ylim(0.4 - len(kept), 0.85)
        pane.legend(
            loc="lower left",
            bbox_to_anchor=(-0.01, 1.0),
            ncols=2 if size.narrow else 4,
            labelcolor="linecolor",
            handlelength=0.8,
            columnspacing=1.2,
            borderaxespad=0.2,
        )

"""The read-speed map of a file: the speed at each place, and what is slow against the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
from ssdlab.wording import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MIB: Final = 1 << 20


@dataclass(frozen=True)
class Spot:
    """One piece: where it begins in the file and its length in bytes, and its speed in MiB/s."""

    offset: int
    length: int
    mib_per_s: float


@dataclass(frozen=True)
class ReadMap:
    """One file's map; what is below `slow` MiB/s is drawn as aged, `reference` as a line."""

    name: str
    title: str
    spots: Sequence[Spot]
    size_bytes: int
    reference: float
    slow: float

    def svg(self, size: Size = WIDE) -> str:
        """The figure; empty of nothing."""
        if not self.spots:
            return ""
        title = f"Read speed by place in {plain(self.title)}"
        height = 230 if size.narrow else 250
        plate = Plate(f"{self.name}-{size.name}", title, size.width, height)
        return draw(plate, self._paint)

    def _paint(self, figure: Figure) -> None:
        from matplotlib.ticker import FuncFormatter

        pane = axes(figure, Margins(48, 20, 46, 52))
        name_axes(pane, "place in the file, MiB", "read speed, MiB/s")
        for slow, role, label in ((False, "read", "as fast as usual"), (True, "aged", "slow")):
            kept = [spot for spot in self.spots if (spot.mib_per_s < self.slow) is slow]
            if kept:
                pane.bar(
                    [spot.offset / _MIB for spot in kept],
                    [spot.mib_per_s for spot in kept],
                    width=[self._width(spot) for spot in kept],
                    align="edge",
                    color=PALETTE[role][0],
                    label=label,
                    lw=0,
                )
        pane.axhline(self.reference, color=MUTED, lw=1, ls=(0, (4, 3)))
        pane.set_xlim(0, self.size_bytes / _MIB)
        pane.set_ylim(0, 1.15 * max(self.reference, *(spot.mib_per_s for spot in self.spots)))
        pane.xaxis.set_major_formatter(FuncFormatter(tick))
        pane.yaxis.set_major_formatter(FuncFormatter(tick))
        pane.legend(
            loc="lower right",
            bbox_to_anchor=(1.01, 1.0),
            ncols=2,
            labelcolor="linecolor",
            handlelength=0.8,
            borderaxespad=0.2,
        )

    def _width(self, spot: Spot) -> float:
        """In MiB; of sampled pieces wide enough to be seen."""
        return max(spot.length, self.size_bytes / 300) / _MIB

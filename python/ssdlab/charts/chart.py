"""`Chart`: marks over two axes, as an SVG element for each width."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal

from ssdlab.charts.marks import Line, Mark, Named, Point, apart, note
from ssdlab.charts.svg import LIGHT, WIDE, Hint, Size, draw, run_colour
from ssdlab.wording import cut, format_number, number, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

# In pixels:
_CHARACTER: Final = 7.3  # mean width of a character
_ROW: Final = 26  # height of a row
_ROW_LINE: Final = 14  # added if the names of rows have two lines
_LEGEND: Final = 22  # height of a line of the legend
_BOTTOM: Final = 52  # space below the lowest axes
_VALUES_APART: Final = 2  # points with values under the pointer


@dataclass(frozen=True)
class Axis:
    """An axis: its label, which includes the unit, and its scale.

    A logarithmic axis spans at least the factor `least`, so that noise does not look steep. With
    `linear_to` the axis is linear from zero to this value and logarithmic above it. `limits` and
    `ticks` replace the values computed from the data; with `whole` they are whole numbers. `text`
    formats a tick.
    """

    label: str = ""
    log: bool = False
    base: int = 10
    least: float = 2.0
    linear_to: float | None = None
    limits: tuple[float, float] | None = None
    ticks: Sequence[float] | None = None
    whole: bool = False
    text: Callable[[float], str] = format_number

    def fits(self, value: float) -> bool:
        """Whether the axis can show this value: finite, and above zero on a logarithmic axis."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def span(self, values: Sequence[float], *, from_zero: bool) -> tuple[float, float]:
        """The limits for these values, with some space around them."""
        if self.limits is not None:
            return self.limits
        low, high = min(values), max(values)
        if self.linear_to is not None:
            return -self.linear_to * 0.2, high * 1.25
        if self.log:
            pad = 1.2 * max(1.0, self.least / (high / low)) ** 0.5
            return low / pad, high * pad
        if from_zero:
            return min(0.0, low), high * 1.15 or 1.0
        room = (high - low) * 0.03 or 1.0
        return low - room, high + room

    def apply(self, pane: Axes, which: str, values: Sequence[float]) -> None:
        """Set scale, limits and ticks of the axis `which` ("x" or "y") of `pane`."""
        from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

        low, high = self.span(values, from_zero=which == "y")
        set_scale = getattr(pane, f"set_{which}scale")
        if self.linear_to is not None:
            set_scale("symlog", linthresh=self.linear_to, linscale=0.7)
        elif self.log:
            set_scale("log", base=self.base)
        pane.set(**{f"{which}lim": (low, high)})
        axis = pane.xaxis if which == "x" else pane.yaxis
        if self.ticks is not None:
            ticks = [tick for tick in self.ticks if low <= tick <= high]
            if which == "x":
                places = [pane.transData.transform((tick, 1))[0] for tick in ticks]
                ticks = [ticks[at] for at in apart(places, [self.text(tick) for tick in ticks])]
            axis.set_major_locator(FixedLocator(ticks))
        elif self.log:
            room = pane.bbox.width / 45 if which == "x" else pane.bbox.height / 24
            axis.set_major_locator(self._locator(high / low, room))
        elif self.whole:
            axis.set_major_locator(MaxNLocator(6, integer=True))
        axis.set_minor_locator(NullLocator())
        if self.log or self.ticks is not None:
            axis.set_major_formatter(FuncFormatter(lambda value, _: self.text(value)))

    def _locator(self, ratio: float, room: float) -> Locator:
        """Ticks at 1, 2 and 5 of each decade if at most `room` of them are needed, else at 1."""
        from matplotlib.ticker import LogLocator, MaxNLocator

        if self.base == 10 and ratio < 5:
            return MaxNLocator(5)
        has_room = self.base == 10 and 3 * math.log10(ratio) < room
        subs = (1.0, 2.0, 5.0) if has_room else (1.0,)
        return LogLocator(base=self.base, subs=subs, numticks=max(3, int(room)))


@dataclass(frozen=True)
class Row:
    """The name of a row; a muted row is drawn in grey."""

    label: str
    muted: bool = False


@dataclass(frozen=True)
class Chart:
    """Marks over two axes; `name` must be unique on the page.

    `title` is the accessible name; by default it gives the first and last value of each line. With
    `rows` the y axis shows these rows at 0, 1, ... from the top. `height` is in pixels (axes only).
    """

    name: str
    x: Axis
    y: Axis
    marks: Sequence[Mark | Line]
    title: str = ""
    rows: Sequence[Row] = ()
    height: float = 0.0
    grid: Literal["x", "y", "both"] = "y"
    legend_inside: bool = False

    def svg(self, size: Size = WIDE) -> str:
        """The SVG element; "" if no mark has a point."""
        return stacked([self], size)

    @property
    def lines(self) -> list[Line]:
        """The lines with the points that the axes can show, sorted by x, each with a colour."""
        inside = [
            replace(mark, points=self._inside(mark.points), faint=self._inside(mark.faint))
            for mark in self.marks
            if isinstance(mark, Line)
        ]
        kept = enumerate((line for line in inside if line.points), 1)
        return [replace(line, colour=line.colour or run_colour(at)) for at, line in kept]

    def _inside(self, points: Sequence[Point]) -> list[Point]:
        return sorted(point for point in points if self.x.fits(point[0]) and self.y.fits(point[1]))

    @property
    def accessible_name(self) -> str:
        """The title, or the first and last value of each line."""
        ends = (
            f"{line.label}: "
            + ", ".join(f"{number(y)} at {number(x)}" for x, y in (line.points[0], line.points[-1]))
            for line in self.lines
        )
        return plain(self.title or f"{self.y.label} against {self.x.label}: {'; '.join(ends)}")


def stacked(charts: Sequence[Chart], size: Size = WIDE) -> str:
    """Charts above each other that share the x axis of the last one, as one SVG element.

    Name and title are those of the first chart. The result is "" if no mark has a point.
    """
    panes = [_Pane(chart, size) for chart in charts]
    if not any(mark.points for pane in panes for mark in pane.marks):
        return ""
    height = sum(pane.top + pane.height for pane in panes) + _BOTTOM

    def paint(figure: Figure) -> list[Hint]:
        above, values = 0.0, []
        for pane in panes:
            values += pane.paint(figure, above, is_last=pane is panes[-1])
            above += pane.top + pane.height
        return values

    name, title = f"{charts[0].name}-{size.name}", charts[0].accessible_name
    return draw(name, title, (size.width, height), paint)


class _Pane:
    """A chart at one width; lengths in pixels."""

    def __init__(self, chart: Chart, size: Size) -> None:
        self.chart = chart
        lines = chart.lines
        has_details = any(line.detail for line in lines)
        self.named = lines if has_details or len(lines) > 1 else []
        self.gap = 40 if has_details else 20  # between the names of lines
        self.right = (96 if size.narrow else 150) + 24 * has_details if self.named else 44
        self.marks = [mark for mark in chart.marks if isinstance(mark, Mark)]
        self.legend = {cut(plain(m.legend), 32): m.colour for m in self.marks if m.legend}
        self.marks += [line.mark for line in lines]
        widths = [_CHARACTER * len(name) + 28 for name in self.legend] or [1.0]
        fit = len(widths) if sum(widths) < size.width else int(size.width / max(widths))
        self.columns = 1 if chart.legend_inside else max(1, fit)
        legend_lines = 0 if chart.legend_inside else -(-len(self.legend) // self.columns)
        self.top = 12 + 28 * bool(chart.y.label) + _LEGEND * legend_lines
        self.rows = [_in_lines(plain(row.label), 20 if size.narrow else 36) for row in chart.rows]
        self.left = 12.0 if chart.y.ticks == () else 56.0
        if self.rows:
            lines_of_rows = [line for row in self.rows for line in row.split("\n")]
            self.left = 14 + _CHARACTER * max(map(len, lines_of_rows))
        usual = max(size.width * (0.62 if size.narrow else 0.34), self.gap * len(lines) + 18)
        row_height = _ROW + _ROW_LINE * any("\n" in row for row in self.rows)
        self.height = chart.height or row_height * len(self.rows) or usual

    def paint(self, figure: Figure, above: float, *, is_last: bool) -> list[Hint]:
        """Draw the chart with its top `above` pixels below the top of the figure.

        Returns the values to show under the pointer.
        """
        chart = self.chart
        width, height = figure.get_size_inches() * 72
        corner = (self.left / width, 1 - (above + self.top + self.height) / height)
        extent = ((width - self.left - self.right) / width, self.height / height)
        pane = figure.add_axes((*corner, *extent))
        pane.grid(axis=chart.grid)
        points = [point for mark in self.marks for point in mark.points]
        chart.x.apply(pane, "x", [x for x, _ in points])
        chart.y.apply(pane, "y", [y for _, y in points])
        if self.rows:
            pane.set_yticks(range(len(self.rows)), self.rows)
            pane.set_ylim(len(self.rows) - 0.4, -0.6)
            for row, text in zip(chart.rows, pane.get_yticklabels(), strict=True):
                text.set_color(LIGHT["muted" if row.muted else "ink"])
        for mark in self.marks:
            mark.draw(pane)
        pane.tick_params(labelbottom=is_last)
        pane.set_xlabel(chart.x.label if is_last else "", loc="right", labelpad=8)
        # Above the axis and horizontal: rotated text is hard to read.
        note(pane, chart.y.label, (0, 1), (2 - self.left, 14), of="axes fraction")
        self._draw_legend(pane)
        self._name_lines(pane)
        return self._values(pane, height)

    def _values(self, pane: Axes, figure_height: float) -> list[Hint]:
        """The named points of all marks, at least `_VALUES_APART` pixels from the one before."""
        values: list[Hint] = []
        for mark in self.marks:
            last = (-math.inf, -math.inf)
            for named in mark.named:
                x, y = pane.transData.transform(named.point)
                if math.isfinite(x + y) and math.dist((x, y), last) >= _VALUES_APART:
                    values.append(Hint(float(x), figure_height - float(y), self._texts(named)))
                    last = (x, y)
        return values

    def _texts(self, named: Named) -> tuple[str, ...]:
        """The lines of text about a point: its name, and its text or its values."""
        name = (plain(named.name),) if named.name else ()
        if named.text:
            return (*name, plain(named.text))
        axes = ((self.chart.y, named.point[1]), (self.chart.x, named.point[0]))
        texts = (
            f"{axis.label}: {axis.text(v)}" if axis.label else axis.text(v) for axis, v in axes
        )
        return (*name, *map(plain, texts))

    def _draw_legend(self, pane: Axes) -> None:
        """Draw the legend above the axes at the left edge, or in the upper right corner."""
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], ls="", marker="o", ms=8, color=LIGHT[role], label=name)
            for name, role in self.legend.items()
        ]
        above = 1 + (6 + 28 * bool(self.chart.y.label)) / self.height
        is_inside = self.chart.legend_inside
        pane.legend(
            handles=handles,
            loc="upper right" if is_inside else "lower left",
            bbox_to_anchor=(1, 1) if is_inside else (-self.left / pane.bbox.width, above),
            ncols=self.columns,
            labelcolor="linecolor",
            handlelength=0.8,
            columnspacing=1.2,
            borderaxespad=0.2,
        )

    def _name_lines(self, pane: Axes) -> None:
        """Write each line's name at its right end; names that would overlap are moved apart."""
        ends = [pane.transData.transform(line.points[-1]) for line in self.named]
        low, high, right = pane.bbox.y0 + self.gap / 2, pane.bbox.y1 - self.gap / 2, pane.bbox.x1
        style: dict[str, Any]
        places = spread([y for _, y in ends], self.gap, low, high)
        for line, (x, y), place in zip(self.named, ends, places, strict=True):
            if right - x > 20 or abs(place - y) > 8:
                arrow = {"arrowstyle": "-", "color": LIGHT[line.colour], "lw": 1, "ls": ":"}
                style = {"textcoords": "figure pixels", "arrowprops": arrow, "zorder": 1}
                pane.annotate("", line.points[-1], (right + 6, place), **style)
            name = cut(plain(line.label), int(self.right / _CHARACTER))
            at = (right + 10, place)
            style = {"of": "figure pixels", "va": "center"}
            note(pane, name, at, (0, 8 * bool(line.detail)), line.colour, weight="bold", **style)
            note(pane, line.detail, at, (0, -9), **style)


def _in_lines(text: str, width: int) -> str:
    """The text in one or two lines, cut at its end if it is longer."""
    return "\n".join(textwrap.wrap(text, width, max_lines=2, placeholder="…"))


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near `wanted`, at least `gap` apart if they fit between `low` and `high`.

    The mean of two solutions that keep the gap: one only moves positions up, one only down.
    """
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    # With the gaps below each position subtracted, the positions must not decrease.
    free = [wanted[index] - gap * rank for rank, index in enumerate(order)]
    up, down = accumulate(free, max), reversed([*accumulate(reversed(free), min)])
    placed = list(wanted)
    for rank, (index, above, below) in enumerate(zip(order, up, down, strict=True)):
        middle = min(max((above + below) / 2, low), high - gap * (len(wanted) - 1))
        placed[index] = middle + gap * rank
    return placed

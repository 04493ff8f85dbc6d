"""Marks that a `Chart` draws over its axes. Colours are roles of the palette."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ssdlab.charts.svg import LIGHT
from ssdlab.wording import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point: TypeAlias = tuple[float, float]
_DOTS_MAX: Final = 60  # a line with more points has no dots
Kind: TypeAlias = Literal["faint", "large", "hollow"]


@dataclass(frozen=True)
class Named:
    """A point whose value the page shows under the pointer: its name, and a text for its value.

    Without a `text` the values of both axes are shown.
    """

    point: Point
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class Mark:
    """A drawing that extends the axes to all its `points`; `legend` names it, if not empty.

    `named` are the points whose values the page shows under the pointer.
    """

    draw: Callable[[Axes], object]
    colour: str
    points: Sequence[Point] = ()
    legend: str = ""
    named: Sequence[Named] = ()


@dataclass(frozen=True)
class Line:
    """A line with its label at its right end; `faint` are single points, such as repeats.

    Without a `colour` the chart assigns one. `detail` is a second line of the label.
    """

    label: str
    points: Sequence[Point]
    faint: Sequence[Point] = ()
    colour: str = ""
    detail: str = ""
    dashed: bool = False

    @property
    def mark(self) -> Mark:
        """The line as a mark; each point has a dot unless there are too many."""
        form = ("--" if self.dashed else "-") + "o" * (len(self.points) <= _DOTS_MAX)
        style = {"color": LIGHT[self.colour], "lw": 2.2, "ms": 6, "mec": LIGHT["paper"]}

        def draw(pane: Axes) -> None:
            dots(self.faint, self.colour).draw(pane)
            pane.plot(*_columns(self.points), form, zorder=3, **style)  # type: ignore[arg-type]

        name = f"{self.label}, {self.detail}" if self.detail else self.label
        points = [*self.points, *self.faint]
        return Mark(draw, self.colour, points, named=[Named(point, name) for point in points])


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def dots(
    points: Sequence[Point],
    colour: str,
    legend: str = "",
    kind: Kind = "faint",
    named: Sequence[Named] | None = None,
) -> Mark:
    """Dots of a kind: faint, large, or hollow for values that must not be compared.

    `named` replaces what the page shows under the pointer: the legend and the values.
    """
    face, edge = ("paper", colour) if kind == "hollow" else (colour, "paper")
    style: dict[str, Any] = {"color": LIGHT[face], "edgecolor": LIGHT[edge]}
    style |= (
        {"s": 17, "lw": 0, "alpha": 0.4} if kind == "faint" else {"s": 72, "lw": 1, "zorder": 3}
    )
    if named is None:
        named = [Named(point, legend) for point in points]
    return Mark(
        lambda pane: pane.scatter(*_columns(points), **style), colour, points, legend, named
    )


def stroke(points: Sequence[Point], colour: str, legend: str = "", thickness: int = 3) -> Mark:
    """A straight line, such as an interval, or a bar if it is thick. `thickness` is in pixels."""
    cap, alpha = ("round", 0.45) if thickness < 8 else ("butt", 0.85)
    style: dict[str, Any] = {"color": LIGHT[colour], "alpha": alpha, "solid_capstyle": cap}
    style["lw"] = thickness
    return Mark(lambda pane: pane.plot(*_columns(points), **style), colour, points, legend)


def bars(
    spans: Sequence[tuple[float, float]], heights: Sequence[float], colour: str, legend: str = ""
) -> Mark:
    """Vertical bars from zero; `spans` are their left and right edges."""
    left, widths = [start for start, _ in spans], [end - start for start, end in spans]
    style: dict[str, Any] = {"align": "edge", "color": LIGHT[colour], "alpha": 0.85, "lw": 0}
    corners = [(x, y) for span, y in zip(spans, heights, strict=True) for x in span]
    named = [
        Named(((start + end) / 2, y), legend)
        for (start, end), y in zip(spans, heights, strict=True)
        if y
    ]
    return Mark(
        lambda pane: pane.bar(left, heights, widths, **style), colour, corners, legend, named
    )


def stairs(points: Sequence[Point], colour: str, legend: str = "") -> Mark:
    """A step function: each value is constant up to the next point."""
    style: dict[str, Any] = {"where": "post", "color": LIGHT[colour], "lw": 1.8}
    named = [Named(point, legend) for point in points]
    return Mark(lambda pane: pane.step(*_columns(points), **style), colour, points, legend, named)


def area(points: Sequence[Point], colour: str, level: float | None = None) -> Mark:
    """Light shading between `level` and the points; without a level, over the full height."""
    across, up = _columns(points)
    style: dict[str, Any] = {"color": LIGHT[colour], "alpha": 0.12, "lw": 0}

    def draw(pane: Axes) -> None:
        if level is None:
            pane.axvspan(across[0], across[-1], **style)
        else:
            pane.fill_between(across, level, up, **style)

    return Mark(draw, colour, points)


def rule(
    x: float | None = None, y: float | None = None, label: str = "", dash: Sequence[float] = (4, 4)
) -> Mark:
    """A line across the axes at `x` or `y`, with its label; the axes do not extend to show it."""
    style: dict[str, Any] = {"color": LIGHT["muted"], "lw": 1, "ls": (0, tuple(dash)), "zorder": 1}

    def draw(pane: Axes) -> None:
        if x is not None:
            pane.axvline(x, **style)
            note(pane, label, (x, 1), (5, -6), of=("data", "axes fraction"), va="top")
        if y is not None:
            pane.axhline(y, **style)
            note(pane, label, (1, y), (6, 0), of=("axes fraction", "data"), va="center")

    return Mark(draw, "muted")


def text_above(point: Point, text: str) -> Mark:
    """Text that starts above a point."""
    return Mark(lambda pane: note(pane, text, point, (0, 14), "ink"), "ink", [point])


def values(
    points: Sequence[Point], texts: Sequence[str], tops: Sequence[float], colour: str
) -> Mark:
    """Each point's value as text above it, or below it if `tops` (its highest repeats) are higher.

    A text that would touch the next one is left out; if the line rises through it, it moves left.
    """

    def draw(pane: Axes) -> None:
        places = pane.transData.transform(points)
        highest = pane.transData.transform([(0, top) for top in tops])[:, 1]
        for at in apart(list(places[:, 0]), texts):
            below = highest[at] - places[at, 1] > 9
            climbs = at + 1 < len(places) and places[at + 1, 1] - places[at, 1] > 24
            shift = (-10 if climbs and not below else 0, -21 if below else 10)
            note(pane, texts[at], points[at], shift, colour, weight="bold", ha="center")

    return Mark(draw, colour, points)


def note(
    pane: Axes, text: str, at: Point, shift: Point, colour: str = "muted", **style: Any
) -> None:
    """Writes text `shift` pixels from a point, in the coordinates `of` (by default the data's)."""
    coordinates = style.pop("of", "data")
    style["textcoords"] = "offset points"
    pane.annotate(plain(text), at, shift, coordinates, color=LIGHT[colour], **style)


def apart(places: Sequence[float], texts: Sequence[str]) -> list[int]:
    """Indices of texts, centred at `places` in pixels, that do not touch; includes the last."""
    kept = [len(places) - 1] if places else []
    for at in reversed(range(len(places) - 1)):
        if places[kept[-1]] - places[at] >= 4 * (len(texts[at]) + len(texts[kept[-1]])) + 8:
            kept.append(at)
    return kept[::-1]

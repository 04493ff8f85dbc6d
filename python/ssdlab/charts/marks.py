"""Marks: what a `Chart` draws over its axes. Colours are roles of the palette."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ssdlab.charts.svg import LIGHT
from ssdlab.wording import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point: TypeAlias = tuple[float, float]
_DOTTED: Final = 60  # a line with more points than this has no dots
Kind: TypeAlias = Literal["faint", "large", "hollow"]


@dataclass(frozen=True)
class Mark:
    """The axes are scaled so that all `points` are visible; `legend` is the name there, or ""."""

    draw: Callable[[Axes], object]
    colour: str
    points: Sequence[Point] = ()
    legend: str = ""


@dataclass(frozen=True)
class Line:
    """A line with its name at its right end; `faint` are single points, such as repeats.

    Without a `colour` the chart gives it one by its position. `detail` is a second line of text.
    """

    label: str
    points: Sequence[Point]
    faint: Sequence[Point] = ()
    colour: str = ""
    detail: str = ""
    dashed: bool = False

    @property
    def mark(self) -> Mark:
        """Each point is a dot, unless there are too many to distinguish."""
        style = ("--" if self.dashed else "-") + "o" * (len(self.points) <= _DOTTED)
        looks = {"color": LIGHT[self.colour], "lw": 2.2, "ms": 6, "mec": LIGHT["paper"]}

        def draw(pane: Axes) -> None:
            dots(self.faint, self.colour).draw(pane)
            pane.plot(*_columns(self.points), style, zorder=3, **looks)  # type: ignore[arg-type]

        return Mark(draw, self.colour, [*self.points, *self.faint])


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def dots(points: Sequence[Point], colour: str, legend: str = "", kind: Kind = "faint") -> Mark:
    """Faint dots, or large ones; a hollow dot is a value that must not be compared."""
    face, edge = ("paper", colour) if kind == "hollow" else (colour, "paper")
    looks: dict[str, Any] = {"color": LIGHT[face], "edgecolor": LIGHT[edge]}
    looks |= (
        {"s": 17, "lw": 0, "alpha": 0.4} if kind == "faint" else {"s": 72, "lw": 1, "zorder": 3}
    )
    return Mark(lambda pane: pane.scatter(*_columns(points), **looks), colour, points, legend)


def stroke(points: Sequence[Point], colour: str, legend: str = "", thickness: int = 3) -> Mark:
    """A straight stroke, such as an interval; a thick one is a bar. `thickness` in pixels."""
    cap, alpha = ("round", 0.45) if thickness < 8 else ("butt", 0.85)
    looks: dict[str, Any] = {"color": LIGHT[colour], "alpha": alpha, "solid_capstyle": cap}
    looks["lw"] = thickness
    return Mark(lambda pane: pane.plot(*_columns(points), **looks), colour, points, legend)


def bars(
    spans: Sequence[tuple[float, float]], heights: Sequence[float], colour: str, legend: str = ""
) -> Mark:
    """Vertical bars from zero, each from left to right in its span."""
    left, widths = [start for start, _ in spans], [end - start for start, end in spans]
    looks: dict[str, Any] = {"align": "edge", "color": LIGHT[colour], "alpha": 0.85, "lw": 0}
    corners = [(x, y) for span, y in zip(spans, heights, strict=True) for x in span]
    return Mark(lambda pane: pane.bar(left, heights, widths, **looks), colour, corners, legend)


def stairs(points: Sequence[Point], colour: str, legend: str = "") -> Mark:
    """A value that holds from each point to the next."""
    looks: dict[str, Any] = {"where": "post", "color": LIGHT[colour], "lw": 1.8}
    return Mark(lambda pane: pane.step(*_columns(points), **looks), colour, points, legend)


def area(points: Sequence[Point], colour: str, level: float | None = None) -> Mark:
    """A tint from a level to the points; without a level, of the full height."""
    across, up = _columns(points)
    looks: dict[str, Any] = {"color": LIGHT[colour], "alpha": 0.12, "lw": 0}

    def draw(pane: Axes) -> None:
        if level is None:
            pane.axvspan(across[0], across[-1], **looks)
        else:
            pane.fill_between(across, level, up, **looks)

    return Mark(draw, colour, points)


def rule(
    x: float | None = None, y: float | None = None, label: str = "", dash: Sequence[float] = (4, 4)
) -> Mark:
    """A line across the axes at `x` or `y`, with its name; the axes do not extend for it."""
    looks: dict[str, Any] = {"color": LIGHT["muted"], "lw": 1, "ls": (0, tuple(dash)), "zorder": 1}

    def draw(pane: Axes) -> None:
        if x is not None:
            pane.axvline(x, **looks)
            note(pane, label, (x, 1), (5, -6), of=("data", "axes fraction"), va="top")
        if y is not None:
            pane.axhline(y, **looks)
            note(pane, label, (1, y), (6, 0), of=("axes fraction", "data"), va="center")

    return Mark(draw, "muted")


def text_above(point: Point, text: str) -> Mark:
    """Text that starts above a point."""
    return Mark(lambda pane: note(pane, text, point, (0, 14), "ink"), "ink", [point])


def values(
    points: Sequence[Point], texts: Sequence[str], tops: Sequence[float], colour: str
) -> Mark:
    """The value of each point, above it, or below it where `tops`, such as repeats, are higher.

    Left out where it would touch the next one; moved to the left where the line rises through it.
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
    pane: Axes, text: str, at: Point, shift: Point, colour: str = "muted", **looks: Any
) -> None:
    """Writes text `shift` pixels from a point in the coordinates `of`, by default the data's."""
    coordinates = looks.pop("of", "data")
    looks["textcoords"] = "offset points"
    pane.annotate(plain(text), at, shift, coordinates, color=LIGHT[colour], **looks)


def apart(places: Sequence[float], texts: Sequence[str]) -> list[int]:
    """Indices of texts that do not touch, centred at these pixels; the last is always kept."""
    kept = [len(places) - 1] if places else []
    for at in reversed(range(len(places) - 1)):
        if places[kept[-1]] - places[at] >= 4 * (len(texts[at]) + len(texts[kept[-1]])) + 8:
            kept.append(at)
    return kept[::-1]

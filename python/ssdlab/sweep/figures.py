"""The figures of a sweep: a panel for each load, a colour for each setting, lines along one key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ssdlab.charts import Axis, Chart, Line, Mark, Named, Size, dots, run_colour, stacked
from ssdlab.sweep.analysis import LOAD, Point, Summary
from ssdlab.view import Picture, draw_figure
from ssdlab.wording import format_number, plain

DRAWN_LEAST: Final = 0.05
"""A result that varies less than this under each load has no figure."""
PANELS_MAX: Final = 6
SERIES_MAX: Final = 8
SPARE: Final = "ftl.spare"
_AXES: Final = {
    "waf": "write amplification",
    "write_iops": "random writes/s",
    "read_mib_per_s": "sequential reads, MiB/s",
    "latency_us_p99": "p99 of single reads, us",
    "cost": "cost, physical / usable flash",
}
_ALONG: Final = ("waf", "write_iops", "read_mib_per_s", "latency_us_p99")
"""The results that are drawn along the parameter, in this order."""
_PAIRS: Final = (("cost", "read_mib_per_s"), ("waf", "latency_us_p99"), ("cost", "waf"))


@dataclass(frozen=True)
class _Layout:
    """How the points of a sweep are arranged.

    `along` is the numeric parameter that lines follow, or "". `panels` has the points
    by load, `colours` the colour of each combination of the other parameters.
    """

    along: str
    panels: dict[str, list[Point]]
    colours: dict[str, str]

    def series(self, points: Sequence[Point]) -> dict[str, list[Point]]:
        """The points by the combination of the parameters other than load and `along`."""
        found: dict[str, list[Point]] = {}
        for point in points:
            found.setdefault(_setting(point, self.along), []).append(point)
        if not self.along:
            return found
        return {
            name: sorted(points, key=lambda point: point.values[self.along])
            for name, points in found.items()
        }


def figures(summary: Summary) -> list[Picture]:
    """Results along a parameter, and one result against another; only those that vary.

    What differs between loads only, and not between settings, is in the table of effects.
    """
    layout = _arrange(summary)
    varying = {result for result in _AXES if _varies(layout, result)}
    pictures = []
    if layout.along:
        for result in _ALONG:
            if result in varying:
                pictures += _along(layout, result)
    is_cost_drawn = layout.along == SPARE
    for across, up in _PAIRS:
        if {across, up} <= varying and not (is_cost_drawn and (across, up) == ("cost", "waf")):
            pictures += _against(layout, across, up)
    return pictures


def _varies(layout: _Layout, result: str) -> bool:
    panels = ([p.means[result] for p in ps if result in p.means] for ps in layout.panels.values())
    return any(
        values and max(values) - min(values) > DRAWN_LEAST * max(values) for values in panels
    )


def _arrange(summary: Summary) -> _Layout:
    """One panel if there are too many loads for panels, one colour if too many settings."""
    panels: dict[str, list[Point]] = {}
    for point in summary.points:
        panels.setdefault(_describe(point.load), []).append(point)
    if len(panels) > PANELS_MAX:
        panels = {"": list(summary.points)}
    along = _parameter(summary) if len(panels) > 1 or not _loads(summary) else ""
    settings = list(dict.fromkeys(_setting(point, along) for point in summary.points))
    if len(settings) > SERIES_MAX:
        return _Layout("", panels, {})
    colours = {name: run_colour(at) for at, name in enumerate(settings, 1)}
    return _Layout(along, panels, colours)


def _loads(summary: Summary) -> list[str]:
    return [key for key in summary.keys if key.startswith(LOAD)]


def _parameter(summary: Summary) -> str:
    """The spare, or else the first number of the drive that has several values; "" if none has."""
    numeric = [key for key, is_numeric in summary.keys.items() if is_numeric]
    candidates = [key for key in (SPARE, *numeric) if key in numeric and not key.startswith(LOAD)]
    for key in candidates:
        if len({point.values[key] for point in summary.points}) > 1:
            return key
    return ""


def _setting(point: Point, along: str) -> str:
    others = {key: v for key, v in point.values.items() if key != along and key not in point.load}
    return _describe(others)


def _describe(values: dict[str, Any]) -> str:
    """Parameters as text: "skew 0.9, greedy"."""
    return ", ".join(
        f"{_name(key)} {format_number(value)}" if isinstance(value, int | float) else plain(value)
        for key, value in values.items()
    )


def _name(key: str) -> str:
    return plain(key.rpartition(".")[2].replace("_", " "))


def _along(layout: _Layout, result: str) -> list[Picture]:
    x = Axis(_name(layout.along), limits=_limits(layout, lambda p: p.values[layout.along]))

    def chart(at: int, load: str, points: Sequence[Point]) -> Chart:
        lines = [
            Line(
                name,
                [(p.values[layout.along], p.means[result]) for p in members if result in p.means],
                colour=layout.colours[name],
            )
            for name, members in layout.series(points).items()
        ]
        y = Axis(_panel(load, result))
        return Chart(f"sweep-along-{result}-{at}", x, y, lines, height=_height(lines))

    return _draw(
        layout,
        f"{_sentence(_AXES[result])} by {_name(layout.along)}",
        "A panel for each load, a line for each setting. Each dot is a point of the sweep, the "
        "mean of its repeats. Mind the scales: each panel has its own.",
        chart,
    )


def _against(layout: _Layout, across: str, up: str) -> list[Picture]:
    x = Axis(_AXES[across], limits=_limits(layout, lambda p: p.means.get(across)))

    def chart(at: int, load: str, points: Sequence[Point]) -> Chart:
        measured = [point for point in points if {across, up} <= point.means.keys()]
        marks: list[Mark | Line] = []
        for name, members in layout.series(measured).items():
            places = [(p.means[across], p.means[up]) for p in members]
            colour = layout.colours.get(name, "muted")
            if layout.along:
                marks.append(Line(name, places, colour=colour))
            else:
                marks.append(_dots(members, across, up, colour, name * bool(layout.colours)))
        best = [point for point in measured if point.best]
        marks.append(_dots(best, across, up, "aged", "Pareto-optimal" * (not at), large=True))
        y = Axis(_panel(load, up))
        lines = [mark for mark in marks if isinstance(mark, Line)]
        name = f"sweep-{across}-{up}-{at}"
        return Chart(name, x, y, marks, height=_height(lines), grid="both")

    return _draw(
        layout,
        f"{_sentence(_AXES[up])} against {_AXES[across]}",
        "A panel for each load, a colour for each setting. Each dot is a point of the sweep, the "
        "mean of its repeats; large dots are Pareto-optimal under their load.",
        chart,
    )


def _dots(
    points: Sequence[Point], across: str, up: str, colour: str, legend: str, *, large: bool = False
) -> Mark:
    places = [(p.means[across], p.means[up]) for p in points]
    texts = [
        f"{_AXES[up]}: {format_number(y)}\n{_AXES[across]}: {format_number(x)}" for x, y in places
    ]
    named = [
        Named(place, _describe(point.values), text)
        for place, point, text in zip(places, points, texts, strict=True)
    ]
    return dots(places, colour, legend, "large" if large else "faint", named)


def _draw(
    layout: _Layout, title: str, caption: str, chart: Callable[[int, str, Sequence[Point]], Chart]
) -> list[Picture]:
    panels = [chart(at, load, points) for at, (load, points) in enumerate(layout.panels.items())]

    def draw(size: Size) -> str:
        return stacked(panels, size)

    return draw_figure(title, caption, draw)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _panel(load: str, result: str) -> str:
    return f"{load}: {_AXES[result]}" if load else _AXES[result]


def _height(lines: Sequence[Line]) -> float:
    return max(132.0, 20.0 * len(lines) + 18)


def _limits(layout: _Layout, value_of: Callable[[Point], Any]) -> tuple[float, float]:
    """The same limits for all panels, which share the axis below the last one."""
    values = [value_of(point) for points in layout.panels.values() for point in points]
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    room = 0.05 * (high - low) or 0.05 * high or 1.0
    return low - room, high + room

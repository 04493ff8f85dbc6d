"""The curves of ageing: how fast a file reads after more and more of it was overwritten."""

from __future__ import annotations

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
from ssdlab.experiments.aging.readings import Reading, file_mib, readings
from ssdlab.records import Run
from ssdlab.target import parse_profile
from ssdlab.wording import column, given, number, plain, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL_GAP: Final = 40  # pixels from one line's label to the next
_LEAST_RANGE: Final = 4.0  # the speed axis spans this factor at least: noise must not look steep


@dataclass(frozen=True)
class _Curve:
    """One run's reads in the units of the combined figure."""

    label: str
    tail: str  # what stands under the label
    colour: str
    line: str
    shares: list[float]
    speeds: list[float]  # MiB/s, of the best read
    repeats: list[tuple[float, float]]  # share, MiB/s


def read_time_curve(runs: Sequence[Run], size: Size = WIDE, first: int = 1) -> str:
    """Read speed against the share of the file that was overwritten, a line a run, as SVG.

    Both axes are logarithmic (the lower one with a zero), so the same slowdown has the same
    slope for a small slow drive and a large fast one. `first` is the number of the first run.
    Empty where no run has a read.
    """
    curves = [curve for at, run in enumerate(runs, first) if (curve := _curve(at, run, size))]
    if not curves:
        return ""
    height = max(size.width * (0.5 if not size.narrow else 0.95), _LABEL_GAP * len(curves) + 110)
    title = "Read speed of the file after random writes: " + "; ".join(
        f"{curve.label}, {curve.tail}" for curve in curves
    )
    plate = Plate(f"curve-{first}-{size.name}", title, size.width, height)
    return draw(plate, lambda figure: _paint_together(figure, curves, size))


def read_time(run: Run, at: int = 1, size: Size = WIDE) -> str:
    """The read time of one run's file against the MiB written over it, as SVG; may be empty."""
    rows = readings(run)
    if not rows:
        return ""
    plate = Plate(
        f"read-time-{at}-{size.name}",
        "Read time of the file: "
        + ", ".join(f"{number(r.read_s)} s after {given(r.written_mib)} MiB" for r in rows),
        size.width,
        size.width * (0.42 if not size.narrow else 0.72),
    )
    return draw(plate, lambda figure: _paint_alone(figure, rows, run_colour(at)))


def run_colour(at: int) -> str:
    """The colour of the run with this number (from 1) in all figures of a report."""
    return RUN_COLOURS[(at - 1) % len(RUN_COLOURS)]


def _curve(at: int, run: Run, size: Size) -> _Curve | None:
    mib, rows = file_mib(run), readings(run)
    if mib is None or not rows:
        return None
    name = shorten(plain(parse_profile(run.manifest.target)), 13 if size.narrow else 18)
    speeds = [mib / row.read_s for row in rows]
    span = " → ".join(dict.fromkeys(_three_digits(speed) for speed in (speeds[0], speeds[-1])))
    return _Curve(
        label=f"{at}  {name}",
        tail=("twin, " * run.manifest.virtual) + span + (" MiB/s" * (not size.narrow)),
        colour=run_colour(at),
        line="-o" if at <= len(RUN_COLOURS) else "--o",
        shares=[row.written_mib / mib for row in rows],
        speeds=speeds,
        repeats=[(row.written_mib / mib, mib / read) for row in rows for read in row.repeats_s],
    )


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _paint_together(figure: Figure, curves: list[_Curve], size: Size) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    right = 124 if size.narrow else 170
    pane = axes(figure, Margins(48, right, 40, 52))
    name_axes(pane, "written over the file, share of its size", "read speed, MiB/s")
    _share_axis(pane, [share for curve in curves for share in curve.shares])
    pane.set_yscale("log")
    seen = [speed for curve in curves for _, speed in curve.repeats]
    seen += [speed for curve in curves for speed in curve.speeds]
    pane.set_ylim(*_log_range(min(seen), max(seen)))
    pane.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    pane.yaxis.set_minor_locator(NullLocator())
    pane.yaxis.set_major_formatter(FuncFormatter(tick))
    for curve in curves:
        across, up = [share for share, _ in curve.repeats], [speed for _, speed in curve.repeats]
        pane.scatter(across, up, s=14, color=curve.colour, alpha=0.35, lw=0)
        pane.plot(
            curve.shares,
            curve.speeds,
            curve.line,
            color=curve.colour,
            lw=2.2,
            ms=6.5,
            mec=PAPER,
            zorder=3,
        )
    _label_lines(pane, curves)


def _share_axis(pane: Axes, shares: list[float]) -> None:
    """Logarithmic with a zero: the smallest amount already costs much."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    above = [share for share in shares if share > 0] or [1.0]
    linear = next((step for step in (1e-1, 1e-2, 1e-3) if step <= min(above)), 1e-4)
    pane.set_xscale("symlog", linthresh=linear, linscale=0.7)
    pane.set_xlim(-linear * 0.15, max(above) * 1.2)
    ticks = [0.0, *(linear * 10**power for power in range(8))]
    pane.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if tick <= max(above) * 1.2]))
    pane.xaxis.set_minor_locator(NullLocator())
    pane.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _percent(value)))


def _percent(share: float) -> str:
    return "0" if share == 0 else f"{tick(share * 100)} %"


def _log_range(low: float, high: float) -> tuple[float, float]:
    """Limits with some air, at least `_LEAST_RANGE` apart."""
    stretch = max(1.0, _LEAST_RANGE / (high / low)) ** 0.5
    return low / stretch / 1.2, high * stretch * 1.2


def _label_lines(pane: Axes, curves: list[_Curve]) -> None:
    """Each line's name and speeds at its right end, moved apart where they would overlap."""
    points = pane.transData.transform([(0.0, curve.speeds[-1]) for curve in curves])
    wanted = [float(point[1]) for point in points]
    box = pane.bbox
    for curve, middle, placed in zip(
        curves, wanted, spread(wanted, _LABEL_GAP, box.y0 + 18, box.y1 - 18), strict=True
    ):
        end = (curve.shares[-1], curve.speeds[-1])
        start_x = float(pane.transData.transform(end)[0])
        if box.x1 - start_x > 12 or abs(placed - middle) > 8:
            pane.annotate(
                "",
                end,
                xytext=(box.x1 + 6, placed),
                textcoords="figure pixels",
                zorder=1,
                arrowprops={"arrowstyle": "-", "color": curve.colour, "lw": 1, "ls": ":"},
            )
        for text, shift, colour, weight in (
            (curve.label, 8, curve.colour, "bold"),
            (curve.tail, -9, MUTED, "normal"),
        ):
            place = (box.x1 + 10, placed + shift)
            pane.annotate(
                text, place, xycoords="figure pixels", color=colour, weight=weight, va="center"
            )


def spread(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near `wanted`, `gap` apart where they fit between `low` and `high`.

    The middle between pushing all up from below and all down from above: both keep the gaps.
    """
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    rising = [wanted[index] for index in order]
    up = _pushed_up(rising, gap, low, high)
    down = _pushed_up([-place for place in reversed(rising)], gap, -high, -low)
    placed = list(wanted)
    for index, above, below in zip(order, up, reversed(down), strict=True):
        placed[index] = (above - below) / 2
    return placed


def _pushed_up(rising: list[float], gap: float, low: float, high: float) -> list[float]:
    placed, floor = [], low
    for rank, place in enumerate(rising, 1):
        room_above = high - gap * (len(rising) - rank)
        placed.append(min(max(place, floor), room_above))
        floor = placed[-1] + gap
    return placed


def _paint_alone(figure: Figure, rows: list[Reading], colour: str) -> None:
    from matplotlib.ticker import NullLocator

    pane = axes(figure, Margins(48, 44, 40, 52))
    name_axes(pane, "MiB written over the file, in total", "read time, s")
    written, best = [row.written_mib for row in rows], [row.read_s for row in rows]
    above = [amount for amount in written if amount > 0] or [1.0]
    pane.set_xscale("symlog", linthresh=min(above), linscale=0.7)
    pane.set_xlim(-min(above) * 0.22, max(above) * 1.25)
    slowest = max(second for row in rows for second in (*row.repeats_s, row.read_s))
    pane.set_ylim(0, slowest * 1.2)
    pane.plot([-min(above), max(above) * 9], [best[0]] * 2, color=MUTED, lw=1, ls=(0, (4, 4)))
    pane.annotate(
        "fresh",
        (1, best[0]),
        xytext=(6, 0),
        textcoords="offset points",
        xycoords=("axes fraction", "data"),
        color=MUTED,
        va="center",
    )
    pane.fill_between(written, best[0], best, color=colour, alpha=0.1, lw=0)
    for row in rows:
        across = [row.written_mib] * len(row.repeats_s)
        pane.scatter(across, row.repeats_s, s=20, color=colour, alpha=0.4, lw=0)
    pane.plot(written, best, "-o", color=colour, lw=2.2, ms=7, mec=PAPER, zorder=3)
    kept = _apart(pane, written, 46)
    pane.xaxis.set_minor_locator(NullLocator())
    pane.xaxis.set_ticks([written[at] for at in kept], [given(written[at]) for at in kept])
    _label_points(pane, rows, kept, colour)


def _label_points(pane: Axes, rows: list[Reading], kept: list[int], colour: str) -> None:
    """The best time at its point, on the side where neither the line nor a repeat runs."""
    values = column(row.read_s for row in rows)
    heights = [float(pane.transData.transform((0.0, row.read_s))[1]) for row in rows]
    for at in kept:
        worst = float(pane.transData.transform((0.0, max(rows[at].repeats_s, default=0)))[1])
        below = worst - heights[at] > 9
        climbs = at + 1 < len(rows) and heights[at + 1] - heights[at] > 24
        pane.annotate(
            values[at],
            (rows[at].written_mib, rows[at].read_s),
            xytext=(-10 if climbs and not below else 0, -21 if below else 10),
            textcoords="offset points",
            color=colour,
            weight="bold",
            ha="center",
        )


def _apart(pane: Axes, across: list[float], gap: float) -> list[int]:
    """Which of the values can be labelled without touching the label before; the last always."""
    places = [float(point[0]) for point in pane.transData.transform([(x, 1.0) for x in across])]
    kept = [len(places) - 1]
    for index in reversed(range(len(places) - 1)):
        if places[kept[-1]] - places[index] >= gap:
            kept.append(index)
    return kept[::-1]

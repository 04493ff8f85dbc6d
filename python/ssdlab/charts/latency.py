"""How long single requests took, as shares of all requests: fresh against aged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ssdlab.charts.canvas import PALETTE, WIDE, Margins, Plate, Size, axes, draw, name_axes, tick
from ssdlab.records import Run
from ssdlab.units import format_duration
from ssdlab.wording import given, positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BARS_PER_DECADE: Final = 40
_LEAST_DECADES: Final = 0.7  # the axis spans this much at least: equal requests stay one bar


@dataclass(frozen=True)
class _Latencies:
    """How often each latency occurred in the steps of one stage."""

    label: str
    colour: str
    counts: dict[int, int]  # by nanoseconds

    @property
    def requests(self) -> int:
        return sum(self.counts.values())


def latency_histogram(run: Run, at: int = 1, size: Size = WIDE) -> str:
    """Latencies of the sequential reads, fresh over aged, as SVG; empty where none were kept.

    Both halves share the time axis. Bars have equal widths on it; their height is a share.
    """
    groups = _first_and_last(run, "read")
    if not groups:
        return ""
    pane_height = 104
    plate = Plate(
        f"latency-read-{at}-{size.name}",
        "Share of the read requests by latency: " + ", ".join(group.label for group in groups),
        size.width,
        pane_height * len(groups) + 92,
    )
    return draw(plate, lambda figure: _paint_bars(figure, groups, pane_height))


def overwrite_latency(run: Run, at: int = 1, size: Size = WIDE) -> str:
    """Share of the random writes that took longer than a time, as SVG.

    Empty where no latencies were kept or all are the same: a line straight down shows nothing.
    """
    groups = _first_and_last(run, "overwrite")
    if len({latency for group in groups for latency in group.counts}) < 2:
        return ""
    plate = Plate(
        f"latency-overwrite-{at}-{size.name}",
        "Share of the write requests that took longer than a time: "
        + ", ".join(group.label for group in groups),
        size.width,
        size.width * (0.42 if not size.narrow else 0.75),
    )
    return draw(plate, lambda figure: _paint_tail(figure, groups))


def _first_and_last(run: Run, phase: str) -> list[_Latencies]:
    """The requests of the first and of the last stage in which this phase was measured."""
    stage_of = {
        row["step"]: row["stage"]
        for row in run.tables["steps"].select(["step", "phase", "stage"]).to_pylist()
        if row["phase"] == phase
    }
    counts: dict[int, dict[int, int]] = {}
    columns = run.tables["latency"].to_pydict()
    for step, latency, count in zip(*(columns[name] for name in columns), strict=True):
        if step in stage_of and count and latency:
            stage = counts.setdefault(stage_of[step], {})
            stage[latency] = stage.get(latency, 0) + count
    return [
        _Latencies(
            _stage_label(run, phase, stage),
            PALETTE["fresh" if stage == min(counts) else "aged"][0],
            counts[stage],
        )
        for stage in (sorted({min(counts), max(counts)}) if counts else ())
    ]


def _stage_label(run: Run, phase: str, stage: int) -> str:
    amounts = [_amount(value) for value in run.result.parameters.get("amounts_mib", [])]
    if stage == 0:
        return "fresh"
    if phase == "overwrite":
        return f"amount {stage}" + (f", {amounts[stage - 1]} MiB" if stage <= len(amounts) else "")
    written = [row.get("written_mib") for row in run.result.measures]
    known = positive(written[stage]) if stage < len(written) else None
    return f"after {given(known)} MiB" if known else f"after amount {stage}"


def _amount(value: Any) -> str:
    return given(positive(value) or 0.0)


def _time_axis(pane: Axes, groups: list[_Latencies]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = _range(groups)
    pane.set_xscale("log")
    pane.set_xlim(low, high)
    decades = high / low
    pane.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 300 else (1,)))
    pane.xaxis.set_minor_locator(NullLocator())
    pane.xaxis.set_major_formatter(
        FuncFormatter(lambda nanoseconds, _: format_duration(nanoseconds / 1e9))
    )


def _range(groups: list[_Latencies]) -> tuple[float, float]:
    seen = [latency for group in groups for latency in group.counts]
    low, high = min(seen) / 1.1, max(seen) * 1.1
    stretch = max(1.0, 10**_LEAST_DECADES / (high / low)) ** 0.5
    return low / stretch, high * stretch


def _paint_bars(figure: Figure, groups: list[_Latencies], pane_height: float) -> None:
    from matplotlib.ticker import MaxNLocator

    low, high = _range(groups)
    bars = math.ceil(math.log10(high / low) * _BARS_PER_DECADE)
    edges = [low * (high / low) ** (at / bars) for at in range(bars + 1)]
    for at, group in enumerate(groups):
        top = 40 + at * pane_height
        bottom = 52 + (len(groups) - 1 - at) * pane_height
        pane = axes(figure, Margins(48, 20, top + 8 * (at > 0), bottom))
        _time_axis(pane, groups)
        latencies = list(group.counts)
        weights = [100 * group.counts[latency] / group.requests for latency in latencies]
        pane.hist(latencies, edges, weights=weights, color=group.colour, alpha=0.85, lw=0)
        peak = pane.dataLim.y1
        pane.set_ylim(0, peak * 1.45)
        marks = MaxNLocator(3, steps=[1, 2, 5, 10]).tick_values(0, peak)
        pane.set_yticks([mark for mark in marks if mark <= peak * 1.001])
        pane.text(
            0.995,
            0.94,
            group.label,
            color=group.colour,
            weight="bold",
            ha="right",
            va="top",
            transform=pane.transAxes,
        )
        if at < len(groups) - 1:
            pane.tick_params(labelbottom=False)
        name_axes(
            pane,
            "latency of a read request" if at == len(groups) - 1 else "",
            "share of the requests, %" if at == 0 else "",
        )


def _paint_tail(figure: Figure, groups: list[_Latencies]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    pane = axes(figure, Margins(64, 20, 40, 52))
    name_axes(pane, "latency of a write request", "share of the requests that took longer, %")
    _time_axis(pane, groups)
    pane.set_yscale("log")
    for group in groups:
        xs, ys, left = [pane.get_xlim()[0]], [100.0], group.requests
        for latency in sorted(group.counts):
            xs, ys = [*xs, latency], [*ys, 100 * left / group.requests]
            left -= group.counts[latency]
        pane.step(
            [*xs, xs[-1]], [*ys, 1e-9], where="post", color=group.colour, lw=2, label=group.label
        )
    fewest = min(100 / group.requests for group in groups)
    pane.set_ylim(fewest / 2, 160)
    pane.yaxis.set_major_locator(LogLocator(numticks=6))
    pane.yaxis.set_minor_locator(NullLocator())
    pane.yaxis.set_major_formatter(FuncFormatter(tick))
    pane.legend(loc="upper right", labelcolor="linecolor", handlelength=0.8, borderaxespad=0.2)

"""Draws the plots of docs/models/collection.md from the output of the known-answer tests.

    cargo test -p ssdlab-flash --test known -- --nocapture | grep '^|' > rows
    python tools/plot_collection.py rows docs/images

Lines are theory, or another program's simulation; points are the model.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final = {
    "random": "#a86a0c",
    "2 choices": "#8e4ec6",
    "10 choices": "#c43d7f",
    "fifo": "#1f6fd1",
    "greedy": "#0d8567",
    "cost-benefit": "#d0451b",
}
STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "collection",  # the same rows give the same file
    "font.size": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dde3e9",
    "legend.frameon": False,
}
MIXTURES: Final = ("80 % on 20 %", "90 % on 10 %", "95 % on 5 %")
LEGEND: Final = "lines: theory, points: model"
WAF_AXIS: Final = "flash writes per host write"


class Row(NamedTuple):
    """A row of the table; `theory` and `model` are write amplification factors."""

    traffic: str
    units: int
    spare: float  # per cent
    theory: float
    model: float


def read_rows(text: str) -> list[Row]:
    """Parse lines `| traffic | units | spare % | theory | model | off |`; skips others."""
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 6 and cells[1].isdigit():
            spare = float(cells[2].removesuffix("%"))
            rows.append(Row(cells[0], int(cells[1]), spare, float(cells[3]), float(cells[4])))
    return rows


def curve(
    axes: Axes, rows: Iterable[Row], x: Callable[[Row], float], style: dict[str, str]
) -> None:
    """Theory as a line and the model as points, in one colour."""
    ordered = sorted(rows, key=x)
    at = [x(row) for row in ordered]
    colour, line = style["colour"], style.get("line", "-")
    axes.plot(at, [row.theory for row in ordered], line, color=colour, linewidth=1.2)
    points = [row.model for row in ordered]
    axes.plot(at, points, style.get("point", "o"), color=colour, markersize=5, label=style["name"])


def by_spare(rows: list[Row], figure: Figure) -> None:
    """Uniform random writes: WAF by spare for each policy; similar ones again, enlarged."""
    whole, near = figure.subplots(1, 2, width_ratios=(3, 2))
    for policy in ("random", "2 choices", "10 choices", "fifo", "greedy"):
        chosen = [row for row in rows if row.traffic == policy and row.units in {32, 128}]
        style = {"colour": COLOURS[policy], "name": policy}
        curve(whole, chosen, lambda row: row.spare, style)
    for policy, units, point in (
        ("fifo", 128, "o"),
        ("10 choices", 128, "o"),
        ("greedy", 256, "^"),
        ("greedy", 128, "o"),
        ("greedy", 64, "v"),
    ):
        chosen = [row for row in rows if (row.traffic, row.units) == (policy, units)]
        name = policy if policy == "fifo" else f"{policy}, {units} units"
        style = {"colour": COLOURS[policy], "name": name, "point": point}
        curve(near, [row for row in chosen if row.spare <= 10], lambda row: row.spare, style)
    whole.set(yscale="log", xlabel="spare: hidden share of all flash, %", ylabel=WAF_AXIS)
    ticks = [1, 2, 3, 5, 10, 20]
    whole.set_yticks(ticks, [str(tick) for tick in ticks])
    whole.minorticks_off()
    near.set(xlabel="spare, %", xlim=(4.7, 10.3), title="the lower ones, not logarithmic")
    whole.set_title(LEGEND)
    whole.legend()
    near.legend()


def by_heat(rows: list[Row], figure: Figure) -> None:
    """Hot and cold data: relocations mixed with host writes, and in superblocks of their own."""
    mixed, apart = figure.subplots(1, 2, width_ratios=(3, 2))
    for policy in ("fifo", "greedy"):
        for spare, line, point in ((7.0, "-", "o"), (28.0, "--", "s")):
            name = f"{policy}, spare {spare:.0f} %"
            chosen = [
                row
                for row in rows
                if row.spare == spare and row.traffic.partition(", ")[0] == policy
                if row.traffic.partition(", ")[2] in MIXTURES
            ]
            style = {"colour": COLOURS[policy], "name": name, "line": line, "point": point}
            curve(mixed, chosen, lambda row: mixture_of(row.traffic), style)
    mixed.set_xticks(range(3), [f"{mixture}\nof space" for mixture in MIXTURES])
    mixed.set(
        ylim=(0, None),
        ylabel=WAF_AXIS,
        xlabel="share of the writes",
        title=f"moved together; {LEGEND}",
    )
    mixed.legend(loc="center left", bbox_to_anchor=(0, 0.55))
    paint_apart(rows, apart)


def mixture_of(traffic: str) -> int:
    """The index of a row's mixture on the axis."""
    return MIXTURES.index(traffic.partition(", ")[2])


def paint_apart(rows: list[Row], axes: Axes) -> None:
    """95 % of the writes to 5 % of the space, relocations in superblocks of their own."""
    policies = ("cost-benefit", "10 choices", "greedy", "fifo")
    for spare, point in ((6.85, "o"), (27.24, "s")):
        by_policy = {row.traffic.partition(",")[0]: row for row in rows if is_apart(row, spare)}
        for at, policy in enumerate(policies):
            row, colour = by_policy[policy], COLOURS[policy]
            axes.plot([at - 0.3, at + 0.3], [row.theory] * 2, color=colour, linewidth=1.2)
            axes.plot(at, row.model, point, color=colour, markersize=5)
        axes.plot([], [], point, color="#566371", label=f"spare {spare} %")
    axes.set_xticks(
        range(4), [policy.replace("-", "-\n").replace(" ", "\n") for policy in policies]
    )
    axes.set(ylim=(0, None), title="95 % on 5 %, moved apart")
    axes.legend(loc="center left")


def is_apart(row: Row, spare: float) -> bool:
    """Whether the row has relocations in superblocks of their own, at this spare."""
    return row.spare == spare and row.traffic.endswith(f"apart, {MIXTURES[2]}")


def by_history(rows: list[Row], figure: Figure) -> None:
    """Random writes to a small area, by the earlier overwrites of the whole drive."""
    axes = figure.subplots()
    histories = defaultdict(list)
    for row in rows:
        if found := re.search(r"after ([\d.]+) overwrites", row.traffic):
            histories[row.spare].append((float(found[1]), row))
    colours = ("#d0451b", "#1f6fd1")
    for (spare, history), colour in zip(sorted(histories.items()), colours, strict=True):
        at = {row: overwrites for overwrites, row in history}
        style = {"colour": colour, "name": f"spare {spare} %"}
        curve(axes, at, at.__getitem__, style)
    axes.set(ylim=(0, None), xlabel="random overwrites of the whole drive before", ylabel=WAF_AXIS)
    axes.set_title("lines: another simulation, points: model")
    axes.legend(title="random writes into 40 GiB of a 512 GB drive", loc="center right")


PLOTS: Final = {
    "collection-spare.svg": (by_spare, (9.0, 4.2)),
    "collection-heat.svg": (by_heat, (9.0, 4.2)),
    "collection-history.svg": (by_history, (7.2, 3.6)),
}


def main(arguments: list[str]) -> int:
    """Draw all plots from the rows in a file into a folder."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    rows = read_rows(Path(arguments[0]).read_text(encoding="utf-8"))
    for name, (paint, size) in PLOTS.items():
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=size, layout="constrained")
            paint(rows, figure)
            figure.savefig(Path(arguments[1]) / name, metadata={"Date": None})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

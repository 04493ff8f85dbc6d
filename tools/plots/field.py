"""Draws the figure of docs/models/reading.md: read speed of a database over its rewrites.

    python tools/plots/field.py ROWS FILE.svg

ROWS is the output of bench/twins/field.py.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

OBSERVED: Final = {"database": 600, "other files, over": 2000}
"""Reported of the drive, MB/s; for other files, a lower bound."""
COLOURS: Final = {"4 KiB": "#d0451b", "16 KiB": "#1f6fd1"}
STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "field",  # the same rows give the same file
    "font.size": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dde3e9",
    "legend.frameon": False,
}


def read_rows(text: str) -> dict[str, list[tuple[float, float, float]]]:
    """By page size: times rewritten, MB/s of the database, MB/s of the other file."""
    rows = defaultdict(list)
    for line in text.splitlines()[2:]:
        pages, *numbers = (cell.strip() for cell in line.strip("| ").split("|"))
        times, database, other = map(float, numbers)
        rows[pages].append((times, database, other))
    return dict(rows)


def draw(rows: dict[str, list[tuple[float, float, float]]], figure: Figure) -> None:
    """A line for each page size, and the reported speeds of the drive."""
    axes = figure.subplots()
    names = [f"{times:g}" for times, _, _ in rows["4 KiB"]]
    for pages, points in rows.items():
        speeds = [database for _, database, _ in points]
        axes.plot(names, speeds, "o-", color=COLOURS[pages], label=f"twin, database, {pages} pages")
    others = [other for _, _, other in rows["4 KiB"]]
    axes.plot(names, others, "o-", color="#5b6773", label="twin, file written once")
    for what, speed in OBSERVED.items():
        axes.axhline(speed, color="#0d8567", linestyle="--", linewidth=1)
        label, place = f"reported of the drive: {what}", (len(names) - 1, speed)
        axes.annotate(label, place, (0, -14), textcoords="offset points", ha="right")
    axes.set(ylim=(0, None), xlabel="times that the database was rewritten", ylabel="MB/s")
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.86))


def main(rows: str, file: str) -> None:
    """Draw the rows of a file into another."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.8), layout="constrained")
        draw(read_rows(Path(rows).read_text(encoding="utf-8")), figure)
        figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])

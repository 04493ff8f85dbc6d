"""The verdicts on each trace by bytes and by seconds: `python tools/plots/steadiness.py FILE.svg`.

Draws the figure of docs/models/steadiness.md into FILE and prints the rows of its table. Run it
with `python/` and `tools/` on the path: `PYTHONPATH=python:tools`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from plots import traces
from plots.traces import DURATION, FAST, GB, MB, Numbers, trace
from ssdlab.stats.steady import Rule, Verdict, first_steady

RULE: Final = Rule.of_drive(traces.SCOPE, traces.SPARE, traces.CACHE)
# name, trace, true rate in bytes/s (None: the trace has no steady rate)
ROWS: Final[list[tuple[str, Numbers, float | None]]] = [
    ("steady", trace(traces.steady), FAST),
    ("noisy (40 % a second)", trace(traces.steady, noise=0.4), FAST),
    ("drift, half in an hour", trace(traces.drift), None),
    ("plateau, then cliff", trace(traces.cliff), FAST / 5),
    ("sawtooth, 1/8 round", trace(traces.sawtooth(10 * GB)), FAST / (2 * np.log(2))),
    ("sawtooth, 3 rounds", trace(traces.sawtooth(240 * GB)), None),
    ("one-second dips", trace(traces.dips), FAST * 0.93),
    ("slow settling", trace(traces.settling), FAST / 5),
    ("two levels, 1/8 round", trace(traces.two_levels(10 * GB)), FAST * 2 / 3),
    ("two levels, 16 rounds", trace(traces.two_levels(1280 * GB), seconds=4 * DURATION), None),
]
SHOWN: Final = 2500  # GB
STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "steadiness",  # the same file from the same traces
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def verdict_of(amounts: Numbers) -> Verdict:
    """The verdict on a run of one-second intervals."""
    return first_steady(np.ones(len(amounts)), amounts, RULE)


def table_row(name: str, amounts: Numbers, truth: float | None) -> str:
    """A line of the table, in MB/s."""
    verdict = verdict_of(amounts)
    ours = f"not attained: {', '.join(failure.code for failure in verdict.failures)}"
    if verdict.steady and verdict.mean and verdict.low and verdict.high:
        interval = f"{verdict.low / MB:.1f}-{verdict.high / MB:.1f}"
        ours = (
            f"{verdict.mean / MB:.1f} ({interval}), {verdict.rounds * RULE.round_bytes / GB:.0f} GB"
        )
    cells = [name, "none" if truth is None else f"{truth / MB:.0f}", ours]
    for window in (60, 1800):
        rate = traces.stopped_by_seconds(amounts, window)
        cells.append("not attained" if rate is None else f"{rate / MB:.0f}")
    return f"| {' | '.join(cells)} |"


def draw(path: Path) -> None:
    """Each trace over the bytes written, with the floor, the accepted window and the SNIA rule."""
    figure = Figure(figsize=(8.6, 8.4), layout="constrained")
    for axes, (name, amounts, _) in zip(figure.subplots(5, 2).ravel(), ROWS, strict=True):
        drawn = amounts[: np.searchsorted(np.cumsum(amounts), SHOWN * GB)]
        rates = drawn[: len(drawn) // 60 * 60].reshape(-1, 60).mean(axis=1)
        written = np.cumsum(rates) * 60
        axes.plot(written / GB, rates / MB, color="#7a8da0", linewidth=0.6)
        axes.axvline(RULE.floor_bytes / GB, color="#566371", linestyle=":", linewidth=1)
        stopped = traces.stopped_by_seconds(amounts)
        if stopped is not None:
            axes.plot(0, stopped / MB, "o", color="#d0451b", clip_on=False)
        verdict = verdict_of(amounts)
        if verdict.from_round is not None and verdict.mean is not None:
            ends = np.array([verdict.from_round, verdict.rounds]) * RULE.round_bytes / GB
            axes.plot(ends, [verdict.mean / MB] * 2, color="#1f6fd1", linewidth=3)
        axes.set(title=name, xlim=(0, SHOWN), ylim=(0, 650))
    figure.supxlabel("GB written (dotted: floor)")
    figure.supylabel("MB/s (grey: trace; blue: accepted window; red dot: five windows of 60 s)")
    figure.savefig(path, format="svg", metadata={"Date": None})


def main(arguments: list[str]) -> int:
    """Draw and print."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    with mpl.rc_context(STYLE):
        draw(Path(arguments[0]))
    print("\n".join(table_row(*row) for row in ROWS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""AgeingRow rows of ten drives beside their twins: the whole table, and how far they are apart.

Usage: python bench/twins/ageing.py [--hold-out] [TWIN...]

With --hold-out each twin is fitted anew to its first three times (fresh, +50, +200 MiB), from what
was thought of the drive before any fit, and the last two are foretold; the mean is of these.
"""

from __future__ import annotations

import sys
import tomllib

import numpy as np

from ssdlab import profiles
from ssdlab.fit.ageing import FINAL_FILE, AgeingRow, errors, twin_seconds
from ssdlab.fit.fitted import fit_ageing
from ssdlab.fit.results import published_rows
from ssdlab.profiles.toml_edit import set_value

FORETOLD = 800.0
"""The first amount in MiB that is held out."""
FIXED = {"link.bandwidth": "bandwidth", "flash.read": "read"}


def start_of(name: str) -> str:
    """The profile as it was before it was fitted to the ageing table."""
    table = tomllib.loads((profiles.tables() / "aging.toml").read_text(encoding="utf-8"))
    start = next(drive["start"] for drive in table["aging"]["drive"] if drive["twin"] == name)
    text = set_value(profiles.load(name), "flash.dies_per_channel", start["dies_per_channel"])
    for key, short in FIXED.items():
        text = set_value(text, key, start[short])
    for key in ("ftl.read_portion", "ftl.read_portions"):
        text = set_value(text, key, None)
    return text


def twin_of(name: str, row: AgeingRow, *, hold_out: bool) -> np.ndarray:
    """The twin's times: of the shipped profile, or of one that never saw the last two."""
    if not hold_out:
        return twin_seconds(profiles.load(name), row, size=FINAL_FILE)
    kept = row.without((FORETOLD,))
    return fit_ageing(start_of(name), row, kept, "bench", lambda _done, _all: None).answers


def line(name: str, row: AgeingRow, *, hold_out: bool) -> np.ndarray:
    """Prints a drive's five times, measured and twin; returns the relative errors that count."""
    seconds = twin_of(name, row, hold_out=hold_out)
    off = errors(row, seconds)
    counts = off[3:] if hold_out else off
    cells = "  ".join(
        f"{measured:5.1f} {twin:6.2f} {error:+6.1%}"
        for measured, twin, error in zip(row.seconds, seconds, off, strict=True)
    )
    print(f"{name:18} {cells}  {abs(counts).mean():5.1%}", flush=True)
    return counts


def main(words: list[str]) -> None:
    """Prints a line a drive and the mean and worst of all cells that count."""
    rows, hold_out = published_rows(), "--hold-out" in words
    heads = ("fresh", "+50 MiB", "+200", "+800", "+4000")
    print(f"{'':18} " + "  ".join(f"{head:^19}" for head in heads) + "   mean")
    names = [word for word in words if word != "--hold-out"] or list(rows)
    found = np.array([line(name, rows[name], hold_out=hold_out) for name in names])
    print(f"mean absolute error {abs(found).mean():.1%}, worst {abs(found).max():.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Compares the published ageing rows of ten drives with their twins.

Usage: python bench/twins/ageing.py [--hold-out] [TWIN...]

With --hold-out, each twin is fitted again to its first three times (fresh, +50, +200 MiB), starting
from the numbers that were assumed before any fit. The mean error is that of the two predicted
times.
"""

from __future__ import annotations

import sys
import tomllib

import numpy as np

from ssdlab import profiles
from ssdlab.fit.ageing import FINAL_FILE, AgeingRow, relative_errors, twin_seconds
from ssdlab.fit.fitted import fit
from ssdlab.fit.results import FitInput, published_rows
from ssdlab.profiles.toml_edit import set_value

HELD_OUT_FROM = 800.0
"""The first amount in MiB that is held out."""
FIXED = {"link.bandwidth": "bandwidth", "flash.read": "read"}


def start_of(name: str) -> str:
    """The profile with the numbers that it had before the fit to the ageing table."""
    table = tomllib.loads((profiles.tables() / "aging.toml").read_text(encoding="utf-8"))
    start = next(drive["start"] for drive in table["aging"]["drive"] if drive["twin"] == name)
    text = set_value(profiles.load(name), "flash.dies_per_channel", start["dies_per_channel"])
    for key, short in FIXED.items():
        text = set_value(text, key, start[short])
    for key in ("ftl.read_portion", "ftl.read_portions"):
        text = set_value(text, key, None)
    return text


def times_of(name: str, row: AgeingRow, *, hold_out: bool) -> np.ndarray:
    """The times of the shipped twin, or of one that was fitted without the last two."""
    if not hold_out:
        return twin_seconds(profiles.load(name), row, size=FINAL_FILE)
    kept = row.without((HELD_OUT_FROM,))
    return fit(start_of(name), FitInput(row=row, kept_row=kept), "bench").twin_values


def print_row(name: str, row: AgeingRow, *, hold_out: bool) -> np.ndarray:
    """Prints the five times, drive and twin; returns the relative errors that the mean includes."""
    seconds = times_of(name, row, hold_out=hold_out)
    errors = relative_errors(row, seconds)
    counted = errors[3:] if hold_out else errors
    cells = "  ".join(
        f"{measured:5.1f} {twin:6.2f} {error:+6.1%}"
        for measured, twin, error in zip(row.seconds, seconds, errors, strict=True)
    )
    print(f"{name:18} {cells}  {abs(counted).mean():5.1%}", flush=True)
    return counted


def main(words: list[str]) -> None:
    """Prints one line for each drive, and the mean and worst error."""
    rows, hold_out = published_rows(), "--hold-out" in words
    heads = ("fresh", "+50 MiB", "+200", "+800", "+4000")
    print(f"{'':18} " + "  ".join(f"{head:^19}" for head in heads) + "   mean")
    names = [word for word in words if word != "--hold-out"] or list(rows)
    errors = np.array([print_row(name, rows[name], hold_out=hold_out) for name in names])
    print(f"mean absolute error {abs(errors).mean():.1%}, worst {abs(errors).max():.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])

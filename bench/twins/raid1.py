"""The published over-provisioning test on its two mirrored drives: twins as RAID 1, resynced.

Usage: PYTHONPATH=python:tools python bench/twins/raid1.py [SCALE]

Two twins of the Samsung 840 Pro are filled in order as RAID 1 and resynced: all of the first is
copied to the second. Then the states of the article follow: all visible and aged, and 400 GB
visible and erased before. The last part shows what a resync does to an array of which only an area
is in use. SCALE is a share of the drive [1/16] (`ssdlab/fit/published.py`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

import numpy as np

from ssdlab import profiles
from ssdlab.fit.published import COUNTED, SCALE, VISIBLE, Past, ProvisionedDrive

PASSES: Final = 4
SECOND_US: Final = 1_000_000
MB: Final = 1e6
STATES: Final[dict[str, tuple[int, Past]]] = {
    "6.85 %, aged": (512, "aged"),
    "27.24 %, erased": (400, "erased"),
}
ARTICLE: Final = {
    "6.85 %, aged": {"highest": 7139, "lowest": 6000, "sequential": 32},
    "27.24 %, erased": {"highest": 68000, "lowest": 19000, "sequential": 70},
}
"""Requests/s of random writes: the highest, and the mean of the runs' minima; lowest MB/s."""


@dataclass(frozen=True)
class Measured:
    """What the article states, and the deviation of latencies in microseconds."""

    highest: float
    lowest: float
    sequential: float
    mean: float
    latency_mean: float
    latency_sd: float
    waf: tuple[float, float]

    def value(self, name: str) -> float:
        """The value that has this name in `ARTICLE`."""
        return {"highest": self.highest, "lowest": self.lowest, "sequential": self.sequential}[name]


class Array(ProvisionedDrive):
    """Two twins as RAID 1."""

    interval_us = SECOND_US

    def __init__(self, visible_gb: int, scale: float) -> None:
        profile = profiles.load("samsung-840-pro")
        super().__init__(profile, VISIBLE[visible_gb], scale, mirrored=True)

    def resync(self) -> None:
        """Copies all of the first drive to the second."""
        assert self.drive.resync()

    def counts(self) -> list[tuple[int, int]]:
        """Units written by the host and to flash, for each drive."""
        both = [self.drive.counters(member) for member in (0, 1)]
        read = [[counters[key] for key in COUNTED] for counters in both if counters is not None]
        return [(host, own + moved) for host, own, moved in read]

    def rates(self) -> list[float]:
        """Requests/s of whole seconds of the last job."""
        lengths, amounts = self.last.columns()
        whole = [amount / 4096 / length for length, amount in zip(lengths, amounts, strict=True)]
        return whole[:-1] or whole

    def measure(self) -> Measured:
        """Overwrites the area at random four times, then in order."""
        before, rates, lowest, sums = self.counts(), [], [], np.zeros(3)
        for _ in range(PASSES):
            self.write_randomly(self.area, 1.0)
            rates += self.rates()
            lowest.append(min(self.rates()))
            latency, count = (self.last.latency[key] for key in ("latency_ns", "count"))
            us = latency.astype(float) / 1e3
            sums += [count.sum(), (count * us).sum(), (count * us**2).sum()]
        after = self.counts()
        wafs = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(before, after, strict=True)]
        self.write_in_order(self.area)
        mean = sums[1] / sums[0]
        return Measured(
            highest=max(rates),
            lowest=float(np.mean(lowest)),
            sequential=min(self.rates()) * 4096 / MB,
            mean=float(np.mean(rates)),
            latency_mean=mean,
            latency_sd=float(np.sqrt(sums[2] / sums[0] - mean**2)),
            waf=(wafs[0], wafs[1]),
        )


def published(scale: float) -> None:
    """The two states of the article, their ratios, and the errors."""
    found = {}
    for state, (visible, past) in STATES.items():
        array = Array(visible, scale)
        array.fill()
        array.resync()
        array.give_past(past)
        found[state] = array.measure()
    print("| | article | twins | error |\n|---|---|---|---|")
    for state, values in ARTICLE.items():
        for name, value in values.items():
            print(_row(f"{state}: {name}", value, found[state].value(name)))
    one, other = STATES
    for name in ARTICLE[one]:
        ratio = found[other].value(name) / found[one].value(name)
        print(_row(f"ratio: {name}", ARTICLE[other][name] / ARTICLE[one][name], ratio))
    print("\n| | mean, requests/s | latency, us | deviation, us | WAF |\n|---|---|---|---|---|")
    for state, each in found.items():
        print(_latencies(state, each))


def _row(label: str, article: float, twins: float) -> str:
    return f"| {label} | {article:.4g} | {twins:.4g} | {twins / article - 1:+.1%} |"


def _latencies(label: str, each: Measured) -> str:
    waf = " and ".join(f"{value:.2f}" for value in each.waf)
    return (
        f"| {label} | {each.mean:.0f} | {each.latency_mean:.0f} | {each.latency_sd:.0f} | {waf} |"
    )


def resynced(scale: float) -> None:
    """An array of which only the area is in use: before and after a resync, and after a trim."""
    array = Array(512, scale)
    array.write_in_order(array.area)
    array.give_past("erased")
    print("\n| only the area in use | mean, requests/s | latency, us | deviation, us | WAF |")
    print("|---|---|---|---|---|")
    print(_latencies("before a resync", array.measure()), flush=True)
    array.resync()
    array.give_past("erased")
    print(_latencies("after a resync", array.measure()), flush=True)
    array.trim_beyond_area()
    array.give_past("erased")
    print(_latencies("after trimming the rest", array.measure()), flush=True)


def main(scale: float = SCALE) -> None:
    """Prints all tables."""
    published(scale)
    resynced(scale)


if __name__ == "__main__":
    main(*(float(word) for word in sys.argv[1:]))

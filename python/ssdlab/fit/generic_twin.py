"""Twins of drives of which only a data sheet is known, and how wide their findings may be.

The twin has the usual numbers of such drives (`profiles.generic`), fitted to the rates that are
given. Others with numbers drawn from the ranges of real drives, fitted to the same rates, show how
little that determines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ssdlab.errors import TargetError
from ssdlab.fit.direct_estimates import enlarge_buffer
from ssdlab.fit.iocost import RatesFit, measure
from ssdlab.profiles import generic
from ssdlab.profiles.generic import GenericDrive


@dataclass(frozen=True)
class RateRange:
    """A rate of the twin, as in `iocost.RATES`, and the extremes of the drawn twins."""

    name: str
    value: float
    low: float
    high: float


def make(drive: GenericDrive, rates: Mapping[str, float], source: str) -> str:
    """The profile of a drive; `rates` that are given are named as in `iocost.RATES`.

    Raises:
        UsageError: nothing is known of such a drive.
    """
    return _fitted(generic.profile(drive), rates, source)


def rate_ranges(
    profile: str,
    drive: GenericDrive,
    rates: Mapping[str, float],
    draws: int,
    progress: Callable[[int], None] = lambda _done: None,
) -> list[RateRange]:
    """How wide the rates of a drive may be: those of `draws` twins with drawn numbers."""
    value, found = measure(profile), []
    for done, text in enumerate(generic.variants(drive, draws), 1):
        try:
            found.append(measure(_fitted(text, rates, "drawn")))
        except TargetError:  # a combination of numbers that no drive has
            continue
        finally:
            progress(done)
    rows = [value, *found]
    return [
        RateRange(name, value[name], min(row[name] for row in rows), max(row[name] for row in rows))
        for name in value
    ]


def _fitted(text: str, rates: Mapping[str, float], source: str) -> str:
    text = enlarge_buffer(text)
    return RatesFit(text, rates, source).run() if rates else text

"""Estimates: intervals that are narrow enough, or the reason why the run shows no value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ssdlab.analysis.write_amplification import Bracket

WIDEST: Final = 1.5
"""High / low of the widest interval that counts as an estimate."""


@dataclass(frozen=True)
class Estimate:
    """An interval with its value, or `None` and the reason."""

    bracket: Bracket | None
    why: str


def between(low: float, high: float) -> Bracket:
    """The interval with its geometric mean."""
    return Bracket(math.sqrt(low * high), low, high)


def narrow(bracket: Bracket, why: str) -> Estimate:
    """The estimate, unless it is too wide."""
    _, low, high = bracket
    if high > WIDEST * low:
        return Estimate(None, f"too uncertain: {low:.3g} to {high:.3g}")
    return Estimate(bracket, why)

"""Whether a measured ratio is shown to differ from 1, given how much its repeats vary."""

from __future__ import annotations

from typing import Final

from ssdlab.records import Finding

_NOTICEABLE: Final = 1.25
"""Repeats whose interval reaches this factor do not show that there is no slowdown."""
_TELLING: Final = 10.0
"""An interval with an upper end above this says nothing."""


def is_shown(ratio: Finding, least: float) -> bool:
    """Whether a ratio is at least `least` and its interval, if known, excludes 1."""
    assert isinstance(ratio.value, float)
    return ratio.value >= least and (ratio.low is None or ratio.low > 1.0)


def not_excluded(ratio: Finding, least: float) -> str:
    """Why a ratio that is not shown is not shown to be below `least` either; "" if it is."""
    assert isinstance(ratio.value, float)
    high = max(ratio.value, ratio.high or 0.0)
    if ratio.value < least and high < _NOTICEABLE:
        return ""
    if high > _TELLING:
        return "the repeats vary too much to tell"
    return f"the repeats vary too much to exclude a factor of {high:.2g}"

"""The read-speed map of a file as a line of text: a column a place, its height the speed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.doctor.checks.files import SLOW
from ssdlab.snapshot import File

_HEIGHTS: Final = "▁▂▃▄▅▆▇█"
MIB: Final = 1 << 20


@dataclass(frozen=True)
class Column:
    """What is drawn at one place: a sign, and whether it is slow; a blank where nothing was read.

    `mib_per_s` is the speed of what was read there, None for nothing.
    """

    sign: str
    is_slow: bool
    mib_per_s: float | None


def columns(file: File, reference: float, width: int) -> list[Column]:
    """At most `width` columns, the pieces in their order; full height is the reference."""
    count = max(1, min(width, len(file.pieces)))
    amounts, times = [0.0] * count, [0.0] * count
    for number, piece in enumerate(file.pieces):
        at = number * count // len(file.pieces)
        amounts[at] += piece.length / MIB
        times[at] += piece.seconds
    return [_column(a, t, reference) for a, t in zip(amounts, times, strict=True)]


def _column(amount: float, seconds: float, reference: float) -> Column:
    if not amount or not seconds:
        return Column(" ", is_slow=False, mib_per_s=None)
    speed = amount / seconds
    height = min(len(_HEIGHTS) - 1, int(speed / reference * len(_HEIGHTS)))
    return Column(_HEIGHTS[height], speed < SLOW * reference, speed)

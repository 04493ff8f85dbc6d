"""The read-speed map of a file as a line of text: a bar for each part of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ssdlab.doctor.checks.files import SLOW
from ssdlab.snapshot import File

_HEIGHTS: Final = "▁▂▃▄▅▆▇█"
MIB: Final = 1 << 20


@dataclass(frozen=True)
class Column:
    """One bar: `sign` is a block character, or a blank if nothing was read (`mib_per_s` None)."""

    sign: str
    is_slow: bool
    mib_per_s: float | None


def columns(file: File, reference: float, width: int) -> list[Column]:
    """At most `width` bars in the order of the file; full height is `reference` (MiB/s)."""
    count = max(1, min(width, len(file.pieces)))
    mib, seconds = [0.0] * count, [0.0] * count
    for number, piece in enumerate(file.pieces):
        at = number * count // len(file.pieces)
        mib[at] += piece.length / MIB
        seconds[at] += piece.seconds
    return [_column(m, s, reference) for m, s in zip(mib, seconds, strict=True)]


def _column(mib: float, seconds: float, reference: float) -> Column:
    if not mib or not seconds:
        return Column(" ", is_slow=False, mib_per_s=None)
    speed = mib / seconds
    height = min(len(_HEIGHTS) - 1, int(speed / reference * len(_HEIGHTS)))
    return Column(_HEIGHTS[height], speed < SLOW * reference, speed)

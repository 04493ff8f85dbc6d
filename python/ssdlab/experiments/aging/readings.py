"""The measures of an aging run, typed: how long the file took to read after each amount."""

from __future__ import annotations

from dataclasses import dataclass

from ssdlab.records import Run
from ssdlab.wording import positive


@dataclass(frozen=True)
class Reading:
    """Reads of the whole file after `written_mib` had been written over it in total."""

    written_mib: float
    read_s: float
    repeats_s: tuple[float, ...]


def readings(run: Run) -> list[Reading]:
    """The reads in order; rows without a read time (an interrupted stage) are left out."""
    found = []
    for row in run.result.measures:
        written, read = positive(row.get("written_mib"), zero=True), positive(row.get("read_s"))
        if written is not None and read is not None:
            repeats = row.get("read_s_all")
            listed = repeats if isinstance(repeats, list) else [read]
            kept = tuple(second for second in map(positive, listed) if second is not None)
            found.append(Reading(written, read, kept))
    return found


def file_mib(run: Run) -> float | None:
    """The size of the file that was read, or None where the run does not say."""
    return positive(run.result.parameters.get("size_mib"))

"""The measures of an aging run as typed values: read times after each amount of random writes."""

from __future__ import annotations

from dataclasses import dataclass

from ssdlab.records import Run
from ssdlab.wording import positive


@dataclass(frozen=True)
class Reading:
    """Best and all read times of the file after `written_mib` of random writes in total."""

    written_mib: float
    read_s: float
    repeats_s: tuple[float, ...]


def readings(run: Run) -> list[Reading]:
    """The run's rows in order; rows without a read time (interrupted stages) are left out."""
    result = []
    for row in run.result.measures:
        written, read = positive(row.get("written_mib"), zero=True), positive(row.get("read_s"))
        if written is not None and read is not None:
            values = row.get("read_s_all")
            values = values if isinstance(values, list) else [read]
            repeats = tuple(second for second in map(positive, values) if second is not None)
            result.append(Reading(written, read, repeats))
    return result


def file_mib(run: Run) -> float | None:
    """The size of the test file, or None if the run does not record it."""
    return positive(run.result.parameters.get("size_mib"))

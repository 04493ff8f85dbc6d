"""Whether the measuring host was busy with other things: columns and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from ssdlab.device import HostLoad
from ssdlab.warning import Warn

FOREIGN_CORES: Final = 0.5
"""Others may keep so many processors busy, in the mean of a phase.

On a virtual disk other programs slowed 4 KiB reads, one at a time, by up to 40 %. Runs with such
company had about one processor busy beside them, quiet ones 0.00 to 0.02: half tells them apart.
"""
STOLEN_CORES: Final = 0.05
"""So much of one processor may the hypervisor keep: 5 % is from where on reads are called slower.

Of one and not of all, for one waits for the drive: what it misses is late, however many there are.
"""
LEAST_S: Final = 0.5
"""A shorter phase is not judged: the system counts in steps of 0.01 s for each processor."""

_WORDS: Final = {"fill": "writing", "read": "reading", "overwrite": "overwriting"}
"""A phase in words; any other is named."""
_UNJUDGED: Final = frozenset({"flush", "rest", "trim"})
_STORED: Final = ("own_user_s", "own_system_s", "foreign_cpu_s", "stolen_cpu_s")


def host_columns(load: HostLoad, *, is_virtual: bool) -> dict[str, float | None]:
    """A step's columns of `STEPS` about the host, in seconds of CPU time.

    Null on a twin: its clock is virtual, so no load of the host is in its numbers.
    """
    if is_virtual:
        return dict.fromkeys(_STORED)
    seconds = asdict(load)
    return {name: seconds[name] for name in _STORED}


def check_quiet(steps: Iterable[Mapping[str, Any]], warn: Warn) -> None:
    """Warns if other programs used the processors during a run; `steps` are rows of `STEPS`.

    The steps of a phase are taken together, and the worst phase counts:
    a few noisy reads must not hide behind a long and quiet fill.
    """
    judged = [row for row in steps if row["phase"] not in _UNJUDGED]
    rows = [row for row in judged if row["foreign_cpu_s"] is not None]
    if any(row.get("own_user_s") is not None for row in judged if row not in rows):
        warn(
            "host-unseen",
            "/proc/stat cannot be read here: whether others had the processor is unknown.",
        )
    foreign, phase = _worst(rows, "foreign_cpu_s")
    if foreign > FOREIGN_CORES:
        warn(
            "busy-host",
            f"While {phase}, {foreign:.2g} processors were busy with other things (programs, or "
            "the kernel's own work, such as encryption): requests may have waited for them and "
            "not for the drive.",
        )
    stolen, phase = _worst(rows, "stolen_cpu_s")
    if stolen > STOLEN_CORES:
        warn(
            "stolen-time",
            f"While {phase}, the hypervisor kept {stolen:.0%} of a processor for others: requests "
            "may have waited for it and not for the drive.",
        )


def _worst(rows: list[Mapping[str, Any]], column: str) -> tuple[float, str]:
    """The largest mean of a column over a phase's time, in processors, and the phase's word."""
    found = [(0.0, "")]
    for phase in dict.fromkeys(row["phase"] for row in rows):
        word = _WORDS.get(phase, f"measuring ({phase})")
        chosen = [row for row in rows if row["phase"] == phase]
        wall_s = sum((row["end_ns"] - row["start_ns"]) / 1e9 for row in chosen)
        if wall_s >= LEAST_S:
            found.append((sum(row[column] for row in chosen) / wall_s, word))
    return max(found)

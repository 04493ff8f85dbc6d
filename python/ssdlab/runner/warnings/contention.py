"""CPU contention on the measuring host: columns of `STEPS`, and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from ssdlab.device import HostLoad
from ssdlab.warning import Warn

FOREIGN_CORES: Final = 0.5
"""The mean number of CPUs that other programs may use in a phase without a warning.

On a virtual disk other programs slowed 4 KiB reads at queue depth 1 by up to 40 %. In such runs
they used about one CPU, in undisturbed runs 0.00 to 0.02: half a CPU separates the two.
"""
STOLEN_CORES: Final = 0.05
"""Share of one CPU that the hypervisor may withhold: from 5 % on, reads are measurably slower.

It is a share of one CPU, not of all, since only the CPU that waits for the drive matters.
"""
LEAST_S: Final = 0.5
"""Shorter phases are not checked: the kernel counts CPU time in steps of 0.01 s per CPU."""

_PHASE_NAMES: Final = {"fill": "writing", "read": "reading", "overwrite": "overwriting"}
_UNCHECKED: Final = frozenset({"flush", "rest", "trim"})
_COLUMNS: Final = ("own_user_s", "own_system_s", "foreign_cpu_s", "stolen_cpu_s")


def host_columns(load: HostLoad | None) -> dict[str, float | None]:
    """The columns of `STEPS` about the host, in seconds of CPU time; null without a load."""
    if load is None:
        return dict.fromkeys(_COLUMNS)
    seconds = asdict(load)
    return {name: seconds[name] for name in _COLUMNS}


def check_contention(steps: Iterable[Mapping[str, Any]], warn: Warn) -> None:
    """Warns if other programs used the CPUs during a run; `steps` are rows of `STEPS`.

    Averages over each phase and takes the worst one, so that a long, undisturbed fill does not
    hide a few disturbed reads.
    """
    checked = [row for row in steps if row["phase"] not in _UNCHECKED]
    rows = [row for row in checked if row["foreign_cpu_s"] is not None]
    if any(row.get("own_user_s") is not None for row in checked if row not in rows):
        warn(
            "host-unseen",
            "/proc/stat cannot be read here, so the CPU use of other programs is unknown: mount "
            "/proc, or make sure that this machine is idle.",
        )
    foreign, phase = _worst_phase(rows, "foreign_cpu_s")
    if foreign > FOREIGN_CORES:
        warn(
            "busy-host",
            f"While {phase}, other programs or kernel work such as encryption used {foreign:.2g} "
            "CPUs, so requests may have waited for a CPU instead of the drive: repeat on an idle "
            "machine.",
        )
    stolen, phase = _worst_phase(rows, "stolen_cpu_s")
    if stolen > STOLEN_CORES:
        warn(
            "stolen-time",
            f"While {phase}, the hypervisor withheld {stolen:.0%} of a CPU, so requests may have "
            "waited for a CPU instead of the drive: repeat on an idle host, or on a machine that "
            "is not virtual.",
        )


def _worst_phase(rows: list[Mapping[str, Any]], column: str) -> tuple[float, str]:
    """The largest mean of a column over a phase, in CPUs, and the name of the phase."""
    means = [(0.0, "")]
    for phase in dict.fromkeys(row["phase"] for row in rows):
        name = _PHASE_NAMES.get(phase, f"measuring ({phase})")
        steps = [row for row in rows if row["phase"] == phase]
        wall_s = sum((row["end_ns"] - row["start_ns"]) / 1e9 for row in steps)
        if wall_s >= LEAST_S:
            means.append((sum(row[column] for row in steps) / wall_s, name))
    return max(means)

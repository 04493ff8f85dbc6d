"""What the measuring host did meanwhile: load of others, stolen time, our own."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

_STAT = Path("/proc/stat")
# Columns of the line `cpu` (proc_stat(5)): user nice system idle iowait irq softirq steal ...
_BUSY = (0, 1, 2, 5, 6)
_STEAL = 7


@dataclass(frozen=True, slots=True)
class HostLoad:
    """CPU time in seconds, of all processors together, over a span of the wall clock.

    `foreign_cpu_s` is what was not this process's; `stolen_cpu_s` what the hypervisor kept. The
    system counts both in steps of a hundredth of a second.
    """

    wall_s: float
    own_user_s: float
    own_system_s: float
    foreign_cpu_s: float
    stolen_cpu_s: float

    @property
    def own_cpu_s(self) -> float:
        """User and system together."""
        return self.own_user_s + self.own_system_s

    @property
    def foreign_cores(self) -> float:
        """How many processors others kept busy, in the mean."""
        return self.foreign_cpu_s / self.wall_s if self.wall_s > 0 else 0.0


class HostWatch:
    """Counts from its making on."""

    def __init__(self) -> None:
        """Begins now."""
        self._start = _sample()

    def load(self) -> HostLoad:
        """What was since."""
        wall, user, system, busy, steal = (
            now - then for now, then in zip(_sample(), self._start, strict=True)
        )
        return HostLoad(wall, user, system, max(0.0, busy - user - system), max(0.0, steal))


def _sample() -> tuple[float, float, float, float, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    ticks = [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:]]
    second = os.sysconf("SC_CLK_TCK")
    busy = sum(ticks[column] for column in _BUSY) / second
    return time.monotonic(), usage.ru_utime, usage.ru_stime, busy, ticks[_STEAL] / second

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
    system counts both in steps of a hundredth of a second; None where there is no /proc/stat.
    """

    wall_s: float
    own_user_s: float
    own_system_s: float
    foreign_cpu_s: float | None
    stolen_cpu_s: float | None

    @property
    def own_cpu_s(self) -> float:
        """User and system together."""
        return self.own_user_s + self.own_system_s

    @property
    def foreign_cores(self) -> float:
        """How many processors others kept busy, in the mean; 0 where that is unknown."""
        return (self.foreign_cpu_s or 0.0) / self.wall_s if self.wall_s > 0 else 0.0


class HostWatch:
    """Counts from its making on."""

    def __init__(self) -> None:
        """Begins now."""
        self._own, self._counted = _own(), _counted()

    def load(self) -> HostLoad:
        """What was since."""
        (wall, user, system), counted = _own(), _counted()
        wall, user, system = wall - self._own[0], user - self._own[1], system - self._own[2]
        if counted is None or self._counted is None:
            return HostLoad(wall, user, system, None, None)
        busy, steal = counted[0] - self._counted[0], counted[1] - self._counted[1]
        return HostLoad(wall, user, system, max(0.0, busy - user - system), max(0.0, steal))


def _own() -> tuple[float, float, float]:
    """The wall clock, and this process's time in user and in system mode, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), usage.ru_utime, usage.ru_stime


def _counted() -> tuple[float, float] | None:
    """Busy and stolen time of all processors in seconds; None without /proc/stat (a chroot)."""
    try:
        line = _STAT.read_text().split("\n", 1)[0]
    except OSError:
        return None
    ticks = [int(word) for word in line.split()[1:]]
    second = os.sysconf("SC_CLK_TCK")
    return sum(ticks[column] for column in _BUSY) / second, ticks[_STEAL] / second

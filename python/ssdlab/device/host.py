"""CPU time on the measuring host during a job: this process's, others', stolen time."""

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
    """CPU time in seconds, summed over all processors, during `wall_s` of wall-clock time.

    `foreign_cpu_s` is the time of other processes, `stolen_cpu_s` the time taken by the hypervisor.
    Both have a resolution of 10 ms, and are None without /proc/stat.
    """

    wall_s: float
    own_user_s: float
    own_system_s: float
    foreign_cpu_s: float | None
    stolen_cpu_s: float | None

    @property
    def own_cpu_s(self) -> float:
        """User and system time of this process."""
        return self.own_user_s + self.own_system_s

    @property
    def foreign_cores(self) -> float:
        """Mean number of processors that other processes kept busy; 0 if unknown."""
        return (self.foreign_cpu_s or 0.0) / self.wall_s if self.wall_s > 0 else 0.0


class HostWatch:
    """Measures the load since its creation."""

    def __init__(self) -> None:
        self._process, self._cpus = _process_times(), _cpu_times()

    def load(self) -> HostLoad:
        """The load since the creation of this object."""
        now, before, cpus = _process_times(), self._process, _cpu_times()
        wall, user, system = now[0] - before[0], now[1] - before[1], now[2] - before[2]
        if cpus is None or self._cpus is None:
            return HostLoad(wall, user, system, None, None)
        busy, steal = cpus[0] - self._cpus[0], cpus[1] - self._cpus[1]
        return HostLoad(wall, user, system, max(0.0, busy - user - system), max(0.0, steal))


def _process_times() -> tuple[float, float, float]:
    """Wall clock, and user and system time of this process, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), usage.ru_utime, usage.ru_stime


def _cpu_times() -> tuple[float, float] | None:
    """Busy and stolen time of all processors in seconds; None without /proc/stat (chroot)."""
    try:
        line = _STAT.read_text().split("\n", 1)[0]
    except OSError:
        return None
    ticks = [int(word) for word in line.split()[1:]]
    second = os.sysconf("SC_CLK_TCK")
    return sum(ticks[column] for column in _BUSY) / second, ticks[_STEAL] / second

"""turns: short jobs over and over, so that several targets or settings can take turns.

Whatever changes while the jobs run (another program, heat, a drive's own work) then falls on all
of them alike. Before the turns that count each has one that does not. Every turn draws other
addresses, and another side's turn others again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from ssdlab.errors import UsageError
from ssdlab.experiments.workload import measure as workload
from ssdlab.experiments.workload.measure import Ready
from ssdlab.runner.session import RunSession

FEWEST: Final = 8
MOST: Final = 10_000
_SEEDS: Final = 1_000_003
"""From one turn's seed to the next: no job file has so many jobs."""


@dataclass(frozen=True)
class Plan:
    """The jobs of a turn, how many turns; which of `sides` this is in the session of that name."""

    jobs: workload.Plan
    turns: int
    session: str
    place: int = 0
    sides: int = 1

    @property
    def size(self) -> int:
        """As the jobs'."""
        return self.jobs.size

    @property
    def seed(self) -> int:
        """As the jobs'."""
        return self.jobs.seed

    @property
    def request_bytes_max(self) -> int:
        """As the jobs'."""
        return self.jobs.request_bytes_max

    @property
    def write_bytes(self) -> int:
        """The fill, and what all turns write at most."""
        return self.size + (self.turns + 1) * (self.jobs.write_bytes - self.size)

    def parameters(self) -> dict[str, Any]:
        """Those of the jobs, and the turns."""
        return {**self.jobs.parameters(), "turns": self.turns, "session": self.session}

    def work(self) -> dict[str, float]:
        """Work to do by kind, for the forecast."""
        jobs = self.jobs.work()
        jobs["fill"] = jobs.get("fill", 0.0) - self.size
        found = {kind: (self.turns + 1) * work for kind, work in jobs.items()}
        return {**found, "fill": found.get("fill", 0.0) + self.size}


def check(plan: Plan) -> Plan:
    """The plan itself.

    Raises:
        UsageError: too few turns to tell anything, or too many.
    """
    if not FEWEST <= plan.turns <= MOST:
        raise UsageError(
            f"--turns is {plan.turns}; it may be {FEWEST} to {MOST}: fewer pairs tell nothing "
            "from chance where three numbers are judged"
        )
    return plan


def measure(session: RunSession, plan: Plan) -> None:
    """All turns of one side alone.

    Raises:
        UsageError, Interrupted, DeviceFailure, TargetError: as `workload.measure`.
    """
    jobs = workload.ready(session, plan.jobs)
    workload.write_region(session, plan.jobs)
    for turn in range(-1, plan.turns):
        take(session, plan, jobs, turn)
    workload.check_uncached(session, plan.jobs)


def take(session: RunSession, plan: Plan, jobs: Sequence[Ready], turn: int) -> None:
    """A turn: all jobs, one after the other; the turn before the first one does not count."""
    for number, each in enumerate(jobs):
        stride = _SEEDS * ((turn + 1) * plan.sides + plan.place)
        job = msgspec.structs.replace(each.job, seed=each.job.seed + stride)
        step = workload.step_of(each, number, max(0, turn))
        session.run(replace(step, phase="job" if turn >= 0 else "warm-up"), job, each.drive)

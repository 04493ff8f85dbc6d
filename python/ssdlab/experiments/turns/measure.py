"""turns: repeats short jobs, so that several targets or settings can be measured alternately.

Each target or setting is a side. Disturbances during the run (another program, heat, background
work of the drive) then affect all sides equally. One warm-up turn precedes the turns that count.
Each turn of each side has its own random addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from ssdlab.errors import UsageError
from ssdlab.experiments.workload import measure as workload
from ssdlab.experiments.workload.measure import PreparedJob
from ssdlab.runner.session import RunSession

FEWEST: Final = 8
MOST: Final = 10_000
_SEEDS: Final = 1_000_003
"""Distance between the seeds of consecutive turns; larger than any number of jobs."""


@dataclass(frozen=True)
class Plan:
    """The jobs of a turn and the number of turns.

    `session` identifies the comparison; this is side number `place` of `sides`.
    """

    jobs: workload.Plan
    turns: int
    session: str
    place: int = 0
    sides: int = 1

    @property
    def size(self) -> int:
        """The size of the target's region that the jobs use, in bytes."""
        return self.jobs.size

    @property
    def seed(self) -> int:
        """The seed of the jobs."""
        return self.jobs.seed

    @property
    def request_bytes_max(self) -> int:
        """The largest request of the jobs, in bytes."""
        return self.jobs.request_bytes_max

    @property
    def write_bytes(self) -> int:
        """The most bytes that the fill and all turns write."""
        return self.size + (self.turns + 1) * (self.jobs.write_bytes - self.size)

    def parameters(self) -> dict[str, Any]:
        """The parameters for the manifest and the result."""
        return {**self.jobs.parameters(), "turns": self.turns, "session": self.session}

    def work(self) -> dict[str, float]:
        """Bytes or seconds of each kind of work."""
        jobs = self.jobs.work()
        jobs["fill"] = jobs.get("fill", 0.0) - self.size
        work = {kind: (self.turns + 1) * amount for kind, amount in jobs.items()}
        return {**work, "fill": work.get("fill", 0.0) + self.size}


def check(plan: Plan) -> Plan:
    """Returns the plan.

    Raises:
        UsageError: too few turns for a significant result, or too many.
    """
    if not FEWEST <= plan.turns <= MOST:
        raise UsageError(
            f"--turns is {plan.turns}; it must be {FEWEST} to {MOST}: with fewer pairs no "
            "difference in three tested numbers can be significant"
        )
    return plan


def measure(session: RunSession, plan: Plan) -> None:
    """Measures all turns of one side, without other sides.

    Raises:
        UsageError, Interrupted, DeviceFailure, TargetError: as `workload.measure`.
    """
    jobs = workload.prepare_jobs(session, plan.jobs)
    workload.write_region(session, plan.jobs)
    for turn in range(-1, plan.turns):
        take(session, plan, jobs, turn)
    workload.check_uncached(session, plan.jobs)


def take(session: RunSession, plan: Plan, jobs: Sequence[PreparedJob], turn: int) -> None:
    """Runs the jobs of a turn, one after the other; turn -1 is the warm-up."""
    for number, prepared in enumerate(jobs):
        seed = prepared.job.seed + _SEEDS * ((turn + 1) * plan.sides + plan.place)
        job = msgspec.structs.replace(prepared.job, seed=seed)
        step = workload.step_of(prepared, number, max(0, turn))
        step = replace(step, phase="job" if turn >= 0 else "warm-up")
        workload.run_job_of(session, prepared, step, job)

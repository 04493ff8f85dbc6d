"""What a run of a sweep submits to the drive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from ssdlab.device import Job
from ssdlab.runner.session import RunSession
from ssdlab.sweep.measure import Plan, measure


def test_the_two_halves_of_the_overwriting_have_different_addresses() -> None:
    jobs: list[Job] = []
    session = SimpleNamespace(
        fill=lambda _: None, flush=lambda _: None, run=lambda _step, job: jobs.append(job)
    )
    plan: Any = SimpleNamespace(
        region=64 << 20, half=32 << 20, block=4096, depth=1, hint="none", skew=0.0, seed=5
    )
    measure(cast("RunSession", session), cast("Plan", plan))
    first, second = (job for job in jobs if job.op == "write")
    assert first.seed != second.seed
    assert first.pattern == second.pattern

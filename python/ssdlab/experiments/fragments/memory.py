"""The same commands on a drive in memory: what the host alone takes for them."""

from __future__ import annotations

from ssdlab.device import Extents, Job, open_memory, run_job
from ssdlab.errors import TargetError
from ssdlab.experiments.fragments.layout import WINDOW, Layout, Pieces, in_order
from ssdlab.experiments.fragments.plan import Plan
from ssdlab.experiments.fragments.reading import MEMORY, Ground, Reading, Turn, take_turns
from ssdlab.runner.session import RunSession


def measure(session: RunSession, plan: Plan) -> None:
    """Reads each degree from a loop device over memory; without one there is a warning.

    Raises:
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    stage = len(plan.layouts) + 1
    size = max(WINDOW, *(layout.span for layout in plan.layouts))
    try:
        with open_memory(size) as drive:
            _measure_on(session, plan, Ground(drive, size), stage)
    except TargetError as error:
        session.target.warn(
            "no-memory-drive",
            f"What the host alone takes is not known: {error}. The price of splitting is that of "
            "the same commands on a file that lies in order.",
        )


def _measure_on(session: RunSession, plan: Plan, ground: Ground, stage: int) -> None:
    readings = []
    for degree in plan.degrees:
        layout = Layout("worst", degree, plan.distance)
        pieces = in_order(1) if degree == 1 else layout.pieces(plan.seed, 0)
        _write(ground, layout, pieces)
        readings.append(Reading(MEMORY, layout, ground, pieces))
    turns = [Turn(stage, repeat, depth) for repeat in range(plan.repeats) for depth in plan.depths]
    take_turns(session, turns, lambda _: readings)


def _write(ground: Ground, layout: Layout, pieces: Pieces) -> None:
    """Gives the pieces memory of their own; no step of the run, for a resumed one needs it too."""
    job = Job(
        op="write",
        pattern=Extents(pieces),
        length_bytes=ground.size,
        block_bytes=layout.command,
        amount_bytes=WINDOW,
    )
    run_job(ground.drive, job).raise_if_failed("writing to memory")

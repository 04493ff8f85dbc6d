"""The layout on a drive without a file system, a twin or a block device: made of addresses."""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab.experiments.fragments.layout import WINDOW, Layout, moved
from ssdlab.experiments.fragments.plan import Plan
from ssdlab.experiments.fragments.reading import (
    Ground,
    Reading,
    Turn,
    fill_in_order,
    fill_pieces,
    take_turns,
    whole,
)
from ssdlab.runner.session import RunSession


def measure(session: RunSession, plan: Plan) -> None:
    """Writes in the order that the plan asks for, and reads; the first window lies in order.

    Raises:
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    by_address = plan.order == "address"
    drive = session.target.drive
    fill_in_order(session, Ground(drive, plan.size if by_address else WINDOW))
    ground = Ground(drive, plan.size)
    for stage, layout in enumerate(plan.layouts, 1):
        if not by_address:
            fill_pieces(session, ground, layout, moved(layout.pieces(plan.seed, 0), WINDOW), stage)

        def readings(repeat: int, layout: Layout = layout) -> Sequence[Reading]:
            # Where all was written in order, each repeat may have pieces and a window of its own:
            # none was read just before.
            draw = repeat if by_address else 0
            pieces = moved(layout.pieces(plan.seed, draw), WINDOW)
            window = draw * 7 % (plan.size // WINDOW) * WINDOW
            fragmented = Reading(layout.gap, layout, ground, pieces)
            return (fragmented, *whole(layout, ground, window))

        turns = [
            Turn(stage, repeat, depth) for repeat in range(plan.repeats) for depth in plan.depths
        ]
        take_turns(session, turns, readings)

"""Measurement of fragments: how much slower is a fragmented file, and what is the cause?

A file of 8 MiB in 1 to 256 pieces is read at several queue depths. In turn with it, a contiguous
file is read with the same commands: the time that these add is due to request splitting. The drive
causes any further time, because many pieces are on the same die. Source of layout and depths: the
published study of fragmented files (FAST '24).
"""

from __future__ import annotations

from collections.abc import Sequence

from ssdlab.device import Extents, Job, open_memory, run_job
from ssdlab.errors import TargetError
from ssdlab.experiments.fragments import files
from ssdlab.experiments.fragments.layout import WINDOW, Layout, contiguous, shifted, spread
from ssdlab.experiments.fragments.plan import Plan, plan
from ssdlab.experiments.fragments.reading import (
    MEMORY,
    FileRead,
    Region,
    fill_in_order,
    fill_pieces,
    read_in_turn,
    reference_reads,
)
from ssdlab.runner.session import RunSession

__all__ = ["Plan", "measure", "plan"]


def measure(session: RunSession, plan: Plan) -> None:
    """Makes each layout and reads it at each depth, in turn with a contiguous file.

    Raises:
        TargetError: the layout cannot be made in this directory.
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    if session.target.test_file is None:
        _measure_addresses(session, plan)
    else:
        files.measure(session, plan)
        session.target.check_uncached()
    if not session.target.is_virtual:
        _measure_memory(session, plan)


def _measure_addresses(session: RunSession, plan: Plan) -> None:
    """Lays out pieces by address on a twin or block device. The first window stays contiguous."""
    by_address = plan.order == "address"
    drive = session.target.drive
    fill_in_order(session, Region(drive, plan.size if by_address else WINDOW))
    session.rest(plan.settle_s)  # an SLC cache holds the last data: files that lie for long do not
    region = Region(drive, plan.size)
    for stage, layout in enumerate(plan.layouts, 1):
        if not by_address:
            pieces = shifted(layout.pieces(plan.seed, 0), WINDOW)
            fill_pieces(session, region, layout, pieces, stage)

        def reads(repeat: int, layout: Layout = layout) -> Sequence[FileRead]:
            # If the region was written in address order, each repeat reads other pieces and
            # another window, so that they were not read just before.
            draw = repeat if by_address else 0
            pieces = shifted(layout.pieces(plan.seed, draw), WINDOW)
            window = spread(draw, plan.size // WINDOW) * WINDOW
            fragmented = FileRead(layout.gap, layout, region, pieces)
            return (fragmented, *reference_reads(layout, region, window))

        read_in_turn(session, plan, stage, reads)


def _measure_memory(session: RunSession, plan: Plan) -> None:
    """Reads each degree from a loop device over memory: the host's share of the time.

    Warns if no loop device can be created.
    """
    size = max(WINDOW, *(layout.span for layout in plan.layouts))
    try:
        with open_memory(size) as drive:
            region, reads = Region(drive, size), []
            for degree in plan.degrees:
                layout = Layout("worst", degree, plan.distance)
                pieces = contiguous(1) if degree == 1 else layout.pieces(plan.seed, 0)
                # Not a recorded step: a resumed run has to write its new loop device again.
                job = Job(
                    op="write",
                    pattern=Extents(pieces),
                    length_bytes=size,
                    block_bytes=layout.command,
                    amount_bytes=WINDOW,
                )
                run_job(drive, job).raise_if_failed("writing to memory")
                reads.append(FileRead(MEMORY, layout, region, pieces))
            read_in_turn(session, plan, len(plan.layouts) + 1, lambda _: reads)
    except TargetError as error:
        session.target.warn(
            "no-memory-drive",
            f"The host's share of the read times was not measured: {error}. Request splitting is "
            "measured with the same commands on a contiguous file only.",
        )

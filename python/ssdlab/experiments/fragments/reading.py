"""Steps of fragments: reading a file of 8 MiB piece by piece, and writing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.device import Drive, Extents, Job
from ssdlab.experiments.fragments.layout import WINDOW, Layout, Pieces, contiguous
from ssdlab.experiments.fragments.plan import FILL_BLOCK, Plan
from ssdlab.runner.session import RunSession, Step
from ssdlab.units import format_size

FILL_DEPTH: Final = 4
IN_ORDER: Final = "in order"
FORWARD: Final = "forward"
"""The same commands as in `IN_ORDER`, from start to end."""
MEMORY: Final = "memory"


@dataclass(frozen=True)
class Region:
    """The first `size` bytes of a drive."""

    drive: Drive
    size: int


@dataclass(frozen=True)
class FileRead:
    """A read of 8 MiB in pieces, and the phase under which its step is recorded."""

    phase: str
    layout: Layout
    region: Region
    pieces: Pieces


def reference_reads(layout: Layout, region: Region, offset: int = 0) -> tuple[FileRead, ...]:
    """Reads of the window at `offset`: in one piece, and with the commands of the layout.

    The latter are read backwards and forward: in either order, commands may meet on a die.
    """
    one_piece = Layout(layout.gap, 1, layout.distance)
    backwards = contiguous(layout.degree, offset)
    return (
        FileRead(IN_ORDER, one_piece, region, contiguous(1, offset)),
        FileRead(IN_ORDER, layout, region, backwards),
        FileRead(FORWARD, layout, region, tuple(reversed(backwards))),
    )


def read_in_turn(
    session: RunSession, plan: Plan, stage: int, reads: Callable[[int], Sequence[FileRead]]
) -> None:
    """Runs all `reads` in turn, for each repeat and depth, so that drift affects all equally.

    Forward reads are only needed where a cause is derived, at depths at which commands can meet.
    """
    for repeat in range(plan.repeats):
        for depth in plan.depths:
            for file_read in reads(repeat):
                is_needed = depth > 1 and file_read.layout.degree == max(plan.degrees)
                if file_read.phase != FORWARD or is_needed:
                    _read(session, file_read, stage, repeat, depth)


def _read(session: RunSession, file_read: FileRead, stage: int, repeat: int, depth: int) -> None:
    layout = file_read.layout
    job = Job(
        op="read",
        pattern=Extents(file_read.pieces),
        length_bytes=file_read.region.size,
        block_bytes=layout.command,
        amount_bytes=WINDOW,
        queue_depth=depth,
    )
    parts = "adjacent parts" if file_read.phase in {IN_ORDER, FORWARD} else "pieces"
    label = f"reading {format_size(WINDOW)} in {layout.degree} {parts}, queue depth {depth}"
    case = f"depth {depth}"
    step = Step(file_read.phase, label, "read", stage, repeat, case=case, value=layout.degree)
    session.run(step, job, file_read.region.drive)


def fill_in_order(session: RunSession, region: Region, stage: int = 0) -> None:
    """Writes the whole region in address order and flushes it."""
    job = Job(
        op="write",
        length_bytes=region.size,
        # The size must be a multiple of the block, as a job writes only whole blocks.
        block_bytes=min(FILL_BLOCK, region.size & -region.size),
        amount_bytes=region.size,
        queue_depth=FILL_DEPTH,
    )
    label = f"writing {format_size(region.size)} sequentially"
    session.run(Step("fill", label, "fill", stage=stage, keeps_part=True), job, region.drive)
    session.flush(stage, region.drive)


def fill_pieces(
    session: RunSession, region: Region, layout: Layout, pieces: Pieces, stage: int
) -> None:
    """Writes only the pieces, in the order of the file, and flushes them."""
    job = Job(
        op="write",
        pattern=Extents(pieces),
        length_bytes=region.size,
        block_bytes=layout.command,
        amount_bytes=WINDOW,
    )
    label = f"writing only the {layout.degree} pieces"
    step = Step("fill", label, "fill", stage=stage, value=layout.degree, keeps_part=True)
    session.run(step, job, region.drive)
    session.flush(stage, region.drive)

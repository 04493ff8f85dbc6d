"""How a file of 8 MiB is read, in pieces or in order: one job a read, by the same commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ssdlab.device import Drive, Extents, Job
from ssdlab.experiments.fragments.layout import WINDOW, Layout, Pieces, in_order
from ssdlab.experiments.fragments.plan import FILL_BLOCK
from ssdlab.runner.session import RunSession, Step
from ssdlab.units import format_size

FILL_DEPTH: Final = 4
IN_ORDER: Final = "in order"
MEMORY: Final = "memory"


@dataclass(frozen=True)
class Ground:
    """A drive, and how many bytes from its start on belong to the test."""

    drive: Drive
    size: int


@dataclass(frozen=True)
class Turn:
    """When a read is made: its stage, its repeat, and how many commands are in flight."""

    stage: int
    repeat: int
    depth: int


@dataclass(frozen=True)
class Reading:
    """What is read: the phase it counts for, the pieces by `layout`, and where they are."""

    phase: str
    layout: Layout
    ground: Ground
    pieces: Pieces


def read(session: RunSession, reading: Reading, turn: Turn) -> None:
    """Reads the pieces once, in their order."""
    layout = reading.layout
    job = Job(
        op="read",
        pattern=Extents(reading.pieces),
        length_bytes=reading.ground.size,
        block_bytes=layout.command,
        amount_bytes=WINDOW,
        queue_depth=turn.depth,
    )
    where = "pieces" if reading.phase != IN_ORDER else "parts in order"
    label = f"reading {format_size(WINDOW)} in {layout.degree} {where}, {turn.depth} at a time"
    step = Step(
        reading.phase,
        label,
        "read",
        stage=turn.stage,
        repeat=turn.repeat,
        case=f"depth {turn.depth}",
        value=layout.degree,
    )
    session.run(step, job, reading.ground.drive)


def whole(layout: Layout, ground: Ground, offset: int = 0) -> tuple[Reading, Reading]:
    """The window at `offset` in one piece, and by the layout's commands, in order."""
    one = Layout(layout.gap, 1, layout.distance)
    return (
        Reading(IN_ORDER, one, ground, in_order(1, offset)),
        Reading(IN_ORDER, layout, ground, in_order(layout.degree, offset)),
    )


def take_turns(
    session: RunSession, turns: Sequence[Turn], readings: Callable[[int], Sequence[Reading]]
) -> None:
    """Makes all readings of a repeat, then those of the next: what drifts touches all alike."""
    for turn in turns:
        for reading in readings(turn.repeat):
            read(session, reading, turn)


def fill_in_order(session: RunSession, ground: Ground, stage: int = 0) -> None:
    """Writes all of the ground in order of its addresses."""
    job = Job(
        op="write",
        length_bytes=ground.size,
        # Whole blocks only: a last part would not be written.
        block_bytes=min(FILL_BLOCK, ground.size & -ground.size),
        amount_bytes=ground.size,
        queue_depth=FILL_DEPTH,
    )
    label = f"writing {format_size(ground.size)} in order"
    session.run(Step("fill", label, "fill", stage=stage, keeps_part=True), job, ground.drive)
    session.flush(stage, ground.drive)


def fill_pieces(
    session: RunSession, ground: Ground, layout: Layout, pieces: Pieces, stage: int
) -> None:
    """Writes the pieces alone, one after the other in the order of the file."""
    job = Job(
        op="write",
        pattern=Extents(pieces),
        length_bytes=ground.size,
        block_bytes=layout.command,
        amount_bytes=WINDOW,
    )
    label = f"writing {layout.degree} pieces alone"
    step = Step("fill", label, "fill", stage=stage, value=layout.degree, keeps_part=True)
    session.run(step, job, ground.drive)
    session.flush(stage, ground.drive)

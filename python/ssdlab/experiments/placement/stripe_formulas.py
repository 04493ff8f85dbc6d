"""The two laws that placement fights: of the stripe (by halves), and of equal gaps (resonance)."""

from __future__ import annotations

import random
from typing import Final

from ssdlab.device import Aligned, Job, Listed
from ssdlab.experiments.placement.drives import Subject
from ssdlab.experiments.placement.workloads import Listing
from ssdlab.runner.session import RunSession, Step

KIB: Final = 1 << 10
MIB: Final = 1 << 20
FILLED: Final = 2048 * MIB + 8 * MIB
WINDOW: Final = 8 * MIB
DISTANCE: Final = 8 * MIB
ALIGNMENTS: Final = tuple(4 * KIB << half for half in range(9))
DEGREES: Final = tuple(1 << power for power in range(9))
PROBES: Final = 4000
DEPTH: Final = 32
LONGEST: Final = 256 * KIB


def measure(session: RunSession, subject: Subject) -> None:
    """Fills a part in order, then reads it at multiples of 4 KiB to 1 MiB, and in pieces.

    Raises:
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    session.fill(FILLED, 0, subject.drive)
    for alignment in ALIGNMENTS:
        job = Job(
            op="read",
            pattern=Aligned(alignment),
            length_bytes=FILLED,
            block_bytes=4 * KIB,
            amount_bytes=PROBES * 4 * KIB,
            queue_depth=DEPTH,
        )
        label = f"reading 4 KiB at multiples of {alignment // KIB} KiB"
        step = Step("stripe", label, "read", value=float(alignment))
        session.run(step, job, subject.drive)
    for case in ("equal gaps", "random gaps"):
        for degree in DEGREES:
            _read_in_pieces(session, subject, case, degree)


def _read_in_pieces(session: RunSession, subject: Subject, case: str, degree: int) -> None:
    piece = WINDOW // degree
    stream = random.Random(f"{case} {degree}")
    places = (DISTANCE - piece) // (4 * KIB) + 1
    shift = stream.randrange if case == "random gaps" else lambda _: 0
    starts = [number * DISTANCE + shift(places) * 4 * KIB for number in range(degree)]
    command = min(piece, LONGEST)
    parts: Listing = [
        (start + at, command, "nothing") for start in starts for at in range(0, piece, command)
    ]
    job = Job(
        op="read",
        pattern=Listed(tuple(parts)),
        length_bytes=FILLED,
        block_bytes=command,
        amount_bytes=WINDOW,
        queue_depth=DEPTH,
    )
    label = f"reading 8 MiB in {degree} pieces, {case}"
    session.run(
        Step("resonance", label, "read", case=case, value=float(degree)), job, subject.drive
    )

"""Two effects that placement has to avoid: reads at multiples of the stripe, and equal gaps."""

from __future__ import annotations

import random
from typing import Final

from ssdlab.device import Aligned, Drive, Job, Listed
from ssdlab.experiments.placement.workloads import Writes
from ssdlab.runner.session import RunSession, Step

KIB: Final = 1 << 10
MIB: Final = 1 << 20
FILLED: Final = 2048 * MIB + 8 * MIB
WINDOW: Final = 8 * MIB
DISTANCE: Final = 8 * MIB
ALIGNMENTS: Final = tuple(4 * KIB << shift for shift in range(9))
DEGREES: Final = tuple(1 << shift for shift in range(9))
PROBES: Final = 4000
DEPTH: Final = 32
COMMAND_MAX: Final = 256 * KIB


def measure(session: RunSession, drive: Drive) -> None:
    """Fills a region in order, then reads at multiples of 4 KiB to 1 MiB, and fragmented files.

    Raises:
        Interrupted, DeviceFailure: as `RunSession.run_plan`.
    """
    session.fill(FILLED, 0, drive)
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
        session.run(Step("stripe", label, "read", value=float(alignment)), job, drive)
    for case in ("equal gaps", "random gaps"):
        for degree in DEGREES:
            _read_pieces(session, drive, case, degree)


def _read_pieces(session: RunSession, drive: Drive, case: str, degree: int) -> None:
    """Reads 8 MiB in `degree` pieces, one in each slot of `DISTANCE` bytes."""
    piece = WINDOW // degree
    stream = random.Random(f"{case} {degree}")
    offsets = (DISTANCE - piece) // (4 * KIB) + 1
    starts = [
        number * DISTANCE + (stream.randrange(offsets) * 4 * KIB if case == "random gaps" else 0)
        for number in range(degree)
    ]
    command = min(piece, COMMAND_MAX)
    requests: Writes = [
        (start + at, command, "nothing") for start in starts for at in range(0, piece, command)
    ]
    job = Job(
        op="read",
        pattern=Listed(tuple(requests)),
        length_bytes=FILLED,
        block_bytes=command,
        amount_bytes=WINDOW,
        queue_depth=DEPTH,
    )
    label = f"reading 8 MiB in {degree} pieces, {case}"
    session.run(Step("resonance", label, "read", case=case, value=float(degree)), job, drive)

"""`ssdlab run fragments`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

import typer

from ssdlab.cli import options
from ssdlab.target import NO_CONSENT, RESULTS

app = typer.Typer(add_completion=False)


class _Gaps(StrEnum):
    WORST = "worst"
    RANDOM = "random"
    BOTH = "both"


class _Order(StrEnum):
    ADDRESS = "address"
    FILE = "file"


_CHOSEN: Final[dict[_Gaps, tuple[Literal["worst", "random"], ...]]] = {
    _Gaps.WORST: ("worst",),
    _Gaps.RANDOM: ("random",),
    _Gaps.BOTH: ("worst", "random"),
}
_Size = Annotated[
    str | None,
    typer.Option(help="Room for the layout: less than 2056MiB has room for fewer pieces."),
]
_Distance = Annotated[
    str | None, typer.Option(help="From one piece to the next, or in the mean [8MiB].")
]
_Gap = Annotated[
    _Gaps, typer.Option("--gaps", help="Gaps of equal length (the worst case), random, or both.")
]
_Written = Annotated[
    _Order,
    typer.Option("--order", help="Write all by address, or the pieces alone in the file's order."),
]
_Host = Annotated[
    bool, typer.Option("--host/--no-host", help="Whether a twin is read by a host that takes time.")
]


@app.command(
    name="fragments",
    epilog="Example: ssdlab run fragments twin:samsung-980-pro /mnt/data --quick",
)
def run(
    targets: options.Targets,
    *,
    size: _Size = None,
    distance: _Distance = None,
    gaps: _Gap = _Gaps.BOTH,
    order: _Written = _Order.ADDRESS,
    host: _Host = True,
    quick: options.Quick = False,
    capacity: options.Capacity = None,
    destroy_data: options.DestroyData = NO_CONSENT,
    out: options.Out = RESULTS,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
) -> int:
    """What does a file in pieces cost to read, and is it the host or the drive?

    Lays 8 MiB out in 1 to 256 pieces, 8 MiB apart, and reads them one and 32 commands at a time,
    beside a file in one piece. Gaps of equal length are the worst case: all pieces fall on few
    dies. In a directory (ext4 or xfs) the layout is made of files and looked up.
    """
    from ssdlab.cli.run_experiment import conduct
    from ssdlab.experiments.questions import Fragments

    question = Fragments(
        size=size,
        distance=distance,
        gaps=_CHOSEN[gaps],
        order=order.value,
        host=host,
        quick=quick,
    )
    wishes = options.OutputOptions(out, json, quiet, yes)
    parsed = options.parse_targets(targets, capacity)
    return conduct(question, parsed, destroy_data, wishes, seed)

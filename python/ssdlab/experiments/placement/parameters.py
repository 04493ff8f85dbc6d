"""Parameters of `placement`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from ssdlab.runner.parameters import NAMES, Parameter, Parameters, Quick, percentages

HOST_US: Final = 66.0
"""Host time between two reads of 1 MiB, fitted to five figures of the published study."""


@dataclass(frozen=True, kw_only=True)
class Placement(Parameters):
    """Which placement policy of the drive keeps files fast to read, and what does it cost?

    Twins that differ only in `ftl.placement` get the same writes: files that grow or are
    overwritten piece by piece, on new drives and on drives that collect garbage. Then the files
    are read. Twins only: ssdlab cannot send hints to real drives.
    """

    example: ClassVar = "placement twin:placement-study"
    on_twins_only: ClassVar = True

    placements: Annotated[
        tuple[str, ...],
        Parameter("Some of striped,hinted,inferred,packed (all of them).", spelling=NAMES),
    ] = ()
    spare: Annotated[
        tuple[float, ...],
        Parameter(
            "Spare areas of the drives that collect garbage.", spelling=percentages("--spare")
        ),
    ] = (0.07, 0.28)
    drive_writes: Annotated[
        float | None,
        Parameter("Overwrite a collecting drive this many times first (3; with --quick 1)."),
    ] = None
    host_us: Annotated[
        float, Parameter("Host time between two reads of 1 MiB, in microseconds.")
    ] = HOST_US
    plots: Annotated[
        bool,
        Parameter("Also measure the effects of stripe and of equal gaps.", "--plots/--no-plots"),
    ] = True
    quick: Quick = False

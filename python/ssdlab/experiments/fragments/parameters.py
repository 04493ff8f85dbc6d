"""Parameters of `fragments`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from ssdlab.runner.parameters import Parameter, Parameters, Quick, Size, Spelling

Gap = Literal["worst", "random"]
GAPS: Final[tuple[Gap, ...]] = ("worst", "random")


def _gaps(text: str) -> tuple[str, ...]:
    return GAPS if text == "both" else (text,)


def _spelled(gaps: tuple[str, ...]) -> str:
    return gaps[0] if len(gaps) == 1 else "both"


@dataclass(frozen=True, kw_only=True)
class Fragments(Parameters):
    """How much slower is a fragmented file to read, and is the host or the drive the cause?

    Lays out 8 MiB in 1 to 256 pieces, 8 MiB apart, and reads them with 1 and with 32 commands in
    flight, next to a file in one piece. Gaps of equal length are the worst case: all pieces fall
    on few dies. In a directory (ext4 or xfs) files are laid out this way, and FIEMAP checks it.
    """

    example: ClassVar = "fragments twin:samsung-980-pro /mnt/data --quick"

    size: Annotated[
        Size | None,
        Parameter("Space for the layout; less than 2056MiB leaves room for fewer pieces."),
    ] = None
    distance: Annotated[
        Size | None, Parameter("Distance from one piece to the next, or its mean [8MiB].")
    ] = None
    gaps: Annotated[
        tuple[Gap, ...],
        Parameter(
            "Gaps of equal length (the worst case), of random length, or both.",
            spelling=Spelling(_gaps, _spelled, ("worst", "random", "both")),
        ),
    ] = GAPS
    order: Annotated[
        Literal["address", "file"],
        Parameter("Write everything by address, or only the pieces, in the order of the file."),
    ] = "address"
    host: Annotated[
        bool,
        Parameter(
            "Whether reading a twin includes a model of the host's time.", "--host/--no-host"
        ),
    ] = True
    quick: Quick = False

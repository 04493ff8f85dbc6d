"""Parameters of `split`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ssdlab.runner.parameters import MIB, SIZE_HELP, Parameter, Parameters, Quick, Size


@dataclass(frozen=True, kw_only=True)
class Split(Parameters):
    """What does it cost to read the same bytes with many small commands?

    Writes a region [256MiB] sequentially and waits for a minute, so that an SLC cache can empty
    itself. Reads 8 MiB windows of it with 1, 2, 4 ... 2048 commands, at queue depths 1 and 32.
    Shows the cost of splitting alone, without conflicts inside the drive.
    """

    example: ClassVar = "split twin:toshiba-xg5 /mnt/data --quick"

    size: Annotated[
        Size | None,
        Parameter(SIZE_HELP, least=8 * MIB, step=8 * MIB, label="Region", key="size_mib"),
    ] = None
    quick: Quick = False

"""Parameters of `trim`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ssdlab.runner.parameters import MIB, SIZE_HELP, Parameter, Parameters, Quick, Size


@dataclass(frozen=True, kw_only=True)
class Trim(Parameters):
    """Does a discard (TRIM) reach the flash, and which layer stops it?

    Prints what each layer declares. Then marks a file [32MiB], deletes it, discards its blocks,
    and reads them from the device itself. Without root: only what is declared, and what was sent.
    """

    example: ClassVar = "trim /mnt/data"

    size: Annotated[
        Size | None, Parameter(SIZE_HELP, least=4 * MIB, step=MIB, label="Marked", key="size_mib")
    ] = None
    quick: Quick = False

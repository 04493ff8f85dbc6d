"""Parameters of `suite`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ssdlab.runner.parameters import MIB, SIZE_HELP, Parameter, Parameters, Quick, Size


@dataclass(frozen=True, kw_only=True)
class Suite(Parameters):
    """The usual benchmark table: sequential, random 4 KiB, 4 KiB x 64, access time, with spread.

    Reads and writes a file [1GiB] three times; the same with zeros (does the controller
    compress?), with O_DSYNC, and through the page cache after the file was evicted from it.
    """

    example: ClassVar = "suite twin:intel-s3510-480 /mnt/data --quick"

    size: Annotated[
        Size | None, Parameter(SIZE_HELP, least=16 * MIB, step=MIB, label="File", key="size_mib")
    ] = None
    quick: Quick = False

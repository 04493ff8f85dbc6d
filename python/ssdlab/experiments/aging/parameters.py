"""Parameters of `aging`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ssdlab.runner.parameters import MIB, Duration, Parameter, Parameters, Size


@dataclass(frozen=True, kw_only=True)
class Aging(Parameters):
    """Do random writes slow this drive's sequential reads, and does idle time restore them?

    Writes a file sequentially and reads it, overwrites it at random by growing amounts, and reads
    it again after each amount. In a directory, 5 % of the file system stays free (at
    least 1 GiB, at most 8 GiB), and the file is always removed.
    """

    example: ClassVar = "aging twin:toshiba-xg5 /mnt/data --size 1GiB --quick"

    size: Annotated[
        Size | None,
        Parameter(
            "Size of the test file [4096MiB, or 512MiB with --quick]; the amounts that overwrite "
            "it scale with it.",
            least=16 * MIB,
            step=MIB,
            label="File",
            key="size_mib",
        ),
    ] = None
    quick: Annotated[bool, Parameter("A smaller file, and rests of a tenth of the length.")] = False
    rest: Annotated[
        Duration,
        Parameter(
            "After the last read, leave the drive idle for this long and read once more.",
            most=365 * 86_400.0,
            label="Long rest at the end",
            key="long_rest_s",
        ),
    ] = "0"

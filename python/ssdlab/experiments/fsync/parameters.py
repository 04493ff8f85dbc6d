"""Parameters of `fsync`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from ssdlab.runner.parameters import MIB, SIZE_HELP, Parameter, Parameters, Quick, Size


@dataclass(frozen=True, kw_only=True)
class Fsync(Parameters):
    """What does a durable write cost, and does the drive honour a flush?

    Reads and writes 16 KiB at random (60 % reads) in a file [1GiB], at queue depths 1 and 16, with
    direct and buffered I/O, and with nothing, fsync, fdatasync or O_DSYNC for each write.
    """

    example: ClassVar = "fsync twin:toshiba-xg5 /mnt/data --quick"

    size: Annotated[
        Size | None, Parameter(SIZE_HELP, least=16 * MIB, step=MIB, label="File", key="size_mib")
    ] = None
    data_sheet: Annotated[
        Literal["protected", "volatile", "unknown"],
        Parameter(
            "What the data sheet says about the write cache when power fails. Timing alone cannot "
            "tell power-loss protection from a drive that ignores flushes.",
            label="Write cache by its data sheet",
            key="data_sheet",
        ),
    ] = "unknown"
    quick: Quick = False

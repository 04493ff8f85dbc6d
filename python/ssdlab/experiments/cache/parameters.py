"""Parameters of `cache`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ssdlab.runner.parameters import MIB, SIZE_HELP, Parameter, Parameters, Quick, Size


@dataclass(frozen=True, kw_only=True)
class Cache(Parameters):
    """How much data do the write buffer and SLC cache absorb, and how fast do they recover?

    Writes a region sequentially (16GiB, or 1GiB with --quick; half of a twin or block device, or an
    eighth with --quick) until the speed drops, then again after a flush and after idle times of
    different lengths.
    """

    example: ClassVar = "cache twin:toshiba-xg5 /mnt/data --size 2GiB --quick"

    size: Annotated[
        Size | None,
        Parameter(SIZE_HELP, least=16 * MIB, step=MIB, label="Region", key="size_mib"),
    ] = None
    quick: Quick = False

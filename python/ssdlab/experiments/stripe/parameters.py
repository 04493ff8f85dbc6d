"""Parameters of `stripe`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ssdlab.runner.parameters import MIB, SIZE_HELP, Parameter, Parameters, Quick, Size


@dataclass(frozen=True, kw_only=True)
class Stripe(Parameters):
    """Over how many dies, and in what chunks, does a drive spread consecutive addresses?

    Writes a region [1GiB] sequentially. Reads 4 KiB at random multiples of an alignment, with 32
    reads in flight. The alignments at which reads collide show chunk and stripe, or that there is
    no regular stripe.
    """

    example: ClassVar = "stripe twin:samsung-980-pro --capacity 8GiB"

    size: Annotated[
        Size | None,
        Parameter(SIZE_HELP, least=64 * MIB, step=MIB, label="Region", key="size_mib"),
    ] = None
    quick: Quick = False

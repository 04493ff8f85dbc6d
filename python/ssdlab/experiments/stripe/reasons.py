"""What a search says of the layout that it found, or did not find."""

from __future__ import annotations

from typing import Final

from ssdlab.experiments.stripe.probes import KIB
from ssdlab.experiments.stripe.repeats import COUNTED, Chunks, Repeats

EDGES: Final = 8
"""The most chunks whose ends are tested."""
ELSEWHERE: Final = "Repeat the run on a trimmed drive, with another --size"
CONFLICT: Final = (
    "after which the layout repeats, some units occur more often than others, or dies wait for a "
    "slow channel that they share, or other work disturbed the reads."
)
SMALL_CHUNKS: Final = (
    "units may be channels with several dies, and chunks are too small to tell them apart. The "
    "data sheet's number of channels decides"
)
DOUBTFUL: Final = (
    "at a multiple of this stripe reads are a little slower, so data transfer may limit a unit, "
    "which may then be a channel with several dies. The data sheet's number of channels decides"
)
TRANSFER: Final = (
    "reads of two mapping units take twice as long as reads of one, so data transfer may limit a "
    "unit, which may then be a channel with several dies. The data sheet's number of channels "
    "decides"
)


def tests_of(chunks: Chunks, repeats: Repeats) -> str:
    """Which tests the layout passed."""
    ends = f"the ends of {len(chunks.spaced(EDGES))} chunks were confirmed"
    if repeats.distance is not None:
        repeated = f"{repeats.count} chunks {kib(repeats.distance)} apart"
        return f"{ends}, and {repeated} on the units of {1 + len(chunks.spaced(COUNTED))} chunks"
    return f"{ends}, and that {1 + len(chunks.compared())} chunks are on different units"


def kib(size: int) -> str:
    """A size in KiB."""
    return f"{size // KIB} KiB"

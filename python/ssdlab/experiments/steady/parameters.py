"""Parameters of `steady`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from ssdlab.runner.parameters import MIB, Parameter, Parameters, Quick, Size, percentages

DEPTH: Final = 32
REGION_MIN: Final = 16 * MIB


@dataclass(frozen=True, kw_only=True)
class Steady(Parameters):
    """At which rate can writes continue, and what would more spare area change?

    Fills a region in order and overwrites it at random in rounds of a fifth of it, until the rate
    is steady by three criteria (change over rounds, change points, a minimum of bytes written), or
    reports that it is not. Estimates hidden spare and write amplification from the curve and from
    the drive's own counters.
    """

    example: ClassVar = "steady twin:toshiba-xg5 --capacity 4GiB --spare 7%,15%,28%"
    sized_by: ClassVar = "region"

    region: Annotated[
        Size | None,
        Parameter(
            "Bytes to write to (all of a twin or block device; 4096MiB of a directory, 512MiB with "
            "--quick).",
            option="--size",
            also=("--region",),
            least=REGION_MIN,
            step=MIB,
            label="Region",
            key="region_mib",
        ),
    ] = None
    drive_writes: Annotated[
        float | None,
        Parameter(
            "Overwrite the region this many times (default: until the rate is steady).",
            label="Random writes",
            key="drive_writes",
        ),
    ] = None
    spare: Annotated[
        tuple[float, ...],
        Parameter(
            "Repeat with these shares of the region trimmed and unused: 7%,15%,28%.",
            spelling=percentages("--spare"),
            label="Left unused",
            key="spare_percent",
        ),
    ] = ()
    slc_cache: Annotated[
        Size | None,
        Parameter(
            "Most bytes that the drive's SLC cache holds, by its data sheet or `run cache`; 0B: it "
            "has none. A rate counts as steady only after more was written.",
            label="SLC cache",
            key="slc_cache_mib",
        ),
    ] = None
    pattern: Annotated[
        str, Parameter("random, sequential or zipf:THETA.", label="Pattern", key="pattern")
    ] = "random"
    block_size: Annotated[
        Size, Parameter("Bytes per write.", label="Write requests", key="write_block_kib")
    ] = "4KiB"
    depth: Annotated[
        int, Parameter("Writes in flight.", label="In flight", key="write_queue_depth")
    ] = DEPTH
    quick: Quick = False

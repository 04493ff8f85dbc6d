"""Parameters of `replay`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from ssdlab.errors import UsageError
from ssdlab.runner.parameters import MIB, SIZE_HELP, Parameter, Parameters, Size

if TYPE_CHECKING:
    from ssdlab import device

TRACE_FORMATS: Final = (
    "blktrace", "fio", "systor", "msr", "spc", "alibaba", "tencent", "mqsim", "blkparse",
)  # fmt: skip
"""Trace formats that can be read, plain or compressed with gzip or zstd."""
SPEED_LEAST, SPEED_MOST = 1e-6, 1e6
DEPTH_MOST: Final = 1024


@dataclass(frozen=True, kw_only=True)
class Replay(Parameters):
    """Replay a recorded I/O trace on a drive, a directory or a twin.

    Reads MSR Cambridge, SPC (UMass), MQSim, blkparse, blktrace, fio iolog (2 and 3), Alibaba,
    Tencent and SYSTOR '17 traces, and recognises the format by the first lines. Memory use does
    not grow with the trace.
    """

    example: ClassVar = "replay trace.csv twin:toshiba-xg5 --speed 1"

    trace: Annotated[
        Path | str,
        Parameter(
            "A trace, plain or compressed with gzip or zstd. For blktrace, name any one of its "
            "per-CPU files.",
            argument=True,
            metavar="TRACE",
        ),
    ]
    speed: Annotated[
        float | None,
        Parameter(
            "Keep the trace's own pace (1), or this multiple of it (as fast as --depth allows)."
        ),
    ] = None
    depth: Annotated[int, Parameter("Maximum number of requests in flight.")] = 32
    volume: Annotated[int | None, Parameter("Replay only this volume of several.")] = None
    together: Annotated[
        bool, Parameter("Map all volumes to the same addresses instead of side by side.")
    ] = False
    format: Annotated[
        str | None, Parameter(f"Format, instead of recognising it: {', '.join(TRACE_FORMATS)}.")
    ] = None
    any_order: Annotated[
        bool, Parameter("Accept timestamps that go back by more than a second.")
    ] = False
    fills: Annotated[bool, Parameter("Do not write the region first.", off="--as-it-is")] = True
    size: Annotated[Size | None, Parameter(SIZE_HELP, least=MIB, step=MIB)] = None

    def trace_input(self) -> device.Replay:
        """The trace and the options for reading it.

        Raises:
            UsageError: no such file, an unknown format, or a number out of range.
        """
        from ssdlab.device import Replay as TraceInput

        if not os.path.lexists(self.trace):
            raise UsageError(
                f"{self.trace}: there is no such file; give a trace of one of the formats "
                f"{', '.join(TRACE_FORMATS)}"
            )
        if not 1 <= self.depth <= DEPTH_MOST:
            raise UsageError(f"--depth is {self.depth}; it must be 1 to {DEPTH_MOST}")
        self.size_bytes(MIB)
        if self.format not in {None, *TRACE_FORMATS}:
            raise UsageError(f"--format is {self.format!r}; it must be {', '.join(TRACE_FORMATS)}")
        if self.speed is not None and not SPEED_LEAST <= self.speed <= SPEED_MOST:
            raise UsageError(
                f"--speed is {self.speed:g}; it must be {SPEED_LEAST:g} to {SPEED_MOST:g} times "
                "the trace's own pace"
            )
        return TraceInput(
            str(self.trace), self.format, self.volume, self.any_order, speed=self.speed
        )

    @cached_property
    def statistics(self) -> device.TraceStatistics:
        """Statistics of the trace, from one pass over all of it.

        Raises:
            UsageError: as `trace_input`, or the trace cannot be read.
        """
        from ssdlab.device import read_trace_statistics

        return read_trace_statistics(self.trace_input())

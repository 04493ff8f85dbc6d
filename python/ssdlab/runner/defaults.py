"""Values of parameters that the command line's help shows without loading an experiment."""

from __future__ import annotations

from typing import Final

STEADY_DEPTH: Final = 32
"""Writes in flight."""
PLACEMENT_HOST_US: Final = 66.0
"""The study's host between two reads of 1 MiB: fitted to its five figures on the twin."""
TRACE_FORMATS: Final = (
    "blktrace", "fio", "systor", "msr", "spc", "alibaba", "tencent", "mqsim", "blkparse",
)  # fmt: skip
"""Trace formats that can be read, plain or packed by gzip or zstd."""

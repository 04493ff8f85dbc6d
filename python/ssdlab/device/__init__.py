"""Drives to run jobs on: a twin or a real one behind one interface.

The only importer of the native module: above it a twin and a real drive look alike.
"""

from ssdlab._native import Drive
from ssdlab.device.fio import FioJob, parse_fio, to_fio
from ssdlab.device.host import HostLoad, HostWatch
from ssdlab.device.jobs import OPS, Job, Outcome, run_job
from ssdlab.device.kinds import (
    Aligned,
    Compressible,
    Dedupable,
    Extents,
    FlushEvery,
    Rate,
    Stamped,
    Strided,
    Zipf,
)
from ssdlab.device.real import (
    RealOptions,
    Verified,
    nop_rate,
    open_engine,
    open_null,
    open_real,
    verify,
)
from ssdlab.device.simulated import describe_twin, open_twin

__all__ = [
    "OPS",
    "Aligned",
    "Compressible",
    "Dedupable",
    "Drive",
    "Extents",
    "FioJob",
    "FlushEvery",
    "HostLoad",
    "HostWatch",
    "Job",
    "Outcome",
    "Rate",
    "RealOptions",
    "Stamped",
    "Strided",
    "Verified",
    "Zipf",
    "describe_twin",
    "nop_rate",
    "open_engine",
    "open_null",
    "open_real",
    "open_twin",
    "parse_fio",
    "run_job",
    "to_fio",
    "verify",
]

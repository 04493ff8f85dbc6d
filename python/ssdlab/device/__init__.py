"""Drives to run jobs on: a twin or a real one behind one interface.

The only importer of the native module: above it a twin and a real drive look alike.
"""

from ssdlab._native import Drive, Server
from ssdlab.device.blocks import Blocks, discard, sync_file_system, trim_free
from ssdlab.device.control import Control, CutTold, Power
from ssdlab.device.fio import FioJob, parse_fio, to_fio
from ssdlab.device.host import HostLoad, HostWatch
from ssdlab.device.jobs import OPS, Job, Op, Outcome, run_job
from ssdlab.device.kinds import (
    Aligned,
    Compressible,
    Dedupable,
    Extents,
    FlushEvery,
    Listed,
    Rate,
    Said,
    Stamped,
    Stream,
    Strided,
    Zipf,
    decode,
    encode,
)
from ssdlab.device.memory import open_memory
from ssdlab.device.real import (
    Engine,
    RealOptions,
    Verified,
    nop_rate,
    open_engine,
    open_null,
    open_real,
    verify,
)
from ssdlab.device.served import ServeOptions, serve
from ssdlab.device.simulated import describe_twin, open_twin
from ssdlab.device.traces import Replay, TraceStatistics, look_at
from ssdlab.device.watching import Look, Rates, Watcher

__all__ = [
    "OPS",
    "Aligned",
    "Blocks",
    "Compressible",
    "Control",
    "CutTold",
    "Dedupable",
    "Drive",
    "Engine",
    "Extents",
    "FioJob",
    "FlushEvery",
    "HostLoad",
    "HostWatch",
    "Job",
    "Listed",
    "Look",
    "Op",
    "Outcome",
    "Power",
    "Rate",
    "Rates",
    "RealOptions",
    "Replay",
    "Said",
    "ServeOptions",
    "Server",
    "Stamped",
    "Stream",
    "Strided",
    "TraceStatistics",
    "Verified",
    "Watcher",
    "Zipf",
    "decode",
    "describe_twin",
    "discard",
    "encode",
    "look_at",
    "nop_rate",
    "open_engine",
    "open_memory",
    "open_null",
    "open_real",
    "open_twin",
    "parse_fio",
    "run_job",
    "serve",
    "sync_file_system",
    "to_fio",
    "trim_free",
    "verify",
]

"""Drives: twins and real ones behind one interface. The only importer of the native module."""

from ssdlab._native import Drive, Server
from ssdlab.device.control import Control, CutResult, Power
from ssdlab.device.discard import DirectReader, discard, sync_file_system, trim_free
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
    Stamped,
    Stream,
    Strided,
    WriteHint,
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
from ssdlab.device.traces import Replay, TraceStatistics, read_trace_statistics
from ssdlab.device.watching import Rates, Sample, Watcher

__all__ = [
    "OPS",
    "Aligned",
    "Compressible",
    "Control",
    "CutResult",
    "Dedupable",
    "DirectReader",
    "Drive",
    "Engine",
    "Extents",
    "FioJob",
    "FlushEvery",
    "HostLoad",
    "HostWatch",
    "Job",
    "Listed",
    "Op",
    "Outcome",
    "Power",
    "Rate",
    "Rates",
    "RealOptions",
    "Replay",
    "Sample",
    "ServeOptions",
    "Server",
    "Stamped",
    "Stream",
    "Strided",
    "TraceStatistics",
    "Verified",
    "Watcher",
    "WriteHint",
    "Zipf",
    "decode",
    "describe_twin",
    "discard",
    "encode",
    "nop_rate",
    "open_engine",
    "open_memory",
    "open_null",
    "open_real",
    "open_twin",
    "parse_fio",
    "read_trace_statistics",
    "run_job",
    "serve",
    "sync_file_system",
    "to_fio",
    "trim_free",
    "verify",
]

//! Traces: recorded requests of a host to its drive, read from a file entry by entry.
//!
//! A trace is read twice and never kept in memory: `Statistics::collect` checks every entry and
//! finds the ends of the volumes, then a job with a `Replay` submits the requests to a device.

mod fields;
mod file;
mod format;
mod merged;
mod reader;
mod replay;
mod sample;
mod statistics;

pub use file::TraceError;
pub use format::Format;
pub use reader::{ReadOptions, Trace};
pub use replay::Replay;
pub(crate) use replay::{ReplayArea, TraceRequests};
pub use statistics::Statistics;

use ssdlab_device::Op;
use ssdlab_time::Nanos;

/// One entry of a trace, in the trace's own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time on the trace's clock; from a reader, relative to the first entry.
    pub at: Nanos,
    /// The operation.
    pub op: Op,
    /// The volume, if the trace has several.
    pub volume: u32,
    /// First byte on the volume; 0 for a flush.
    pub offset_bytes: u64,
    /// Length in bytes; 0 for a flush.
    pub length_bytes: u64,
    /// Whether a write is durable on completion (FUA).
    pub durable: bool,
}

impl Entry {
    /// An entry of volume 0 that is not durable.
    pub const fn new(at: Nanos, op: Op, offset_bytes: u64, length_bytes: u64) -> Self {
        Self { at, op, volume: 0, offset_bytes, length_bytes, durable: false }
    }

    /// The byte after the last one.
    pub const fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }
}

//! Traces: what some host once asked of its drive, read from a file entry by entry.
//!
//! A trace is read twice and never kept: `Statistics::of` checks every entry and learns how far the
//! volumes reach, then a job with a `Replay` asks a device for them. Memory does not grow with it.

mod error;
mod fields;
mod file;
mod format;
mod merged;
mod reader;
mod replay;
mod sample;
mod statistics;

pub use error::TraceError;
pub use format::Format;
pub use reader::{Reading, Trace};
pub use replay::Replay;
pub(crate) use replay::{Ground as TraceGround, Replayed};
pub use statistics::Statistics;

use ssdlab_device::Op;
use ssdlab_time::Nanos;

/// One entry of a trace, in the trace's own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was asked, on the trace's own clock; a reader counts from its first entry.
    pub at: Nanos,
    /// What was asked.
    pub op: Op,
    /// Which of the host's volumes, where a trace has several.
    pub volume: u32,
    /// First byte on the volume; 0 of a flush.
    pub offset_bytes: u64,
    /// How many bytes; 0 of a flush.
    pub length_bytes: u64,
    /// A write that is durable when it is done (FUA).
    pub durable: bool,
}

impl Entry {
    /// An entry of which nothing more is said.
    pub const fn new(at: Nanos, op: Op, offset_bytes: u64, length_bytes: u64) -> Self {
        Self { at, op, volume: 0, offset_bytes, length_bytes, durable: false }
    }

    /// The byte behind its last one.
    pub const fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }
}

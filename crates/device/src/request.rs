//! What a host asks of a device, and what it hears back.

use ssdlab_time::Nanos;

use std::io;

use crate::{LBA_BYTES, Lba};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Read the blocks.
    Read,
    /// Write the blocks. Durable only after a `Flush` that was submitted after its completion.
    Write,
    /// Say that the blocks' content is no longer needed (also: discard, deallocate, unmap).
    Trim,
    /// Make all completed writes durable. Its address and length are zero.
    Flush,
}

impl Op {
    /// All of them; `ALL[op.index()]` is `op`.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Flush];

    /// Its place in arrays by kind of request.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What a host lets a drive know of a write, so that it can be placed well.
///
/// It changes no content and no outcome: a drive that has no use for it, as every real one here,
/// writes as if there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// It goes on in a file whose block before it is this one, wherever that lies.
    AppendAfter(Lba),
    /// It replaces content of a file in its place.
    Overwrite,
    /// It belongs with the other writes of this number: they are thought to die together.
    Stream(u8),
}

/// One request to a device. It carries no data: a twin holds none, hardware brings its own buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the submitter; comes back in the completion.
    pub id: u64,
    /// What to do.
    pub op: Op,
    /// The first host block.
    pub lba: Lba,
    /// How many host blocks.
    pub blocks: u32,
    /// A write that is done only when its blocks are durable: FUA, or `RWF_DSYNC` on a file. No
    /// other request heeds it.
    pub durable: bool,
    /// What is known of a write. No other request heeds it.
    pub hint: Hint,
}

impl Request {
    /// A request of which nothing more is said.
    pub const fn new(id: u64, op: Op, lba: Lba, blocks: u32) -> Self {
        Self { id, op, lba, blocks, durable: false, hint: Hint::None }
    }

    /// Its length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.blocks as u64 * LBA_BYTES
    }

    /// A flush of all completed writes.
    pub const fn flush(id: u64) -> Self {
        Self::new(id, Op::Flush, Lba::new(0), 0)
    }
}

/// Why one request failed: the error number that the medium or the kernel gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", io::Error::from_raw_os_error(*.errno))]
pub struct IoError {
    /// As in errno.h, positive.
    pub errno: i32,
}

/// The end of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's id.
    pub id: u64,
    /// When the device took it.
    pub submitted: Nanos,
    /// When it was done.
    pub completed: Nanos,
    /// Whether it was done well.
    pub outcome: Result<(), IoError>,
}

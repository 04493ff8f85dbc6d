//! Requests to a device and their completions; host addresses in blocks of 512 bytes, as in Linux.

use std::io;

use ssdlab_time::Nanos;

/// Bytes in a host block. Linux counts sectors of 512 bytes even where the drive's sector is
/// larger.
pub const LBA_BYTES: u64 = 512;

/// The address of a host block, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(u64);

impl Lba {
    /// The host block with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The host block at this byte offset, which must be a multiple of `LBA_BYTES`.
    pub const fn from_bytes(offset: u64) -> Self {
        assert!(offset.is_multiple_of(LBA_BYTES), "the offset is not a multiple of a host block");
        Self(offset / LBA_BYTES)
    }

    /// The block's number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The byte offset of the block.
    pub const fn bytes(self) -> u64 {
        self.0 * LBA_BYTES
    }

    /// The block `count` blocks after this one.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

/// A range of host blocks, such as the part of a device that a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first block.
    pub start: Lba,
    /// The number of blocks.
    pub blocks: u64,
}

impl Region {
    /// The region at a byte offset, of `length` bytes; both must be multiples of `LBA_BYTES`.
    pub const fn from_bytes(offset: u64, length: u64) -> Self {
        Self { start: Lba::from_bytes(offset), blocks: Lba::from_bytes(length).get() }
    }

    /// The length in bytes.
    pub const fn bytes(self) -> u64 {
        self.blocks * LBA_BYTES
    }
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Read the blocks.
    Read,
    /// Write the blocks. Durable only after a `Flush` that was submitted after its completion.
    Write,
    /// Discard the blocks' content (also: deallocate, unmap).
    Trim,
    /// Make all completed writes durable. Its address and length are zero.
    Flush,
}

impl Op {
    /// All operations; `ALL[op.index()]` is `op`.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Flush];

    /// The index in arrays by operation.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Information about a write that the host gives the drive so that it can place the data well.
///
/// A hint changes neither content nor outcome. Drives without support for it ignore it; real drives
/// never receive it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// No hint.
    #[default]
    None,
    /// The write appends to a file whose previous block is this one, which may be elsewhere.
    AppendAfter(Lba),
    /// The write replaces content of a file in place.
    Overwrite,
    /// The write belongs to this stream, whose data is expected to be invalidated together.
    Stream(u8),
}

/// One request to a device. It carries no data: a twin stores none, and a real device has its own
/// buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the submitter; returned in the completion.
    pub id: u64,
    /// The operation.
    pub op: Op,
    /// The first host block.
    pub lba: Lba,
    /// The number of host blocks.
    pub blocks: u32,
    /// The write completes only when its blocks are durable: FUA, or `RWF_DSYNC` on a file. Ignored
    /// for other operations.
    pub durable: bool,
    /// The hint of a write. Ignored for other operations.
    pub hint: Hint,
}

impl Request {
    /// A request that is not durable and has no hint.
    pub const fn new(id: u64, op: Op, lba: Lba, blocks: u32) -> Self {
        Self { id, op, lba, blocks, durable: false, hint: Hint::None }
    }

    /// The length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.blocks as u64 * LBA_BYTES
    }

    /// A flush of all completed writes.
    pub const fn flush(id: u64) -> Self {
        Self::new(id, Op::Flush, Lba::new(0), 0)
    }
}

/// The error number with which the drive or the kernel failed a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", io::Error::from_raw_os_error(*.errno))]
pub struct IoError {
    /// A positive number, as in errno.h.
    pub errno: i32,
}

/// The completion of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's id.
    pub id: u64,
    /// When the device accepted the request.
    pub submitted: Nanos,
    /// When the request completed.
    pub completed: Nanos,
    /// Success, or the error.
    pub outcome: Result<(), IoError>,
}

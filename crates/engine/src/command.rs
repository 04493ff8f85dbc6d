//! `Command`: a client's command, and the requests to the drive that execute it.

use std::time::Instant;

use serde::Deserialize;
use ssdlab_device::{Hint, LBA_BYTES, Lba, Op, Request};
use ssdlab_time::Nanos;

use crate::drive::DriveParameters;
use crate::errno::{EINVAL, ENOSPC, EOVERFLOW};

/// Maximum bytes of a client's read or write.
pub const TRANSFER_MAX: u32 = 32 << 20;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read data.
    Read,
    /// Write data.
    Write,
    /// Discard the data of whole units.
    Trim,
    /// Write zeros.
    Zero {
        /// Whether to trim instead, if trimmed units of the drive read as zeros.
        may_trim: bool,
    },
    /// Make all earlier writes durable.
    Flush,
    /// Read data into the drive's cache without returning it.
    Cache,
}

/// The kinds of operation that statistics and faults tell apart.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// Reads, also into the drive's cache.
    Read,
    /// Writes, also of zeros.
    Write,
    /// Trims.
    Trim,
    /// Flushes.
    Flush,
}

/// A client's command; a flush has no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub operation: Operation,
    /// Start of its range in bytes.
    pub offset: u64,
    /// Length of its range in bytes.
    pub length: u32,
    /// Whether it completes only when it is durable (FUA).
    pub durable: bool,
    /// The client's placement hint for a write.
    pub hint: Hint,
}

/// The result of a command: an errno if it failed.
pub type CommandResult = Result<(), i32>;

/// A command that the drive has accepted, or that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its result.
    pub result: CommandResult,
    /// Its completion time on the drive's clock.
    pub completed: Nanos,
    /// When to send the reply; `None` for at once.
    pub due: Option<Instant>,
    /// How the write is corrupted.
    pub corruption: Option<WriteCorruption>,
}

/// How a write that reports success is corrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCorruption {
    /// Only this number of bytes at its start is written.
    Torn(u64),
    /// It is written at this offset instead.
    Misdirected(u64),
    /// Nothing is written.
    Lost,
}

impl OperationKind {
    /// The name on the control socket.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
        }
    }

    /// The kind of an operation.
    pub fn of(operation: Operation) -> Self {
        match operation {
            Operation::Read | Operation::Cache => Self::Read,
            Operation::Write | Operation::Zero { .. } => Self::Write,
            Operation::Trim => Self::Trim,
            Operation::Flush => Self::Flush,
        }
    }
}

impl Command {
    /// A command that is not durable and has no hint.
    pub fn new(operation: Operation, offset: u64, length: u32) -> Self {
        Self { operation, offset, length, durable: false, hint: Hint::None }
    }

    /// The end of its range.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }

    /// The command that the drive and the store execute: a misdirected write goes to another
    /// offset.
    pub(crate) fn redirected(&self, corruption: Option<WriteCorruption>) -> Self {
        match corruption {
            Some(WriteCorruption::Misdirected(offset)) => Self { offset, ..*self },
            _ => *self,
        }
    }

    /// Whether it writes data, also zeros.
    pub fn writes(&self) -> bool {
        matches!(self.operation, Operation::Write | Operation::Zero { .. })
    }

    /// Bytes of data that are transferred with the command or with its reply.
    pub fn moved_bytes(&self) -> u64 {
        if matches!(self.operation, Operation::Read | Operation::Write) {
            self.length.into()
        } else {
            0
        }
    }

    /// Whether it changes the content.
    pub fn changes(&self) -> bool {
        self.writes() || self.operation == Operation::Trim
    }

    /// Checks whether it can be executed on a drive of this capacity.
    pub fn check(&self, capacity: u64) -> CommandResult {
        if self.operation == Operation::Flush {
            return Ok(());
        }
        let moves_content =
            matches!(self.operation, Operation::Read | Operation::Write | Operation::Cache);
        if moves_content && self.length > TRANSFER_MAX {
            return Err(EOVERFLOW);
        }
        let length = u64::from(self.length);
        if length == 0
            || !length.is_multiple_of(LBA_BYTES)
            || !self.offset.is_multiple_of(LBA_BYTES)
        {
            return Err(EINVAL);
        }
        let fits = self.offset.checked_add(length).is_some_and(|end| end <= capacity);
        if fits { Ok(()) } else { Err(if self.writes() { ENOSPC } else { EINVAL }) }
    }

    /// The requests to the drive. Zeros that may be trimmed are a trim of whole units and writes at
    /// both edges.
    pub fn requests(&self, parameters: &DriveParameters) -> impl Iterator<Item = Request> + use<> {
        let (start, end) = (self.offset, self.offset + u64::from(self.length));
        let (durable, hint) = (self.durable, self.hint);
        let one = |op, from: u64, to: u64| {
            let blocks = (to.saturating_sub(from) / LBA_BYTES) as u32;
            let request = Request::new(0, op, Lba::from_bytes(from), blocks);
            let durable = durable && op == Op::Write;
            (from < to).then_some(Request { durable, hint, ..request })
        };
        let flush = durable.then(|| Request::flush(0));
        let made = match self.operation {
            Operation::Read | Operation::Cache => [one(Op::Read, start, end), None, None, None],
            Operation::Flush => [Some(Request::flush(0)), None, None, None],
            Operation::Trim => [one(Op::Trim, start, end), flush, None, None],
            Operation::Zero { may_trim } if may_trim && parameters.trims_to_zeros => {
                let units = parameters.whole_units(start..end);
                let trimmed = if units.is_empty() { end..end } else { units };
                [
                    one(Op::Write, start, trimmed.start),
                    one(Op::Trim, trimmed.start, trimmed.end),
                    one(Op::Write, trimmed.end, end),
                    flush,
                ]
            }
            Operation::Write | Operation::Zero { .. } => {
                [one(Op::Write, start, end), None, None, None]
            }
        };
        made.into_iter().flatten()
    }
}

//! `Command`: what a client asks, whether it can be done, and how the drive hears it.

use std::ops::Range;

use ssdlab_device::{Hint, LBA_BYTES, Lba, Op, Request};

use crate::drive::Drive;
use crate::errno::{EINVAL, ENOSPC, EOVERFLOW};

/// The longest read or write of a client.
pub const TRANSFER_MAX: u32 = 32 << 20;

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read data.
    Read,
    /// Write data.
    Write,
    /// Give up the mapping of whole units.
    Trim,
    /// Zeros; trimmed where `may_trim` and the drive's trims read as zeros.
    Zero {
        /// Whether the drive may trim instead of writing.
        may_trim: bool,
    },
    /// Make all earlier writes durable.
    Flush,
    /// A read whose data nobody wants.
    Cache,
}

/// The kinds of operation that statistics and faults tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// One command of a client; a flush has no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to do.
    pub operation: Operation,
    /// The first byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Done only when it is durable.
    pub durable: bool,
    /// What the client lets the drive know of a write.
    pub hint: Hint,
}

/// How a command ended: the errno for the client.
pub type CommandResult = Result<(), i32>;

/// What a drive is, as far as commands depend on it.
#[derive(Clone, Copy, Debug)]
pub struct DriveParameters {
    /// Bytes.
    pub capacity: u64,
    /// Bytes of a mapping unit.
    pub unit_bytes: u64,
    /// The longest request of the drive, in bytes: longer commands are split.
    pub max_transfer: u64,
    /// Whether trimmed units read as zeros.
    pub trims_to_zeros: bool,
    /// Requests in flight at most.
    pub queue_depth: usize,
}

impl DriveParameters {
    /// That of a drive.
    pub fn of(drive: &dyn Drive) -> Self {
        Self {
            capacity: drive.capacity_bytes(),
            unit_bytes: drive.unit_bytes(),
            max_transfer: drive.max_transfer(),
            trims_to_zeros: drive.trims_to_zeros(),
            queue_depth: drive.queue_depth(),
        }
    }

    /// A range as the commands that the drive makes of it.
    pub fn pieces(&self, start: u64, end: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let step = self.max_transfer;
        (start..end).step_by(step as usize).map(move |from| from..end.min(from + step))
    }

    /// Whether a command covers units as a whole, also where the drive splits it.
    pub fn keeps_units_whole(&self, command: &Command) -> bool {
        [command.offset, command.end(), self.max_transfer]
            .iter()
            .all(|at| at.is_multiple_of(self.unit_bytes))
    }

    /// The whole units of a range of bytes, in bytes; an empty range if it covers none.
    pub fn whole_units(&self, range: Range<u64>) -> Range<u64> {
        range.start.next_multiple_of(self.unit_bytes)..range.end / self.unit_bytes * self.unit_bytes
    }
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
    /// A command of which nothing more is said.
    pub fn new(operation: Operation, offset: u64, length: u32) -> Self {
        Self { operation, offset, length, durable: false, hint: Hint::None }
    }

    /// The end of its range.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }

    /// Whether it puts content into the drive.
    pub fn writes(&self) -> bool {
        matches!(self.operation, Operation::Write | Operation::Zero { .. })
    }

    /// Bytes that come with it or with its answer.
    pub fn moved_bytes(&self) -> u64 {
        if matches!(self.operation, Operation::Read | Operation::Write) {
            self.length.into()
        } else {
            0
        }
    }

    /// Whether it changes what the drive has.
    pub fn changes(&self) -> bool {
        self.writes() || self.operation == Operation::Trim
    }

    /// Whether it can be done at all.
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

    /// As the drive hears it: one request, or for zeros whole units and their edges.
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

//! `Wish`: what is to go wrong, with which commands, and when.

use std::ops::Range;
use std::time::Duration;

use crate::command::{Command, Operation};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It fails as if the medium did.
    Eio,
    /// It fails as on a drive that takes no more writes.
    ReadOnly,
    /// Its answer leaves so much later, by the wall's clock.
    Delay(Duration),
    /// No answer leaves for so long, from it on.
    Stall(Duration),
    /// A die fails: what lay on it cannot be read; what is written later goes elsewhere.
    Die(u32),
    /// Some first sectors are written, and the rest is not.
    Torn,
    /// It is written elsewhere, and not where it belongs.
    Misdirected,
    /// It is not written.
    Lost,
}

/// Which commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Reads.
    Read,
    /// Also of zeros.
    Write,
    /// Trims.
    Trim,
    /// Flushes.
    Flush,
}

/// A fault as it is asked for; all that is given has to be met.
#[derive(Clone, Debug)]
pub struct FaultSpec {
    /// What fails.
    pub kind: Kind,
    /// Commands that touch these bytes.
    pub range: Option<Range<u64>>,
    /// The kind of operation; `None` for all.
    pub operation_kind: Option<OperationKind>,
    /// The Nth of these commands from now on; 1 is the next.
    pub nth: Option<u64>,
    /// Not before this time has passed, by the wall's clock.
    pub start_after: Option<Duration>,
    /// Each of them by chance.
    pub probability: Option<f64>,
    /// Decides what chance does.
    pub seed: u64,
    /// So often; `None` for ever.
    pub max_hits: Option<u64>,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eio => "eio",
            Self::ReadOnly => "read-only",
            Self::Delay(_) => "delay",
            Self::Stall(_) => "stall",
            Self::Die(_) => "die",
            Self::Torn => "torn",
            Self::Misdirected => "misdirected",
            Self::Lost => "lost",
        }
    }

    /// Whether it can happen to a command at all.
    fn concerns(self, operation: Operation) -> bool {
        match self {
            Self::Torn | Self::Misdirected | Self::Lost => operation == Operation::Write,
            Self::ReadOnly => {
                matches!(operation, Operation::Write | Operation::Zero { .. } | Operation::Trim)
            }
            _ => true,
        }
    }
}

impl OperationKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
        }
    }

    /// Which commands a client's is of.
    pub fn of(operation: Operation) -> Self {
        match operation {
            Operation::Read | Operation::Cache => Self::Read,
            Operation::Write | Operation::Zero { .. } => Self::Write,
            Operation::Trim => Self::Trim,
            Operation::Flush => Self::Flush,
        }
    }
}

impl FaultSpec {
    /// Whether it lets reads of these bytes fail, be it sometimes.
    pub fn fails_reads(&self, bytes: &Range<u64>) -> bool {
        let touched = |range: &Range<u64>| bytes.start < range.end && bytes.end > range.start;
        self.kind == Kind::Eio
            && self.operation_kind.is_none_or(|which| which == OperationKind::Read)
            && self.range.as_ref().is_none_or(touched)
    }

    /// Whether a command is one of those that are meant; a flush touches no bytes.
    pub fn matches(&self, command: &Command) -> bool {
        let touched = self.range.as_ref().is_none_or(|range| {
            command.operation != Operation::Flush
                && command.offset < range.end
                && command.end() > range.start
        });
        touched
            && self.kind.concerns(command.operation)
            && self.operation_kind.is_none_or(|which| which == OperationKind::of(command.operation))
    }
}

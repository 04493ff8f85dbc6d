//! `FaultSpec`: what goes wrong, with which commands, and when.

use std::ops::Range;
use std::time::Duration;

use crate::command::{Command, Operation, OperationKind};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The command fails with a medium error.
    Eio,
    /// The command fails as on a read-only drive.
    ReadOnly,
    /// The reply is delayed by this wall clock time.
    Delay(Duration),
    /// No reply is sent for this wall clock time.
    Stall(Duration),
    /// A die fails: its content cannot be read; later writes go to other dies.
    Die(u32),
    /// Only the first sectors of a write are written.
    Torn,
    /// A write goes to another place.
    Misdirected,
    /// A write is not executed.
    Lost,
}

/// Which commands a fault hits: those that meet all conditions.
#[derive(Clone, Debug)]
pub struct FaultSpec {
    /// What goes wrong.
    pub kind: Kind,
    /// Only commands that touch these bytes.
    pub range: Option<Range<u64>>,
    /// Only this kind of operation.
    pub operation_kind: Option<OperationKind>,
    /// Only from the nth matching command on; 1 is the next.
    pub nth: Option<u64>,
    /// Only after this wall clock time.
    pub start_after: Option<Duration>,
    /// The probability with which it hits each matching command.
    pub probability: Option<f64>,
    /// Seed of the random draws.
    pub seed: u64,
    /// How many commands it hits at most.
    pub max_hits: Option<u64>,
}

impl Kind {
    /// The name on the control socket.
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

    /// Whether it can hit an operation.
    fn applies_to(self, operation: Operation) -> bool {
        match self {
            Self::Torn | Self::Misdirected | Self::Lost => operation == Operation::Write,
            Self::ReadOnly => {
                matches!(operation, Operation::Write | Operation::Zero { .. } | Operation::Trim)
            }
            _ => true,
        }
    }
}

impl FaultSpec {
    /// Whether it makes reads of these bytes fail, always or sometimes.
    pub fn fails_reads(&self, bytes: &Range<u64>) -> bool {
        let touched = |range: &Range<u64>| bytes.start < range.end && bytes.end > range.start;
        self.kind == Kind::Eio
            && self.operation_kind.is_none_or(|kind| kind == OperationKind::Read)
            && self.range.as_ref().is_none_or(touched)
    }

    /// Whether a command meets the range and the operation; a flush touches no bytes.
    pub fn matches(&self, command: &Command) -> bool {
        let touched = self.range.as_ref().is_none_or(|range| {
            command.operation != Operation::Flush
                && command.offset < range.end
                && command.end() > range.start
        });
        touched
            && self.kind.applies_to(command.operation)
            && self.operation_kind.is_none_or(|kind| kind == OperationKind::of(command.operation))
    }
}

//! `Layer`: what a layer around the drive sees of each command, as a filter of nbdkit does.
//!
//! | layer       | sees                                     | may                              |
//! |-------------|------------------------------------------|----------------------------------|
//! | `fault`     | a command before the drive gets it       | refuse, delay or corrupt it      |
//! | `meter`     | the completion                           | count it                         |
//! | `power`     | the completion                           | cut the power during the command |
//! | `write_log` | the change of the content, as a `Change` | record it                        |
//!
//! The drive and the store are the innermost layers. The first three layers run under the lock of
//! the drive, in this order; the write log runs under its own lock, because the store is changed
//! concurrently.

use std::ops::Range;
use std::time::Instant;

use ssdlab_time::Nanos;

use crate::command::{Command, CommandResult, DriveParameters};
use crate::drive::Drive;

/// A layer around the drive. All hooks do nothing by default.
pub trait Layer {
    /// Sees a command before the drive gets it.
    fn before(
        &mut self,
        _command: &Command,
        _drive: &dyn Drive,
        _parameters: &DriveParameters,
        _verdict: &mut Verdict,
    ) {
    }

    /// Sees the completion of a command when the drive's clock shows `now`. Returns the time at
    /// which the power fails, if it fails during this command.
    fn after(&mut self, _command: &Command, _accepted: &Accepted, _now: Nanos) -> Option<Nanos> {
        None
    }
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

/// What the layers decided about a command before the drive gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The command fails with this errno and does not reach the drive.
    pub refused: Option<i32>,
    /// The earliest time for the reply.
    pub not_before: Option<Instant>,
    /// How the write is corrupted.
    pub corruption: Option<WriteCorruption>,
}

/// A command that the drive has accepted, or that a layer has refused.
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

/// A change of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// These bytes are written at this offset.
    Write(u64, &'a [u8]),
    /// This range now reads as zeros.
    Zero(Range<u64>),
    /// All earlier changes are durable.
    Flush,
}

/// The command that the drive and the store execute: a misdirected write goes to another offset.
pub fn redirected(command: &Command, corruption: Option<WriteCorruption>) -> Command {
    match corruption {
        Some(WriteCorruption::Misdirected(offset)) => Command { offset, ..*command },
        _ => *command,
    }
}

//! `Layer`: what sees each command on its way to the drive and back, as a filter of nbdkit does.
//!
//! | layer       | sees                                     | may                              |
//! |-------------|------------------------------------------|----------------------------------|
//! | `fault`     | a command before the drive gets it       | refuse, delay or corrupt it      |
//! | `meter`     | the completion                           | count it                         |
//! | `power`     | the completion                           | cut the power during the command |
//! | `write_log` | the change of the content, as a `Change` | record it                        |
//!
//! The first three run under the drive's lock, in this order. The write log has its own lock,
//! because the content is changed concurrently.

use std::time::Instant;

use ssdlab_time::Nanos;

use crate::command::{Accepted, Command, WriteCorruption};
use crate::drive::{Drive, DriveParameters};

/// A layer around the drive. The hooks do nothing by default.
pub trait Layer {
    /// Sees a command before the drive gets it.
    fn before(&mut self, _: &Command, _: &dyn Drive, _: &DriveParameters, _: &mut Decision) {}

    /// Sees a command that the drive got at time `now`, with its result. Returns the time at which
    /// the power fails, if it fails during this command.
    fn after(&mut self, _command: &Command, _accepted: &Accepted, _now: Nanos) -> Option<Nanos> {
        None
    }
}

/// What the layers decided about a command before the drive gets it.
#[derive(Default)]
pub struct Decision {
    /// The command fails with this errno and does not reach the drive.
    pub refused: Option<i32>,
    /// The earliest time for the reply.
    pub not_before: Option<Instant>,
    pub corruption: Option<WriteCorruption>,
}

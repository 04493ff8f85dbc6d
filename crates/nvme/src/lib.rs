//! An `NVMe` controller without a transport: commands and their data in, completions out. The
//! engine executes them, as it does for all protocols.
//!
//! Source: the NVM Express Base Specification 2.0, the NVM Command Set Specification 1.0, TP4146
//! (flexible data placement).
//!
//! Modelled: one namespace of any size, with LBA formats of 512 and 4096 bytes; data placement by
//! reclaim unit handles if the drive has streams, and by appends and overwrites of files if the
//! host sends these hints (`io`). Not modelled: metadata and protection information, reservations,
//! firmware update, several namespaces, temperature thresholds of the drive's own throttling, FDP
//! events of garbage collection.
//!
//! Differs from hardware: format and sanitize are finished when they complete; a namespace is
//! attached to all controllers or to none, and has the whole capacity again after a restart of the
//! server.

mod admin;
mod controller;
mod drive_io;
mod event;
mod features;
mod health;
pub mod io;
mod namespace;
pub mod opcode;
mod spec;
mod sqe;
mod status;
mod subsystem;

use std::time::Instant;

pub use controller::{
    Context, Controller, ControllerParameters, ControllerType, IO_QUEUES_MAX, QUEUE_ENTRIES_MAX,
};
pub use drive_io::DriveIo;
pub use namespace::NamespaceView;
pub use sqe::{Completion, Cqe, Direction, HostData, Sqe};
pub use status::{CommandError, Status};
pub use subsystem::{DISCOVERY_NQN, Identity, Subsystem};

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `None` if it completes when an event occurs: see `Controller::next_event`.
    pub completion: Option<Completion>,
    /// When the completion may leave; `None` at once.
    pub due: Option<Instant>,
}

/// Executes an admin command (`sqid` 0), or an I/O command for which `io::prepare` returned
/// `Execution::Controller`. `None` if the drive has lost power since the controller was created.
pub fn dispatch(sqid: u16, context: &mut Context<'_>) -> Option<Outcome> {
    let controller = context.controller;
    if !controller.has_power() {
        return None;
    }
    let mut drive = controller.drive_io();
    let result = match sqid {
        0 => admin::execute(context),
        _ => io::execute(context, &mut drive).map(|()| Some(Completion::SUCCESS)),
    };
    let completion = match result {
        Ok(completion) => completion,
        Err(CommandError::Status(status)) => {
            controller.subsystem.record_error(sqid, context.sqe, status);
            Some(status.into())
        }
        Err(CommandError::PowerLost) => return None,
    };
    Some(Outcome { completion, due: drive.due })
}

//! An `NVMe` controller without a transport: commands and their data in, completions out. The
//! engine executes them, as it does for all protocols.
//!
//! Source: the NVM Express Base Specification 2.0, the NVM Command Set Specification 1.0, TP4146
//! (flexible data placement).
//!
//! Modelled: one namespace of any size, with LBA formats of 512 and 4096 bytes; data placement by
//! reclaim unit handles if the drive has streams, and by appends and overwrites of files if the
//! host sends these hints (`io`). Not modelled: metadata and protection information, reservations,
//! firmware update, several namespaces, temperature (it is constant), FDP events of garbage
//! collection.
//!
//! Differs from hardware: format and sanitize are finished when they complete; a namespace is
//! attached to all controllers or to none, and has the whole capacity again after a restart of the
//! server.

pub mod admin;
mod context;
mod controller;
mod drive_io;
mod event;
mod fdp;
mod features;
mod health;
mod identity;
pub mod io;
mod layout;
mod namespace;
pub mod opcode;
mod spec;
mod sqe;
mod status;
mod subsystem;

pub use context::Context;
pub use controller::{
    Controller, ControllerParameters, ControllerType, IO_QUEUES_MAX, QUEUE_ENTRIES_MAX,
};
pub use drive_io::DriveIo;
pub use identity::{DISCOVERY_NQN, Identity};
pub use namespace::NamespaceView;
pub use sqe::{Completion, Cqe, Direction, HostData, Sqe};
pub use status::{CommandError, Status};
pub use subsystem::Subsystem;

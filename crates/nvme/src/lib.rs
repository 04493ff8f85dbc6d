//! One `NVMe` controller, whatever brings its submissions: 64 bytes and their data in, a completion
//! out. It stands on the engine that all protocols share.
//!
//! Source: the NVM Express Base Specification 2.0, the NVM Command Set Specification 1.0, TP4146
//! (flexible data placement).
//!
//! Modelled: one namespace, of any size, in formats of 512 and 4096 bytes; placement by handles
//! where the drive keeps streams apart, and by a file's appends and overwrites where the host says
//! so (`io`). Not modelled: metadata and protection, reservations, firmware, several namespaces;
//! heat (the temperature is always the same); placement events of what the drive does by itself.
//!
//! Differs from hardware: a format and a sanitize are done when they are answered; a namespace is
//! attached to all controllers or to none, and is whole again when the server is started anew.

mod admin;
mod controller;
mod erase;
mod event;
mod feature;
mod identify;
mod identity;
mod io;
mod log;
mod namespace;
pub mod opcode;
mod page;
mod placement;
mod sqe;
mod status;
mod steps;
mod subsystem;

pub use controller::{Controller, ControllerType, Outcome};
pub use identity::{DISCOVERY_NQN, Identity};
pub use io::Plan;
pub use sqe::{Completion, Cqe, Direction, HostData, Sqe};
pub use status::Status;
pub use subsystem::{Subsystem, View};

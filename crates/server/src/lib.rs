//! A served drive: listeners for NBD and NVMe/TCP, the control socket, snapshots and clones, and
//! the calibration of paced replies. The only crate that starts threads for clients.

mod calibration;
mod clones;
mod control;
mod listener;
mod server;

pub use calibration::measure;
pub use listener::Address;
pub use server::Server;
#[cfg(feature = "fuzzing")]
pub use server::fuzz;

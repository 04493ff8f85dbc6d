//! Serves a drive: NBD and `NVMe`/TCP listeners, the control socket, snapshots and clones.
//!
//! Modules depend on each other in one direction: `state` is passive; `control` answers requests
//! from it and through its trait `Host`; only `server` starts threads, listeners and clones.

mod calibration;
mod control;
mod listener;
mod server;
mod state;

pub use calibration::measure_transport;
pub use listener::Address;
pub use server::Server;

//! A twin on the wire: any program runs on it, and its power can be cut.
//!
//! A client's connection -> a protocol: `nbd`, or `nvme_tcp` and the controller in `nvme` ->
//! `engine` (drive and bytes) -> `drive` (the twin, which has the time) and `store` (the bytes).

// The model uses the toy drive of the integration tests, which names this crate.
#[cfg(all(test, feature = "model"))]
extern crate self as ssdlab_serve;

mod attachments;
mod control;
mod door;
mod drive;
mod engine;
mod errno;
mod export;
mod fault;
mod forks;
mod link;
mod links;
mod message;
#[cfg(all(test, feature = "model"))]
mod model;
mod nbd;
mod nvme;
mod nvme_tcp;
mod pace;
mod power;
mod resources;
mod server;
mod slab;
mod store;
mod stream;
mod sync;
mod tls;
mod transport;

pub use door::Address;
pub use drive::{Counter, Cut, Drive, Health, Lost, Making};
pub use engine::{Engine, restore};
pub use export::Export;
pub use nvme::{
    Completion, Controller, HostData, Identity, Kind, Outcome, Status, Submission, Subsystem,
};
pub use nvme_tcp::{Secret, SecretError};
pub use pace::{Clock, Lag, Pace};
pub use power::{Epoch, Plan, PowerTold};
#[cfg(feature = "failpoints")]
pub use resources::failpoints;
pub use resources::{LimitError, Limits};
pub use server::Server;
#[cfg(feature = "fuzzing")]
pub use server::fuzz;
pub use store::{Log, Store};
pub use tls::Tls;
pub use transport::Lead;

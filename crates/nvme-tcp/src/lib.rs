//! `NVMe` over TCP: connections of hosts to the controllers of a drive, a queue each.
//!
//! Source: the NVM Express TCP Transport Specification 1.0, Fabrics of the Base Specification 2.0.
//!
//! Differs from hardware: no encryption (TLS), and secrets without Diffie-Hellman; data of the
//! host is asked for in one piece.

mod connect;
mod frame;
mod input;
mod pdu;
mod perform;
mod proof;
mod receive;
mod reply;
mod secret;
mod session;
mod target;

pub use secret::{Secret, SecretError};
pub use session::Session;
pub use target::Target;

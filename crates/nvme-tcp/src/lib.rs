//! `NVMe` over TCP: a connection is one queue of a controller.
//!
//! Source: the NVM Express TCP Transport Specification 1.0, and `NVMe` over Fabrics in the Base
//! Specification 2.0.
//!
//! Differs from hardware: no encryption (TLS); authentication without Diffie-Hellman; an R2T
//! requests all data of a command.

mod dhchap;
mod fabrics;
mod key;
mod pdu;
mod perform;
mod receive;
mod respond;
mod session;
mod target;

pub use key::{DhchapKey, DhchapKeyError};
pub use session::serve;
pub use target::Target;

//! The NBD protocol: fixed newstyle negotiation, structured replies, block status.
//!
//! Source: the protocol's specification, doc/proto.md of the NBD project.

mod handshake;
mod session;
mod wire;

pub use handshake::{Negotiated, greet, negotiate};
pub use session::Session;

//! The NBD protocol: fixed newstyle negotiation, structured replies, block status.
//!
//! Source: the protocol's specification, doc/proto.md of the NBD project.

mod export;
mod negotiation;
mod protocol;
mod session;

pub use export::{Export, MetaContext};
pub use negotiation::{Negotiated, greet, negotiate};
pub use session::Session;

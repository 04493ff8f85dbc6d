//! What connections of any protocol share: what has come in, and what is to leave.

mod awake;
mod input;
mod replies;

pub use awake::Awake;
pub use input::{Input, KEPT_MAX};
pub use replies::Replies;

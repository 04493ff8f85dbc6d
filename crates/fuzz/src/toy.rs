//! The drive that the server's own tests use.

#[path = "../../server/tests/nbd/toy.rs"]
mod shared;

pub use shared::{CAPACITY, HONEST, Manner, Toy, UNIT};

//! The drive that the server's own tests use.

#[path = "../../serve/tests/nbd/toy.rs"]
mod shared;

pub use shared::{CAPACITY, HONEST, Manner, Toy, UNIT};

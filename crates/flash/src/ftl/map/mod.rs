//! The maps between units and flash addresses, and the part of them that is in memory.

mod cache;
mod l2p;
mod p2l;
mod table;

pub use cache::MapCache;
pub use l2p::{L2p, Lpn};
pub use p2l::P2l;

//! The map from units to flash, what part of it is in memory, and how large tables are kept.

mod cache;
mod l2p;
pub mod table;

pub use cache::MapCache;
pub use l2p::{L2p, Lpn};

//! Locks of the engine and its connections: the standard ones, or Shuttle's where a model runs.

#[cfg(feature = "model")]
pub use shuttle::sync::{Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "model"))]
pub use std::sync::{Mutex, MutexGuard, RwLock};

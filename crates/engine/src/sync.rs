//! Locks of the engine and its connections: those of `std`, or with the feature `model` those of
//! Shuttle.

#[cfg(feature = "model")]
pub use shuttle::sync::{Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "model"))]
pub use std::sync::{Mutex, MutexGuard, RwLock};

/// Locks a mutex of `std`.
pub fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no panic while locked")
}

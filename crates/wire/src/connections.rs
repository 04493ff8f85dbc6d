//! `Connections`: the open connections, so that all can be disconnected.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use crate::connection::{Connection, Disconnect};
use ssdlab_engine::sync::{Mutex, MutexGuard};

/// Open connections, each with a number.
#[derive(Debug)]
pub struct Connections<C = Connection> {
    open: Mutex<Vec<(u64, C)>>,
    next: AtomicU64,
}

impl<C> Default for Connections<C> {
    fn default() -> Self {
        Self { open: Mutex::new(Vec::new()), next: AtomicU64::new(0) }
    }
}

impl<C: Disconnect> Connections<C> {
    /// Registers a connection until the result is dropped, also by a panic.
    pub fn add(self: &Arc<Self>, connection: &C) -> Registration<C> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().push((number, connection.clone()));
        Registration { connections: Arc::clone(self), number }
    }

    /// Disconnects all.
    pub fn disconnect_all(&self) {
        for (_, connection) in self.lock().iter() {
            connection.disconnect();
        }
    }

    /// Whether there are processors enough for a thread and a client of each connection.
    pub fn fit_processors(&self) -> bool {
        static PROCESSORS: LazyLock<usize> =
            LazyLock::new(|| available_parallelism().map_or(1, NonZero::get));
        2 * self.count() <= *PROCESSORS
    }

    /// The number of open connections.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, C)>> {
        self.open.lock().expect("no panic while locked")
    }
}

/// The entry of a connection in `Connections`; dropping it removes the entry.
#[derive(Debug)]
pub struct Registration<C: Disconnect = Connection> {
    connections: Arc<Connections<C>>,
    number: u64,
}

impl<C: Disconnect> Drop for Registration<C> {
    fn drop(&mut self) {
        self.connections.lock().retain(|(number, _)| *number != self.number);
    }
}

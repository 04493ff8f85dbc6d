//! `Timeouts`: connections that are disconnected unless they make progress in time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::connection::{Connection, Disconnect};
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::sync::lock;

#[derive(Debug, Default)]
pub struct Timeouts {
    /// By when they expire; the number makes the key unique.
    running: Mutex<BTreeMap<(Instant, u64), Connection>>,
    started: AtomicU64,
}

/// A connection's timeout; dropping it stops it.
#[derive(Debug)]
pub struct Timeout {
    timeouts: Arc<Timeouts>,
    key: (Instant, u64),
}

impl Timeouts {
    pub fn start(self: &Arc<Self>, connection: &Connection, timeout: Duration) -> Timeout {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let key = (wall_clock_now() + timeout, number);
        lock(&self.running).insert(key, connection.clone());
        Timeout { timeouts: Arc::clone(self), key }
    }

    /// Disconnects the connections whose timeout expires by `time`.
    pub fn disconnect_expired_by(&self, time: Instant) {
        let mut running = lock(&self.running);
        while let Some(first) = running.first_entry().filter(|first| first.key().0 <= time) {
            first.remove().disconnect();
        }
    }

    /// Disconnects the connection whose timeout expires first; false without connections.
    pub fn disconnect_first(&self) -> bool {
        let mut running = lock(&self.running);
        running.pop_first().inspect(|(_, connection)| connection.disconnect()).is_some()
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        lock(&self.timeouts.running).remove(&self.key);
    }
}

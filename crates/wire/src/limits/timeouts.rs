//! `Timeouts`: connections that are disconnected unless they make progress in time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::connection::{Connection, Disconnect};
use ssdlab_engine::pacing::wall_clock_now;

/// When a timeout expires, and a number that makes it unique.
type Key = (Instant, u64);

/// Connections with a timeout each.
#[derive(Debug, Default)]
pub struct Timeouts {
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    connections: BTreeMap<Key, Connection>,
    started: u64,
}

/// A connection's timeout; dropping it stops it.
#[derive(Debug)]
pub struct Timeout {
    timeouts: Arc<Timeouts>,
    key: Key,
}

impl Timeouts {
    /// Starts a timeout.
    pub fn start(self: &Arc<Self>, connection: &Connection, timeout: Duration) -> Timeout {
        let mut running = self.lock();
        running.started += 1;
        let key = (wall_clock_now() + timeout, running.started);
        running.connections.insert(key, connection.clone());
        drop(running);
        Timeout { timeouts: Arc::clone(self), key }
    }

    /// Disconnects the connections whose timeout expires by `time`.
    pub fn disconnect_expired_by(&self, time: Instant) {
        let mut running = self.lock();
        while running
            .connections
            .first_key_value()
            .is_some_and(|((expires, _), _)| *expires <= time)
        {
            running.disconnect_first();
        }
    }

    /// Disconnects the connection whose timeout expires first; false without connections.
    pub fn disconnect_first(&self) -> bool {
        self.lock().disconnect_first()
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().expect("no panic while locked")
    }
}

impl Running {
    fn disconnect_first(&mut self) -> bool {
        let first = self.connections.pop_first();
        first.is_some_and(|(_, connection)| {
            connection.disconnect();
            true
        })
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        self.timeouts.lock().connections.remove(&self.key);
    }
}

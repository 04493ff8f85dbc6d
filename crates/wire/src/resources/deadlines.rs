//! `Deadlines`: connections that are broken off unless they get on in time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::connection::{Breakable, Connection};
use ssdlab_engine::pacing::wall_clock_now;

/// By when, and a number that tells two of the same time apart.
type Key = (Instant, u64);

/// Connections with a time limit each.
#[derive(Debug, Default)]
pub struct Deadlines {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    links: BTreeMap<Key, Connection>,
    added: u64,
}

/// A connection's time limit; it no longer holds when this is dropped.
#[derive(Debug)]
pub struct Deadline {
    deadlines: Arc<Deadlines>,
    key: Key,
}

impl Deadlines {
    /// Gives a connection so much time.
    pub fn add(self: &Arc<Self>, link: &Connection, patience: Duration) -> Deadline {
        let mut state = self.lock();
        state.added += 1;
        let key = (wall_clock_now() + patience, state.added);
        state.links.insert(key, link.clone());
        drop(state);
        Deadline { deadlines: Arc::clone(self), key }
    }

    /// Breaks off the connections whose time is over by then.
    pub fn break_off_due_by(&self, time: Instant) {
        let mut state = self.lock();
        while state.links.first_key_value().is_some_and(|((due, _), _)| *due <= time) {
            state.break_off_first();
        }
    }

    /// Breaks off the one that has the least time left; false where there is none.
    pub fn break_off_oldest(&self) -> bool {
        self.lock().break_off_first()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while locked")
    }
}

impl State {
    fn break_off_first(&mut self) -> bool {
        let first = self.links.pop_first();
        first.is_some_and(|(_, link)| {
            link.break_off();
            true
        })
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.deadlines.lock().links.remove(&self.key);
    }
}

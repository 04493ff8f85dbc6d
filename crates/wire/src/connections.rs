//! `Connections`: the connections that there are, so that all can be broken off.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use crate::connection::{Breakable, Connection};
use ssdlab_engine::sync::{Mutex, MutexGuard};

/// Connections, each with a number.
#[derive(Debug)]
pub struct Connections<C = Connection> {
    all: Mutex<Vec<(u64, C)>>,
    next: AtomicU64,
}

impl<C> Default for Connections<C> {
    fn default() -> Self {
        Self { all: Mutex::new(Vec::new()), next: AtomicU64::new(0) }
    }
}

impl<C: Breakable> Connections<C> {
    /// Notes one, until what is returned is dropped: also by a panic, so that nobody waits for an
    /// answer that will not come.
    pub fn add(self: &Arc<Self>, link: &C) -> Registration<C> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().push((number, link.clone()));
        Registration { links: Arc::clone(self), number }
    }

    /// Breaks all off.
    pub fn break_off(&self) {
        for (_, link) in self.lock().iter() {
            link.break_off();
        }
    }

    /// Whether each of them has a processor, and its client has one too.
    pub fn have_room(&self) -> bool {
        static PROCESSORS: LazyLock<usize> =
            LazyLock::new(|| available_parallelism().map_or(1, NonZero::get));
        2 * self.count() <= *PROCESSORS
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, C)>> {
        self.all.lock().expect("no panic while locked")
    }
}

/// A connection that is noted.
#[derive(Debug)]
pub struct Registration<C: Breakable = Connection> {
    links: Arc<Connections<C>>,
    number: u64,
}

impl<C: Breakable> Drop for Registration<C> {
    fn drop(&mut self) {
        self.links.lock().retain(|(each, _)| *each != self.number);
    }
}

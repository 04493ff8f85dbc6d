//! `Links`: the connections that there are, so that all can be broken off.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::thread::available_parallelism;

use crate::link::Link;

/// Connections, each with a number.
#[derive(Debug, Default)]
pub struct Links {
    all: Mutex<Vec<(u64, Link)>>,
    next: AtomicU64,
}

impl Links {
    /// Notes one, until what is returned is dropped: also by a panic, so that nobody waits for an
    /// answer that will not come.
    pub fn add(self: &Arc<Self>, link: &Link) -> Noted {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().push((number, link.clone()));
        Noted { links: Arc::clone(self), number }
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

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Link)>> {
        self.all.lock().expect("no panic while locked")
    }
}

/// A connection that is noted.
#[derive(Debug)]
pub struct Noted {
    links: Arc<Links>,
    number: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.links.lock().retain(|(each, _)| *each != self.number);
    }
}

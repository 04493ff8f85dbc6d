//! `Connections` can all be disconnected; `Attachments` are those that use a drive, and the power
//! cuts that end them.
//!
//! Every power cut ends an epoch of the drive. A connection belongs to the epoch in which it was
//! attached; the drive refuses its commands in any other. So no connection survives a cut, no
//! command that was received before a cut is executed after it, and a client that gets a reply to
//! FLUSH knows that no cut happened between its writes and that flush.
//!
//! Three rules make this true; `model.rs` breaks each of them to show that it matters:
//! 1. A cut first stops the drive from accepting commands and connections, then disconnects the
//!    connections, then changes the epoch. A connection reads the epoch before and after it is
//!    registered: if both agree, no cut has disconnected it, and the next one will.
//! 2. The engine compares the epoch of each batch of commands under the lock that guards the drive.
//! 3. One cut runs at a time, and finishes only a cut that has begun: if two connections see a
//!    planned cut begin, the power is cut once.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use crate::connection::{Connection, Disconnect};
use ssdlab_engine::sync::{Mutex, MutexGuard};
use ssdlab_engine::{Engine, Epoch, PowerCutLoss};

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
        self.open.lock().unwrap_or_else(|poisoned| {
            // `Registration` is dropped during a panic too; a second panic would abort.
            assert!(std::thread::panicking(), "no panic while locked");
            poisoned.into_inner()
        })
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

/// The connections of a drive.
pub struct Attachments<C> {
    /// The drive.
    pub engine: Arc<Engine>,
    /// All connections.
    pub connections: Arc<Connections<C>>,
    /// Held while the power is cut.
    cutting: Mutex<()>,
}

impl<C: Disconnect> Attachments<C> {
    /// A drive without connections.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine, connections: Arc::default(), cutting: Mutex::new(()) }
    }

    /// Attaches a connection until the registration is dropped. Its commands carry the epoch.
    /// `None` while the drive has no power.
    pub fn attach(&self, connection: &C) -> Option<(Registration<C>, Epoch)> {
        let epoch = self.engine.power().epoch()?;
        let registration = self.connections.add(connection);
        (self.engine.power().epoch() == Some(epoch)).then_some((registration, epoch))
    }

    /// Cuts the power under all connections, and turns it on again if `then_on`. A planned cut that
    /// has begun is finished first, as a cut of its own. `None` if the power is off.
    pub fn power_cut(&self, then_on: bool) -> Option<PowerCutLoss> {
        let _guard = self.cutting.lock().expect("no panic while locked");
        self.finish();
        if self.engine.power().begin_cut(then_on) { self.finish() } else { None }
    }

    /// Finishes a planned cut, if one has begun.
    pub fn finish_planned_cut(&self) {
        let _guard = self.cutting.lock().expect("no panic while locked");
        self.finish();
    }

    /// Finishes the cut that has begun. The commands whose replies were sent before the
    /// connections were disconnected complete before the cut; no reply is sent after that.
    fn finish(&self) -> Option<PowerCutLoss> {
        if !self.engine.power().is_failing() {
            return None;
        }
        self.connections.disconnect_all();
        self.engine.power().finish_cut()
    }
}

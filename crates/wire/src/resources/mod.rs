//! `Resources`: what clients may take of this machine, and what they have taken.
//!
//! A server and its forks share one: connections, time for a handshake, memory for payloads, spare
//! file descriptors, and the lines on stderr that say what was refused.

mod deadlines;
mod descriptors;
mod limits;
mod memory;
mod notices;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

pub use deadlines::{Deadline, Deadlines};
pub use descriptors::{Accepted, Descriptors, Exhausted};
pub use limits::{LimitError, Limits};
pub use memory::{Payload, PayloadMemory, next_piece};
pub use notices::{Notice, Notices};

use crate::connection::Connection;
use ssdlab_engine::pacing::wall_clock_now;

/// When the maximum is reached, a connection that is still in its handshake gives way to a new one.
/// Until its thread has ended both count: so many may be beyond the maximum.
const GIVING_WAY_MAX: usize = 16;

/// What the connections of a server and its forks share.
#[derive(Debug)]
pub struct Resources {
    /// The limits that hold.
    pub limits: Limits,
    /// Rate-limited lines on stderr.
    pub notices: Notices,
    /// Spare file descriptors.
    pub descriptors: Descriptors,
    /// Memory for payloads that are being received.
    pub memory: Arc<PayloadMemory>,
    /// Connections that have not finished their handshake.
    handshakes: Arc<Deadlines>,
    open: AtomicUsize,
    refused: AtomicU64,
    failed_authentications: AtomicU64,
}

/// A connection that counts; it no longer does when this is dropped.
#[derive(Debug)]
pub struct Admitted {
    resources: Arc<Resources>,
}

impl Resources {
    /// Nothing is taken yet.
    pub fn new(limits: Limits) -> Arc<Self> {
        let (notices, descriptors, handshakes) = Default::default();
        let (open, refused, failed_authentications) = Default::default();
        let memory = PayloadMemory::new(limits.payload_bytes, limits.handshake);
        let resources = Self {
            limits,
            notices,
            descriptors,
            memory,
            handshakes,
            open,
            refused,
            failed_authentications,
        };
        resources.into()
    }

    /// Admits a connection, and gives it time for its handshake; `None` where the maximum is
    /// reached.
    pub fn admit(self: &Arc<Self>, link: &Connection) -> Option<(Admitted, Deadline)> {
        let maximum = self.limits.connections;
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let admitted = Admitted { resources: Arc::clone(self) };
        let fits =
            open < maximum || open < maximum + GIVING_WAY_MAX && self.handshakes.break_off_oldest();
        if !fits {
            let maximum = format!("{maximum} connections are open, as --max-connections allows");
            self.refuse(Notice::TooMany, maximum);
            return None;
        }
        Some((admitted, self.handshakes.add(link, self.limits.handshake)))
    }

    /// Gives a connection so much time; until then it may have to give way, as in a handshake.
    pub fn deadline(&self, link: &Connection, patience: Duration) -> Deadline {
        self.handshakes.add(link, patience)
    }

    /// Counts a connection that was closed before it was served, and says why.
    pub fn refuse(&self, notice: Notice, why: impl std::fmt::Display) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.notices.tell(notice, format_args!("a connection was refused: {why}"));
    }

    /// Counts a host that failed to authenticate, and says who it was.
    pub fn note_failed_authentication(&self, link: &Connection) {
        self.failed_authentications.fetch_add(1, Ordering::Relaxed);
        let who = link.peer();
        self.notices.tell(Notice::Authentication, format_args!("{who} failed to authenticate"));
    }

    /// Breaks off the connections whose time is over.
    pub fn break_off_expired(&self) {
        self.handshakes.break_off_due_by(wall_clock_now());
        self.memory.break_off_expired();
    }

    /// How often `break_off_expired` should be called.
    pub fn tick(&self) -> Duration {
        (self.limits.handshake / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    /// What was counted, by name.
    pub fn counters(&self) -> [(&'static str, u64); 2] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        [
            ("refused_connections", count(&self.refused)),
            ("failed_authentications", count(&self.failed_authentications)),
        ]
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.resources.open.fetch_sub(1, Ordering::Relaxed);
    }
}

//! `ClientLimits`: what clients may use of this machine, and what they use.
//!
//! A server and its clones share one: connections, handshake timeouts, memory for payloads, spare
//! file descriptors, and the lines on stderr that report refused connections.

mod config;
mod descriptors;
mod memory;
mod notices;
mod timeouts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

pub use config::{LimitError, Limits};
pub use descriptors::{AcceptOutcome, Descriptors, OnExhaustion};
pub use memory::{PayloadMemory, PayloadReservation, next_part};
pub use notices::{Notice, Notices};
pub use timeouts::{Timeout, Timeouts};

use crate::connection::Connection;
use ssdlab_engine::pacing::wall_clock_now;

/// At the maximum, a new connection replaces one that is still in its handshake. Both count until
/// the thread of the old one has ended; this many may exceed the maximum for that time.
const REPLACED_MAX: usize = 16;

/// Limits on the clients of a server and its clones.
#[derive(Debug)]
pub struct ClientLimits {
    /// The configured limits.
    pub limits: Limits,
    /// Rate-limited lines on stderr.
    pub notices: Notices,
    /// Spare file descriptors.
    pub descriptors: Descriptors,
    /// Memory for payloads that are being received.
    pub memory: Arc<PayloadMemory>,
    /// Connections that have not finished their handshake.
    handshakes: Arc<Timeouts>,
    open: AtomicUsize,
    refused: AtomicU64,
    failed_authentications: AtomicU64,
}

/// Counts a connection as open until it is dropped.
#[derive(Debug)]
pub struct Admitted {
    limits: Arc<ClientLimits>,
}

impl ClientLimits {
    /// Limits without clients.
    pub fn new(limits: Limits) -> Arc<Self> {
        let (notices, descriptors, handshakes) = Default::default();
        let (open, refused, failed_authentications) = Default::default();
        let memory = PayloadMemory::new(limits.payload_bytes, limits.handshake);
        let client_limits = Self {
            limits,
            notices,
            descriptors,
            memory,
            handshakes,
            open,
            refused,
            failed_authentications,
        };
        client_limits.into()
    }

    /// Admits a connection and starts its handshake timeout; `None` if the maximum is reached.
    pub fn admit(self: &Arc<Self>, connection: &Connection) -> Option<(Admitted, Timeout)> {
        let maximum = self.limits.connections;
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let admitted = Admitted { limits: Arc::clone(self) };
        let fits =
            open < maximum || open < maximum + REPLACED_MAX && self.handshakes.disconnect_first();
        if !fits {
            let maximum = format!("{maximum} connections are open, as --max-connections allows");
            self.refuse(Notice::TooMany, maximum);
            return None;
        }
        Some((admitted, self.handshakes.start(connection, self.limits.handshake)))
    }

    /// Starts a timeout. Until it expires a new connection may replace this one, as in a handshake.
    pub fn start_timeout(&self, connection: &Connection, timeout: Duration) -> Timeout {
        self.handshakes.start(connection, timeout)
    }

    /// Counts a refused connection and prints the reason.
    pub fn refuse(&self, notice: Notice, reason: impl std::fmt::Display) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.notices.print(notice, format_args!("a connection was refused: {reason}"));
    }

    /// Counts a host that failed to authenticate and prints its address.
    pub fn note_failed_authentication(&self, connection: &Connection) {
        self.failed_authentications.fetch_add(1, Ordering::Relaxed);
        let peer = connection.peer();
        self.notices.print(Notice::Authentication, format_args!("{peer} failed to authenticate"));
    }

    /// Disconnects the connections whose timeout has expired.
    pub fn disconnect_expired(&self) {
        self.handshakes.disconnect_expired_by(wall_clock_now());
        self.memory.disconnect_expired();
    }

    /// How often to call `disconnect_expired`.
    pub fn check_period(&self) -> Duration {
        (self.limits.handshake / 4).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    /// Counters by name.
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
        self.limits.open.fetch_sub(1, Ordering::Relaxed);
    }
}

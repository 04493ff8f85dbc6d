//! `ClientLimits`: what clients may use of this machine, and what they use.
//!
//! A server and its clones share one: connections, handshake timeouts, memory for payloads, spare
//! file descriptors, and the lines on stderr that report refused connections.

mod descriptors;
mod memory;
mod timeouts;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use descriptors::{OnExhaustion, SpareDescriptors};
pub use memory::{PayloadMemory, PayloadReservation, next_part};
pub use timeouts::{Timeout, Timeouts};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use ssdlab_engine::pacing::wall_clock_now;
use ssdlab_engine::sync::lock;
use thiserror::Error;

use crate::connection::Connection;

/// At the maximum, a new connection replaces one that is still in its handshake. Both count until
/// the thread of the old one has ended; this many may exceed the maximum for that time.
const REPLACED_MAX: usize = 16;
/// File descriptors that are not for connections: control socket, data, log, clones, Python.
const RESERVED: u64 = 64;
/// File descriptors of a connection, without and with TLS.
const PLAIN: u64 = 1;
const ENCRYPTED: u64 = 3;
/// At most one line of each kind is printed in this time.
const PERIOD: Duration = Duration::from_secs(5);

/// What clients may use of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of NBD and `NVMe` connections.
    pub connections: usize,
    /// Bytes of memory for payloads that are being received, over all connections.
    pub payload_bytes: usize,
    /// Timeout for the handshake, and for each part of a payload.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let handshake = Duration::from_secs(10);
        Self { connections: 2000, payload_bytes: 128 << 20, handshake }
    }
}

/// The system has too few file descriptors for `--max-connections`.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "--max-connections is {requested}; this process may open {files} files, enough for {most} \
     connections: give {most} or fewer, or raise the limit (ulimit -n)"
)]
pub struct LimitError {
    requested: usize,
    files: u64,
    most: usize,
}

impl Limits {
    /// Sets the maximum number of connections. By default it is lowered to what the system has
    /// descriptors for. Raises this process's limit of open files to the hard limit.
    pub fn with_connections(
        self,
        requested: Option<usize>,
        are_encrypted: bool,
    ) -> Result<Self, LimitError> {
        let files = raised_file_limit();
        let per_connection = if are_encrypted { ENCRYPTED } else { PLAIN };
        let most = (files - RESERVED.min(files / 2)) / per_connection;
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        match requested {
            Some(requested) if requested > most => Err(LimitError { requested, files, most }),
            Some(connections) => Ok(Self { connections, ..self }),
            None => Ok(Self { connections: self.connections.min(most), ..self }),
        }
    }
}

/// Raises the soft limit of open files to the hard one; returns the resulting limit.
fn raised_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current };
    limit.unwrap_or(u64::MAX)
}

/// Limits on the clients of a server and its clones.
#[derive(Debug)]
pub struct ClientLimits {
    /// The configured limits.
    pub limits: Limits,
    /// Rate-limited lines on stderr.
    pub log: RateLimitedLog,
    /// Spare file descriptors.
    pub descriptors: SpareDescriptors,
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
pub struct ConnectionPermit {
    limits: Arc<ClientLimits>,
}

impl ClientLimits {
    /// Limits without clients.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            log: RateLimitedLog::default(),
            descriptors: SpareDescriptors::default(),
            memory: PayloadMemory::new(limits.payload_bytes, limits.handshake),
            handshakes: Arc::default(),
            open: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            failed_authentications: AtomicU64::new(0),
        })
    }

    /// Admits a connection and starts its handshake timeout; `None` if the maximum is reached.
    pub fn admit(self: &Arc<Self>, connection: &Connection) -> Option<(ConnectionPermit, Timeout)> {
        let maximum = self.limits.connections;
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let permit = ConnectionPermit { limits: Arc::clone(self) };
        let fits =
            open < maximum || open < maximum + REPLACED_MAX && self.handshakes.disconnect_first();
        if !fits {
            let maximum = format!("{maximum} connections are open, as --max-connections allows");
            self.refuse(Notice::TooMany, maximum);
            return None;
        }
        Some((permit, self.handshakes.start(connection, self.limits.handshake)))
    }

    /// Starts a timeout. Until it expires a new connection may replace this one, as in a handshake.
    pub fn start_timeout(&self, connection: &Connection, timeout: Duration) -> Timeout {
        self.handshakes.start(connection, timeout)
    }

    /// Counts a refused connection and prints the reason.
    pub fn refuse(&self, notice: Notice, reason: impl Display) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.log.print(notice, format_args!("a connection was refused: {reason}"));
    }

    /// Counts a host that failed to authenticate and prints its address.
    pub fn note_failed_authentication(&self, connection: &Connection) {
        self.failed_authentications.fetch_add(1, Ordering::Relaxed);
        let peer = connection.peer();
        self.log.print(Notice::Authentication, format_args!("{peer} failed to authenticate"));
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

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.limits.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a line on stderr is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// A host failed to authenticate.
    Authentication,
    /// The system has no file descriptor or no memory for a connection.
    Descriptors,
    /// The system cannot create a thread.
    Threads,
    /// The maximum number of connections is reached.
    TooMany,
}

/// Rate-limited lines on stderr: when one of each kind was last printed, and how many were omitted
/// since.
#[derive(Debug, Default)]
pub struct RateLimitedLog {
    printed: Mutex<BTreeMap<Notice, (Instant, u64)>>,
}

impl RateLimitedLog {
    /// Prints a line, unless one of the same kind was printed recently.
    pub fn print(&self, notice: Notice, text: impl Display) {
        let now = wall_clock_now();
        let mut printed = lock(&self.printed);
        let omitted = match printed.get_mut(&notice) {
            Some((last, omitted)) if now.saturating_duration_since(*last) < PERIOD => {
                *omitted += 1;
                return;
            }
            last => last.map_or(0, |(_, omitted)| *omitted),
        };
        printed.insert(notice, (now, 0));
        drop(printed);
        let omitted = match omitted {
            0 => String::new(),
            _ => format!(" ({omitted} more since the last line)"),
        };
        // Without stderr the line is lost.
        let _ = writeln!(std::io::stderr(), "ssdlab serve: {text}{omitted}");
    }
}

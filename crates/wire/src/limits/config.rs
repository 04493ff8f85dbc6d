//! `Limits`: what clients may use of this machine, within the limits of the system.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

/// File descriptors that are not for connections: control socket, data, log, clones, Python.
const RESERVED: u64 = 64;
/// File descriptors of a connection, without and with TLS.
const PLAIN: u64 = 1;
const ENCRYPTED: u64 = 3;

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

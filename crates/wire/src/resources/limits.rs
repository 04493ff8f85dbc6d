//! `Limits`: how much of this machine clients may take, as far as the system lets them.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

/// Descriptors that connections leave: for the control socket, data, log, forks and Python.
const RESERVED: u64 = 64;
/// A connection's descriptors, and those of one that is encrypted.
const PLAIN: u64 = 1;
const ENCRYPTED: u64 = 3;

/// How much of this machine clients may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections of NBD and `NVMe` at a time.
    pub connections: usize,
    /// Bytes of memory for payloads that are being received, of all connections together.
    pub payload_bytes: usize,
    /// How long a handshake may take, and each next piece of a payload that was announced.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let handshake = Duration::from_secs(10);
        Self { connections: 2000, payload_bytes: 128 << 20, handshake }
    }
}

/// More connections are asked for than the system has descriptors for.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "--max-connections is {asked}; this process may open {files} files, enough for {most} \
     connections: give {most} or fewer, or raise the limit (ulimit -n)"
)]
pub struct LimitError {
    asked: usize,
    files: u64,
    most: usize,
}

impl Limits {
    /// With so many connections, or by default as many as usual and as the system has descriptors
    /// for. Raises this process's limit of open files as far as it may.
    ///
    /// # Errors
    /// The system does not have so many.
    pub fn with_connections(
        self,
        asked: Option<usize>,
        are_encrypted: bool,
    ) -> Result<Self, LimitError> {
        let files = raised_file_limit();
        let each = if are_encrypted { ENCRYPTED } else { PLAIN };
        let most = (files - RESERVED.min(files / 2)) / each;
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        match asked {
            Some(asked) if asked > most => Err(LimitError { asked, files, most }),
            Some(connections) => Ok(Self { connections, ..self }),
            None => Ok(Self { connections: self.connections.min(most), ..self }),
        }
    }
}

/// Raises the soft limit of open files to the hard one; returns what holds then.
fn raised_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    // Where it is refused the old limit holds.
    let holds = if setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current };
    holds.unwrap_or(u64::MAX)
}

//! `OpenError`: why a file or block device cannot be measured, in one line each.

use std::io;

/// A file or block device could not be opened for measuring.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// An option has a value that is not allowed.
    #[error("{name} is {given}; allowed is {allowed}; choose a value in that range")]
    Option {
        /// The field of `OpenOptions`.
        name: &'static str,
        /// Its value.
        given: usize,
        /// What it may be.
        allowed: &'static str,
    },
    /// A share of content that is none.
    #[error("the content's `to` is {given}; allowed is 0 to 1; choose a value in that range")]
    Share {
        /// Its value.
        given: f64,
    },
    /// There is no such file.
    #[error("{path} does not exist; give an existing file or block device")]
    NotFound {
        /// As given.
        path: String,
    },
    /// The system forbids it.
    #[error(
        "{path} may not be opened for {access}; this user needs that permission on it; \
         change its mode or owner, or run as root"
    )]
    Permission {
        /// As given.
        path: String,
        /// "reading", or "reading and writing".
        access: &'static str,
    },
    /// Somebody else holds the block device.
    #[error(
        "{path} is in use (mounted, or held by RAID, LVM, swap or another program); exclusive \
         access needs a free block device; unmount or release it first"
    )]
    Busy {
        /// As given.
        path: String,
    },
    /// A directory, a terminal, a socket.
    #[error("{path} is a {kind}; only a regular file or a block device can be measured; give one")]
    Kind {
        /// As given.
        path: String,
        /// What it is.
        kind: &'static str,
    },
    /// Not even one sector.
    #[error(
        "{path} holds {bytes} bytes; at least one sector of {sector} bytes is needed; \
         write the file first"
    )]
    Empty {
        /// As given.
        path: String,
        /// Its length in bytes.
        bytes: u64,
        /// The smallest direct I/O in bytes.
        sector: u64,
    },
    /// The file system cannot do direct I/O, or keeps its files in memory.
    #[error(
        "{path} is on {file_system}, which refuses direct I/O (O_DIRECT); only a file system that \
         reads and writes its drive directly can be measured; choose a directory on a drive's own \
         file system"
    )]
    NoDirectIo {
        /// As given.
        path: String,
        /// What `statfs` calls it.
        file_system: String,
    },
    /// `from_file` was given a file that was opened otherwise than the options say.
    #[error("{path} was opened without {missing}; the options ask for it; open it with {missing}")]
    Opened {
        /// Its name as /proc/self/fd has it.
        path: String,
        /// The flags of open(2) that are missing.
        missing: &'static str,
    },
    /// `io_uring` is switched off, filtered, or missing.
    #[error("io_uring cannot be used here ({reason}); {remedy}")]
    RingRefused {
        /// What the kernel said.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// No memory for the buffers, or no right to pin them.
    #[error(
        "{bytes} bytes of buffers cannot be had ({source}); the limits are free memory and, for \
         registered buffers, `ulimit -l`; lower queue_depth or request_bytes_max"
    )]
    Memory {
        /// What was asked for.
        bytes: usize,
        /// The system's own words.
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("{path} cannot be {what} ({source}); the system says why; mend that and try again")]
    System {
        /// As given.
        path: String,
        /// What was tried, as a participle.
        what: &'static str,
        /// The system's own words.
        source: io::Error,
    },
}

//! `OpenError`: why a file or block device cannot be opened, in one line.

use std::io;

/// Why a file or block device cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// An option is out of range.
    #[error("{name} is {given}; allowed is {allowed}; choose a value in that range")]
    Option {
        /// The field of `OpenOptions`.
        name: &'static str,
        /// The option's value.
        given: usize,
        /// The allowed range.
        allowed: &'static str,
    },
    /// The `to` of `Content` is out of range.
    #[error("the content's `to` is {given}; allowed is 0 to 1; choose a value in that range")]
    Share {
        /// The option's value.
        given: f64,
    },
    /// The file does not exist.
    #[error("{path} does not exist; give an existing file or block device")]
    NotFound {
        /// The path that was passed.
        path: String,
    },
    /// Permission denied.
    #[error(
        "{path} may not be opened for {access}; this user needs that permission on it; \
         change its mode or owner, or run as root"
    )]
    Permission {
        /// The path that was passed.
        path: String,
        /// "reading", or "reading and writing".
        access: &'static str,
    },
    /// The block device is in use.
    #[error(
        "{path} is in use (mounted, or held by RAID, LVM, swap or another program); exclusive \
         access needs a free block device; unmount or release it first"
    )]
    Busy {
        /// The path that was passed.
        path: String,
    },
    /// Neither a regular file nor a block device.
    #[error("{path} is a {kind}; only a regular file or a block device can be measured; give one")]
    Kind {
        /// The path that was passed.
        path: String,
        /// The type of file.
        kind: &'static str,
    },
    /// Smaller than one sector.
    #[error(
        "{path} holds {bytes} bytes; at least one sector of {sector} bytes is needed; \
         write the file first"
    )]
    Empty {
        /// The path that was passed.
        path: String,
        /// Its length in bytes.
        bytes: u64,
        /// The smallest direct I/O in bytes.
        sector: u64,
    },
    /// The file system does not support direct I/O, or is in memory.
    #[error(
        "{path} is on {file_system}, which refuses direct I/O (O_DIRECT); only a file system that \
         reads and writes its drive directly can be measured; choose a directory on a drive's own \
         file system"
    )]
    NoDirectIo {
        /// The path that was passed.
        path: String,
        /// Its type according to `statfs`.
        file_system: String,
    },
    /// The file passed to `from_file` lacks flags that the options require.
    #[error("{path} was opened without {missing}; the options ask for it; open it with {missing}")]
    Opened {
        /// The name in /proc/self/fd.
        path: String,
        /// The missing flags of open(2).
        missing: &'static str,
    },
    /// `io_uring` is disabled, filtered, or not available.
    #[error("io_uring cannot be used here ({reason}); {remedy}")]
    RingRefused {
        /// The reason.
        reason: String,
        /// What the user can do.
        remedy: &'static str,
    },
    /// Not enough memory for the buffers, or no permission to lock it.
    #[error(
        "{bytes} bytes of buffers cannot be allocated ({source}); the limits are free memory and, \
         for registered buffers, `ulimit -l`; lower queue_depth or request_bytes_max"
    )]
    Memory {
        /// The size of the buffers.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// Another system call failed.
    #[error("{path} cannot be {what} ({source}); fix the cause and try again")]
    System {
        /// The path that was passed.
        path: String,
        /// What was attempted, as a participle.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

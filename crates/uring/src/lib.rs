//! `UringDevice`: a real file or block device as a `Device`, through `io_uring` and `O_DIRECT`.
//!
//! This crate has the only clock that measures real time. Each request is submitted with its own
//! system call. Batches need fewer system calls but delay requests, and were slower on virtual
//! disks; they are an option, as are buffered I/O and pread or pwrite, one call at a time
//! (`SyncDevice`). There is no silent fallback: if direct I/O or `io_uring` is not available,
//! opening fails and says what to do. Hints of writes (`Request::hint`) are dropped, because the
//! kernel cannot pass them on for every file and drive.

mod buffers;
mod clock;
mod content;
mod error;
mod null;
mod psync;
mod ring;
mod setup;
mod slot;
mod target;
mod verify;

pub use content::{Content, Stamp};
pub use error::OpenError;
pub use null::{NullDevice, nop_rate};
pub use psync::SyncDevice;
pub use ring::UringDevice;
pub use target::{Flush, OpenOptions};
pub use verify::{Mismatch, Verified, verify};

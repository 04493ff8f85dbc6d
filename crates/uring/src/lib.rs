//! `UringDevice`: a real file or block device behind the `Device` contract, past the page cache.
//!
//! By `io_uring` and `O_DIRECT`. This is the lab's only measuring clock. A request goes to the
//! kernel by itself: batches make fewer system calls, but hold requests back, and measured slower
//! on virtual disks; they are an option, as are buffered I/O and one call of pread or pwrite at a
//! time (`SyncDevice`). There is no silent fall-back: where direct I/O or `io_uring` cannot be had,
//! opening fails and says what to do. What a write lets the drive know (`Request::hint`) goes no
//! further: the kernel has no way to pass it on to every file and drive.

mod buffers;
mod clock;
mod content;
mod entry;
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

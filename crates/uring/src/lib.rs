//! `UringDevice`: a real file or block device behind the `Device` contract, past the page cache.
//!
//! By `io_uring` and `O_DIRECT`. This is the lab's only measuring clock. A request goes to the
//! kernel by itself, as soon as it is submitted: batches make fewer system calls, but hold requests
//! back, and measured slower on virtual disks. There is no silent fall-back: where direct I/O or
//! `io_uring` cannot be had, opening fails and says what to do.

mod buffers;
mod error;
mod ring;
mod setup;
mod slot;
mod target;

pub use error::OpenError;
pub use ring::UringDevice;
pub use target::OpenOptions;

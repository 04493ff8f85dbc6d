//! The `Device` trait, its requests and completions, and the records of a job.
//!
//! Twins and real drives implement the same trait, so one loop drives both.

mod device;
mod histogram;
mod record;
mod request;

pub use device::{Device, DeviceError, Wait};
pub use histogram::Histogram;
pub use record::{Interval, Record, Tally};
pub use request::{Completion, Hint, IoError, LBA_BYTES, Lba, Op, Region, Request};

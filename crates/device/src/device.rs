//! `Device`: the one contract that a twin in virtual time and hardware in real time both keep.

use ssdlab_time::Nanos;

use crate::{Completion, DeviceError, LBA_BYTES, Lba, Op, Request};

/// How long `Device::reap` may wait for a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: only what is done by now.
    Poll,
    /// Until at least one request is done; returns at once when none is in flight.
    One,
    /// Until a request is done or this time has come, whichever is first. A rest is this with
    /// nothing in flight.
    Until(Nanos),
}

/// One queue pair of a drive: a twin or a real file or block device.
///
/// The clock starts at zero when the device is opened and never runs backwards. A twin moves it
/// inside `reap` and nowhere else, hardware waits there. No request is lost: each one submitted
/// comes back from `reap` once. Completions come in order of their time.
pub trait Device {
    /// Its size in bytes.
    fn capacity_bytes(&self) -> u64;

    /// The smallest unit that it reads and writes, in bytes: each request is a multiple of it.
    fn sector_bytes(&self) -> u64;

    /// The longest request that it takes, in bytes.
    fn request_bytes_max(&self) -> u64 {
        u64::from(u32::MAX) * LBA_BYTES
    }

    /// How many requests may be in flight. More is the submitter's bug.
    fn queue_depth(&self) -> usize;

    /// Its clock.
    fn now(&self) -> Nanos;

    /// Says that a request for this address will be submitted soon.
    ///
    /// It changes no result: a model may fetch what it will look up into the processor's cache,
    /// where most of its time goes otherwise. Hardware has no use for it.
    fn announce(&mut self, _op: Op, _lba: Lba) {}

    /// Hands over one request.
    ///
    /// # Errors
    /// A request outside the device or not a multiple of its sector, or a device that is gone. A
    /// failure of the medium is not an error here: it comes with the completion.
    ///
    /// # Panics
    /// With `queue_depth` requests in flight already.
    fn submit(&mut self, request: Request) -> Result<(), DeviceError>;

    /// Appends what is done to `done`, waiting as `wait` says.
    ///
    /// # Errors
    /// A device that is gone.
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError>;
}

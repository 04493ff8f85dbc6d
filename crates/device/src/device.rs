//! `Device`: the interface of a twin in virtual time and of a real drive in real time.

use ssdlab_time::Nanos;

use crate::{Completion, DeviceError, LBA_BYTES, Lba, Op, Request};

/// How long `Device::reap` may wait for a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Do not wait: only what has completed by now.
    Poll,
    /// Until at least one request completes; returns at once if none is in flight.
    One,
    /// Until a request completes or this time is reached, whichever is first. With nothing in
    /// flight this idles the device.
    Until(Nanos),
}

/// One queue pair of a drive: a twin or a real file or block device.
///
/// The clock starts at zero when the device is opened and never runs backwards. A twin advances it
/// only in `reap`, where a real drive waits. `reap` returns each submitted request exactly once, in
/// the order of completion times.
pub trait Device {
    /// The size in bytes.
    fn capacity_bytes(&self) -> u64;

    /// The sector size in bytes. Offset and length of each request are multiples of it.
    fn sector_bytes(&self) -> u64;

    /// The longest request that the device accepts, in bytes.
    fn request_bytes_max(&self) -> u64 {
        u64::from(u32::MAX) * LBA_BYTES
    }

    /// The maximum number of requests in flight. The submitter must not exceed it.
    fn queue_depth(&self) -> usize;

    /// The device's clock.
    fn now(&self) -> Nanos;

    /// Announces that a request for this address will be submitted soon.
    ///
    /// This changes no result. A model prefetches its tables into the CPU cache, because most of
    /// its time is memory latency. Real drives ignore it.
    fn announce(&mut self, _op: Op, _lba: Lba) {}

    /// Submits one request.
    ///
    /// # Errors
    /// The request is out of range or misaligned, or the device is gone. A media error is not
    /// returned here but in the completion.
    ///
    /// # Panics
    /// If `queue_depth` requests are already in flight.
    fn submit(&mut self, request: Request) -> Result<(), DeviceError>;

    /// Appends completions to `done`, waiting for them as `wait` says.
    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) -> Result<(), DeviceError>;
}

//! `Device`: the interface of a twin in virtual time and of a real drive in real time.

use std::io;

use ssdlab_time::Nanos;

use crate::{Completion, LBA_BYTES, Lba, Op, Request};

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

    /// Bytes programmed to the flash since the device was new; `None` if that cannot be read.
    fn flash_write_bytes(&self) -> Option<u64> {
        None
    }

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

/// Why a device did not accept a request, or stopped working.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The request ends beyond the last block.
    #[error("request at byte {offset} of {length} bytes ends beyond the device's {capacity} bytes")]
    OutOfRange {
        /// The request's first byte.
        offset: u64,
        /// The request's length in bytes.
        length: u64,
        /// The device's size in bytes.
        capacity: u64,
    },
    /// The request is not a multiple of the sector, or empty.
    #[error(
        "request at byte {offset} of {length} bytes is not made of whole sectors of {sector} bytes"
    )]
    Misaligned {
        /// The request's first byte.
        offset: u64,
        /// The request's length in bytes.
        length: u64,
        /// The device's sector in bytes.
        sector: u64,
    },
    /// The device does not support this operation.
    #[error("this device cannot do a {op:?}")]
    Unsupported {
        /// The operation.
        op: Op,
    },
    /// A system call failed for a reason other than the request.
    #[error("{what}: {source}")]
    System {
        /// The call or operation that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl DeviceError {
    /// Checks a request against a device's size and sector. A flush has no address to check.
    #[inline]
    pub fn check(request: &Request, capacity: u64, sector: u64) -> Result<(), Self> {
        if request.op == Op::Flush {
            return Ok(());
        }
        let length = request.bytes();
        // Compared in blocks: the byte offset of an invalid address may exceed 64 bits.
        let end = request.lba.get().checked_add(u64::from(request.blocks));
        if end.is_none_or(|end| end > capacity / LBA_BYTES) {
            let offset = request.lba.get().saturating_mul(LBA_BYTES);
            return Err(Self::OutOfRange { offset, length, capacity });
        }
        let offset = request.lba.bytes();
        if length == 0 || !offset.is_multiple_of(sector) || !length.is_multiple_of(sector) {
            return Err(Self::Misaligned { offset, length, sector });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceError;
    use crate::{Lba, Op, Request};

    fn check(lba: u64, blocks: u32) -> Result<(), DeviceError> {
        let request = Request::new(0, Op::Read, Lba::new(lba), blocks);
        DeviceError::check(&request, 1 << 20, 4096)
    }

    #[test]
    fn the_last_sector_is_inside_and_the_next_is_not() {
        assert!(check(2040, 8).is_ok());
        assert!(matches!(check(2048, 8), Err(DeviceError::OutOfRange { .. })));
        assert!(matches!(check(u64::MAX, 8), Err(DeviceError::OutOfRange { .. })));
        assert!(matches!(check(u64::MAX / 512, 8), Err(DeviceError::OutOfRange { .. })));
    }

    #[test]
    fn a_part_of_a_sector_is_refused() {
        assert!(matches!(check(1, 8), Err(DeviceError::Misaligned { .. })));
        assert!(matches!(check(0, 1), Err(DeviceError::Misaligned { .. })));
        assert!(matches!(check(0, 0), Err(DeviceError::Misaligned { .. })));
    }
}

//! Restores the map of a new drive whose content comes from a file.

use std::io;
use std::ops::Range;

use ssdlab_device::{Lba, Op, Request, Wait};

use crate::drive::Drive;

/// Bytes of each write.
const REQUEST_BYTES: u64 = 128 << 10;

/// Writes the allocated ranges, which are whole units, to a new drive in order, and flushes. The
/// map is then right; wear and placement are those of a new drive that was filled sequentially.
///
/// Returns whether everything is in flash, which is not the case if the drive ignores flushes.
pub fn restore(
    drive: &mut dyn Drive,
    allocated: impl Iterator<Item = io::Result<Range<u64>>>,
) -> io::Result<bool> {
    let step = REQUEST_BYTES.next_multiple_of(drive.parameters().unit_bytes);
    for range in allocated {
        let range = range?;
        for from in (range.start..range.end).step_by(step as usize) {
            let bytes = range.end.min(from + step) - from;
            let blocks = (bytes / ssdlab_device::LBA_BYTES) as u32;
            execute(drive, Request::new(0, Op::Write, Lba::from_bytes(from), blocks));
        }
    }
    execute(drive, Request::flush(0));
    Ok(drive.boxed_clone().power_cut().lost.is_empty())
}

/// Executes one request at a time: only the order matters here, not the time.
fn execute(drive: &mut dyn Drive, request: Request) {
    drive.submit_timed(request);
    let reaped = drive.reap(Wait::One, &mut Vec::new());
    reaped.expect("a simulated drive has no I/O errors");
}

//! A drive gets the map back that its content's file speaks of.

use std::io;
use std::ops::Range;

use ssdlab_device::{Lba, Op, Request, Wait};

use crate::drive::Drive;

/// Units are written again by requests of so many bytes.
const REQUEST_BYTES: u64 = 128 << 10;

/// Writes ranges of whole units to a new drive, one after the other, and flushes. The drive is then
/// one that was filled in order: its map is right, and its wear and its disorder are new.
///
/// Returns whether all of them are in flash; not on a drive that does not honour a flush.
pub fn restore(
    drive: &mut dyn Drive,
    allocated: impl Iterator<Item = io::Result<Range<u64>>>,
) -> io::Result<bool> {
    let step = REQUEST_BYTES.next_multiple_of(drive.unit_bytes());
    for range in allocated {
        let range = range?;
        for from in (range.start..range.end).step_by(step as usize) {
            let bytes = range.end.min(from + step) - from;
            let blocks = (bytes / ssdlab_device::LBA_BYTES) as u32;
            put(drive, Request::new(0, Op::Write, Lba::from_bytes(from), blocks));
        }
    }
    put(drive, Request::flush(0));
    Ok(drive.boxed_clone().power_cut().lost.is_empty())
}

/// One request after the other: it is its order that counts, and not its time.
fn put(drive: &mut dyn Drive, request: Request) {
    drive.submit_timed(request);
    let mut done = Vec::new();
    drive.reap(Wait::One, &mut done).expect("a twin never goes away");
}

//! A drive's superblocks and dies as rows of numbers, which pages draw.

use super::Ssd;
use crate::ftl::{LastWrite, Superblock, SuperblockState};
use crate::nand::OperationKind;

/// The cause of a superblock in which nothing has been programmed since its erase.
const NO_CAUSE: u32 = 255;

/// For each superblock: valid units; erase count; state, SLC cache, cause of its last write and
/// stream, a byte each from the lowest; units that the host has written since that write.
pub fn superblock_rows(ssd: &Ssd) -> impl Iterator<Item = [u32; 4]> {
    let host_writes = ssd.counters().host_writes;
    let both = ssd.superblocks().iter().zip(ssd.last_writes());
    both.map(move |(superblock, last)| superblock_row(*superblock, *last, host_writes))
}

/// For each die: the code of what it does now, 0 if it is idle; nanoseconds until that ends, and
/// until the die is free; operations that wait for it.
pub fn die_rows(ssd: &Ssd) -> impl Iterator<Item = [f64; 4]> {
    let now = ssd.drive_now();
    ssd.dies().map(move |die| {
        let (activity, left) = die
            .now
            .map_or((0, 0.0), |(kind, end)| (kind.code(), end.saturating_sub(now).get() as f64));
        let free = die.free_at.saturating_sub(now).get() as f64;
        [f64::from(activity), left, free, die.queued as f64]
    })
}

impl OperationKind {
    /// Its number in rows; 0 is an idle die.
    pub fn code(self) -> u8 {
        match self {
            Self::Sense => 1,
            Self::Program => 2,
            Self::Erase => 3,
            Self::Fetch => 4,
        }
    }
}

fn superblock_row(superblock: Superblock, last: Option<LastWrite>, host_writes: u64) -> [u32; 4] {
    let state = match superblock.state {
        SuperblockState::Free => 0,
        SuperblockState::Open => 1,
        SuperblockState::Closed => 2,
        SuperblockState::Victim => 3,
        SuperblockState::Empty => 4,
        SuperblockState::Retired => 5,
    };
    let cause = last.map_or(NO_CAUSE, |last| u32::from(last.cause as u8));
    let age = last.map_or(0, |last| host_writes - last.host_writes);
    let flags =
        state | u32::from(superblock.slc) << 8 | cause << 16 | u32::from(superblock.stream) << 24;
    [superblock.valid, superblock.erases, flags, u32::try_from(age).unwrap_or(u32::MAX)]
}

//! `Timing`: durations of flash operations and channel transfers.

use ssdlab_time::Nanos;

use super::Place;

/// Durations of flash operations.
///
/// Modelled: page types with their own tR, one tPROG, one tBERS; tR and tPROG of an SLC cache. Not
/// modelled: tPROG by page type, read retries, times that increase with wear or temperature.
/// Source: each profile has the sources of its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// tR for each page type, in order of the pages of a block (LSB, CSB, MSB, LSB, ...).
    pub read: Vec<Nanos>,
    /// tPROG of a (multi-plane) page.
    pub program: Nanos,
    /// tBERS of a (multi-plane) block.
    pub erase: Nanos,
    /// Time to suspend a program or an erase for a read; `None`: reads wait for its end.
    pub suspend: Option<Nanos>,
    /// Bandwidth of one channel in bytes per second.
    pub channel_bandwidth: u64,
    /// Whether a die can sense its next page before the data of the last one has been transferred.
    /// Without a cache register it is busy until then.
    pub cache_register: bool,
    /// Whether the page that a die sensed last for the host stays in its register until the die's
    /// next operation, so that another read of it needs no sense. Packed placement implies it.
    pub keeps_page: bool,
    /// Durations at one bit per cell, if the drive has an SLC cache.
    pub slc: Option<SlcTiming>,
}

/// Durations for a page that holds one bit per cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcTiming {
    /// tPROG of a (multi-plane) page.
    pub program: Nanos,
    /// tR.
    pub read: Nanos,
}

impl Timing {
    /// tR of the page with this number in its block, outside the SLC cache.
    pub fn read_of(&self, page_in_block: u32) -> Nanos {
        self.read[page_in_block as usize % self.read.len()]
    }

    #[inline]
    pub(crate) fn program_of(&self, place: Place) -> Nanos {
        match self.slc {
            Some(slc) if place.slc => slc.program,
            _ => self.program,
        }
    }
}

//! `Timing`: what a flash operation and a channel transfer cost.

use ssdlab_time::Nanos;

use super::Place;

/// Times of the flash.
///
/// Modelled: page types with their own tR, one tPROG, one tBERS; tR and tPROG of an SLC cache. Not
/// modelled: a tPROG by page type, retries, times that grow with wear or heat. Source: each profile
/// says where its figures are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// tR for each page type, in order of the pages of a block (LSB, CSB, MSB, LSB, ...).
    pub read: Vec<Nanos>,
    /// tPROG of a (multi-plane) page.
    pub program: Nanos,
    /// tBERS of a (multi-plane) block.
    pub erase: Nanos,
    /// What it takes to suspend a program or an erase for a read; `None`: reads wait for its end.
    pub suspend: Option<Nanos>,
    /// Bytes per second of one channel.
    pub channel_bandwidth: u64,
    /// Whether a die can sense its next page while the last one's data waits to leave or leaves: it
    /// has a cache register. Without one it does nothing until its data is out.
    pub cache_register: bool,
    /// Whether the page that a die sensed last for the host stays in its register until the die has
    /// something else to do, so that another command to it senses nothing. A drive that packs does
    /// that.
    pub keeps_page: bool,
    /// Times at one bit a cell, where the drive has an SLC cache.
    pub slc: Option<SlcTiming>,
}

/// Times of a page that holds one bit a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcTiming {
    /// tPROG of a (multi-plane) page.
    pub program: Nanos,
    /// tR.
    pub read: Nanos,
}

impl Timing {
    /// tR of the page with this number in its block, at more than one bit a cell.
    pub fn read_of(&self, page_in_block: u32) -> Nanos {
        self.read[page_in_block as usize % self.read.len()]
    }

    /// tPROG of a page.
    #[inline]
    pub fn program_of(&self, place: Place) -> Nanos {
        match self.slc {
            Some(slc) if place.slc => slc.program,
            _ => self.program,
        }
    }
}

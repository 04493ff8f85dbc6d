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
    /// tR of a page.
    #[inline]
    pub fn read_of(&self, place: Place) -> Nanos {
        match self.slc {
            Some(slc) if place.slc => slc.read,
            _ => self.read[(place.page_in_block % self.read.len() as u32) as usize],
        }
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

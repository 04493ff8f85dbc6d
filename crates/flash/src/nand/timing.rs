//! `Timing`: what a flash operation and a channel transfer cost.

use ssdlab_time::Nanos;

/// Times of the flash.
///
/// Modelled: page types with their own tR, one tPROG, one tBERS. Not modelled: a tPROG by page
/// type, retries, times that grow with wear or heat. Source: each profile says where its figures
/// are from.
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
}

impl Timing {
    /// tR of the page with this number in its block.
    pub fn read_of(&self, page: u32) -> Nanos {
        self.read[(page % self.read.len() as u32) as usize]
    }
}

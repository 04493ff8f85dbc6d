//! `Geometry` and `Timing`: sizes of the parts of the flash, and durations of its operations.

use ssdlab_time::Nanos;

/// The geometry of the flash and of the stripe over it.
///
/// A *multi-plane page* is the pages with the same number in all planes of a die: programmed in one
/// operation, and sensed in one unless planes read independently. A *superblock* is the blocks with
/// the same number in all planes of all dies.
///
/// Modelled: all blocks are good, all dies equal. Not modelled: bad blocks and their replacements,
/// string and layer structure, parity across dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels, which transfer independently.
    pub channels: u32,
    /// Dies on each channel, which work independently.
    pub dies_per_channel: u32,
    /// Planes of a die, which program and erase together.
    pub planes: u32,
    /// Whether each plane reads for the host by itself; otherwise planes sense together.
    pub independent_plane_reads: bool,
    /// Mapping units in a page.
    pub page_units: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Blocks in a plane; also the number of superblocks.
    pub blocks_per_plane: u32,
    /// Bytes in a mapping unit.
    pub unit_bytes: u32,
    /// Consecutive units on one die before the stripe continues on the next.
    pub chunk_units: u32,
}

impl Geometry {
    /// The most units that have addresses (0 is reserved for "unmapped").
    pub const UNITS_MAX: u64 = u32::MAX as u64 - 1;

    /// All dies.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Bytes in a mapping unit.
    pub fn unit_bytes(&self) -> u64 {
        u64::from(self.unit_bytes)
    }

    /// Units in a multi-plane page.
    pub fn multi_page_units(&self) -> u32 {
        self.planes * self.page_units
    }

    /// Units in a superblock.
    pub fn superblock_units(&self) -> u32 {
        self.dies() * self.multi_page_units() * self.pages_per_block
    }

    /// Units in a superblock, or `None` if they are 2^31 or more.
    pub fn superblock_units_checked(&self) -> Option<u32> {
        let factors = [
            self.channels,
            self.dies_per_channel,
            self.planes,
            self.page_units,
            self.pages_per_block,
        ];
        factors.into_iter().try_fold(1_u32, u32::checked_mul).filter(|units| *units < 1 << 31)
    }

    /// Bytes in a superblock.
    pub fn superblock_bytes(&self) -> u64 {
        u64::from(self.superblock_units()) * self.unit_bytes()
    }

    /// Units in all flash.
    pub fn units(&self) -> u64 {
        u64::from(self.superblock_units()) * u64::from(self.blocks_per_plane)
    }

    /// Bytes in all flash.
    pub fn bytes(&self) -> u64 {
        self.units() * self.unit_bytes()
    }

    /// Units in a stripe: a chunk on each die.
    pub fn stripe_units(&self) -> u32 {
        self.dies() * self.chunk_units
    }

    /// The most units in partly filled pages of one frontier.
    ///
    /// One multi-plane page, or one on each die if a chunk is smaller than that.
    pub fn open_units(&self) -> u64 {
        let pages = if self.chunk_units >= self.multi_page_units() { 1 } else { self.dies() };
        u64::from(pages) * u64::from(self.multi_page_units())
    }
}

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
    /// The longest that host reads may delay one operation of a die; `None`: without limit.
    pub delay_limit: Option<Nanos>,
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
}

//! `Geometry`: the numbers and sizes of channels, dies, planes, blocks, pages and mapping units.

/// The geometry of the flash and of the stripe over it.
///
/// A *multi-plane page* is the pages with the same number in all planes of a die: programmed and
/// sensed in one operation. A *superblock* is the blocks with the same number in all planes of all
/// dies.
///
/// Modelled: all blocks are good, all dies equal. Not modelled: bad blocks and their replacements,
/// string and layer structure, parity across dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels, which transfer independently.
    pub channels: u32,
    /// Dies on each channel, which work independently.
    pub dies_per_channel: u32,
    /// Planes of a die, which work together.
    pub planes: u32,
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

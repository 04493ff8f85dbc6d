//! Host addresses, in blocks of 512 bytes as in Linux.

/// Bytes in a host block. Linux counts sectors of 512 bytes even where the drive's sector is
/// larger.
pub const LBA_BYTES: u64 = 512;

/// The address of a host block, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(u64);

impl Lba {
    /// The host block with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The host block at this byte offset, which must be a multiple of `LBA_BYTES`.
    pub const fn from_bytes(offset: u64) -> Self {
        assert!(offset.is_multiple_of(LBA_BYTES), "the offset is not a multiple of a host block");
        Self(offset / LBA_BYTES)
    }

    /// The block's number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The byte offset of the block.
    pub const fn bytes(self) -> u64 {
        self.0 * LBA_BYTES
    }

    /// The block `count` blocks after this one.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

/// A range of host blocks, such as the part of a device that a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first block.
    pub start: Lba,
    /// The number of blocks.
    pub blocks: u64,
}

impl Region {
    /// The region at a byte offset, of `length` bytes; both must be multiples of `LBA_BYTES`.
    pub const fn from_bytes(offset: u64, length: u64) -> Self {
        Self { start: Lba::from_bytes(offset), blocks: Lba::from_bytes(length).get() }
    }

    /// The length in bytes.
    pub const fn bytes(self) -> u64 {
        self.blocks * LBA_BYTES
    }
}

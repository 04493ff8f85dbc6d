//! Host addresses: `Lba` counts blocks of 512 bytes, as Linux does.

use std::fmt;

/// Bytes in a host block. Linux counts sectors of 512 bytes whatever the drive's own sector is.
pub const LBA_BYTES: u64 = 512;

/// The address of a host block: its number, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(u64);

impl Lba {
    /// The host block with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The host block at this byte offset, which must be a multiple of `LBA_BYTES`.
    pub const fn from_bytes(offset: u64) -> Self {
        assert!(offset.is_multiple_of(LBA_BYTES), "an offset that is no multiple of a host block");
        Self(offset / LBA_BYTES)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Its first byte.
    pub const fn bytes(self) -> u64 {
        self.0 * LBA_BYTES
    }

    /// The block `count` blocks further on.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {}", self.0)
    }
}

/// A run of host blocks: the part of a device that a job may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first block.
    pub start: Lba,
    /// How many blocks it has.
    pub blocks: u64,
}

impl Region {
    /// The region of these bytes; both must be multiples of `LBA_BYTES`.
    pub const fn from_bytes(offset: u64, length: u64) -> Self {
        Self { start: Lba::from_bytes(offset), blocks: Lba::from_bytes(length).get() }
    }

    /// The block after its last, or `None` past the end of all addresses.
    pub const fn end(self) -> Option<u64> {
        self.start.get().checked_add(self.blocks)
    }

    /// Its length in bytes.
    pub const fn bytes(self) -> u64 {
        self.blocks * LBA_BYTES
    }
}

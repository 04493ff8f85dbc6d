//! `Namespace`: the only namespace of the drive.

/// log2 of the logical block size, by number of the LBA format.
pub const LBA_FORMATS: [u32; 2] = [9, 12];

/// The drive's namespace.
///
/// It is attached to all controllers or to none: controllers exist as long as their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Number of the LBA format.
    pub lba_format: usize,
    /// Its capacity in bytes; the rest of the drive is spare.
    pub bytes: u64,
    /// Number of placement handles: the first reclaim unit handles of the drive.
    pub handles: u32,
    pub is_attached: bool,
}

impl Namespace {
    /// log2 of the logical block size (LBADS).
    pub fn lbads(&self) -> u32 {
        LBA_FORMATS[self.lba_format]
    }

    /// Number of logical blocks.
    pub fn blocks(&self) -> u64 {
        self.bytes >> self.lbads()
    }
}

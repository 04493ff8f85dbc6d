//! `Namespace`: the one that the drive has or has not, and who finds it.

mod blocks;
mod manage;

use super::subsystem::FORMATS;

/// The drive's namespace.
///
/// It is attached to all controllers or to none: their numbers come and go with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The number of its format.
    pub format: usize,
    /// What was set aside for it, in bytes; what the drive has beyond is spare.
    pub bytes: u64,
    /// Handles of placement that its writes can name: the drive's first ones.
    pub handles: u32,
    /// Whether controllers find it.
    pub is_attached: bool,
}

impl Namespace {
    /// A block's bytes as a power of two.
    pub fn shift(&self) -> u32 {
        FORMATS[self.format]
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> u64 {
        self.bytes >> self.shift()
    }
}

//! Wear levelling: which superblock is filled next, and when one that never changes must move.
//!
//! Modelled: *dynamic*, the free superblock erased least often is filled next; *static*, a
//! superblock that lags too many erases behind the most worn one is collected before its turn, so
//! that cold data does not keep young flash to itself. Not modelled: wear of single blocks in a
//! superblock, retirement, slower or less reliable flash with age.

use super::Ftl;
use crate::config::WearLevelling;

/// How many choices pass between two looks at all superblocks.
const LOOK_EVERY: u64 = 16;

impl Ftl {
    /// The superblock that must be collected to level wear, if one lags too far behind.
    pub(super) fn lagging(&mut self) -> Option<u32> {
        let WearLevelling::Static { spread } = self.collector.rules.wear else { return None };
        self.collector.choices += 1;
        if !self.collector.choices.is_multiple_of(LOOK_EVERY) {
            return None;
        }
        let (superblock, erases) = self.superblocks.least_worn_closed()?;
        (self.superblocks.erases_most() > erases + spread).then_some(superblock)
    }
}

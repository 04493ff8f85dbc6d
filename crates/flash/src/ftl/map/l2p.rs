//! `L2p`: the map from mapping units to flash addresses, 4 bytes each.

use super::table;
use crate::nand::Ppn;

/// The number of a mapping unit, counted over the host's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lpn(pub u32);

/// The flash address of each mapping unit.
///
/// An entry is the address plus one, or 0 if the unit is unmapped: the table of an empty drive is
/// all zeros and uses memory only where something was written.
#[derive(Clone, Debug)]
pub struct L2p {
    entries: Vec<u32>,
}

impl L2p {
    /// The map of an empty drive.
    pub fn new(logical_units: u64) -> Self {
        Self { entries: table::zeros(logical_units as usize) }
    }

    /// The address of a unit.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.entries[lpn.0 as usize].checked_sub(1).map(Ppn)
    }

    /// Prefetches a unit's entry.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        table::prefetch(&self.entries, lpn.0 as usize);
    }

    /// Maps a unit; returns its previous address.
    #[inline]
    pub fn replace(&mut self, lpn: Lpn, ppn: Ppn) -> Option<Ppn> {
        let entry = &mut self.entries[lpn.0 as usize];
        std::mem::replace(entry, ppn.0 + 1).checked_sub(1).map(Ppn)
    }

    /// Maps a unit without waiting for the old entry to be read.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, ppn: Ppn) {
        self.entries[lpn.0 as usize] = ppn.0 + 1;
    }

    /// Unmaps a unit; returns its previous address.
    pub fn clear(&mut self, lpn: Lpn) -> Option<Ppn> {
        std::mem::take(&mut self.entries[lpn.0 as usize]).checked_sub(1).map(Ppn)
    }

    /// All mapping units of the drive.
    pub fn lpns(&self) -> impl Iterator<Item = Lpn> + use<> {
        (0..self.entries.len() as u32).map(Lpn)
    }
}

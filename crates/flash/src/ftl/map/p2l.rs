//! `P2l`: the map from addresses back to mapping units, with a valid bit for each address.

use super::{Lpn, table};
use crate::nand::Ppn;

/// The unit that each address was written for, and whether it holds the unit's current content.
#[derive(Clone, Debug)]
pub struct P2l {
    lpns: Vec<u32>,
    valid: Vec<u64>,
}

impl P2l {
    /// All `units` addresses invalid.
    pub fn new(units: u64) -> Self {
        let units = units as usize;
        Self { lpns: table::zeros(units), valid: table::zeros(units.div_ceil(64)) }
    }

    /// The unit that was written to an address.
    #[inline]
    pub fn lpn(&self, ppn: Ppn) -> Lpn {
        Lpn(self.lpns[ppn.0 as usize])
    }

    /// Whether an address is valid.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[ppn.0 as usize / 64] >> (ppn.0 % 64) & 1 == 1
    }

    /// The valid addresses among `units` (at most 64) from `first` on: bit 0 is the first.
    #[inline]
    pub fn valid_mask(&self, first: Ppn, units: u32) -> u64 {
        let (word, shift) = (first.0 as usize / 64, first.0 % 64);
        let mut bits = self.valid[word] >> shift;
        if shift + units > 64 {
            bits |= self.valid[word + 1] << (64 - shift);
        }
        bits & (u64::MAX >> (64 - units))
    }

    /// The number of valid addresses.
    pub fn valid_count(&self) -> u64 {
        self.valid.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Prefetches an address's valid bit.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) {
        table::prefetch(&self.valid, ppn.0 as usize / 64);
    }

    /// Records the unit that is written to an address, and makes the address valid.
    #[inline]
    pub fn set(&mut self, ppn: Ppn, lpn: Lpn) {
        self.lpns[ppn.0 as usize] = lpn.0;
        self.restore(ppn);
    }

    /// Makes an address valid.
    #[inline]
    pub fn restore(&mut self, ppn: Ppn) {
        self.valid[ppn.0 as usize / 64] |= 1 << (ppn.0 % 64);
    }

    /// Makes an address invalid.
    #[inline]
    pub fn invalidate(&mut self, ppn: Ppn) {
        self.valid[ppn.0 as usize / 64] &= !(1 << (ppn.0 % 64));
    }

    /// Makes the addresses of `mask`, counted from `first`, invalid.
    #[inline]
    pub fn invalidate_mask(&mut self, first: Ppn, mask: u64) {
        let (word, shift) = (first.0 as usize / 64, first.0 % 64);
        self.valid[word] &= !(mask << shift);
        if shift > 0 && mask >> (64 - shift) > 0 {
            self.valid[word + 1] &= !(mask >> (64 - shift));
        }
    }
}
